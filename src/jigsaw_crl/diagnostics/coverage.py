"""Do the clients share enough labels for one order?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from math import log

import numpy as np

from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.diagnostics.findings import finding
from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["ACROSS_CLIENTS", "check_coverage", "check_districts", "unseen_pairs"]

# The checks of this module, whose findings a further client can change.
ACROSS_CLIENTS = frozenset({"disconnected", "unseen-pairs", "always-confounded", "lonely-labels"})

# Log odds from which a client has evidence that two labels are confounded: 19 to 1.
CLEAR = log(19.0)


def unseen_pairs(labels: Mapping[str, Iterable[str]]) -> list[tuple[str, str]]:
    """Pairs of labels that no client has together, each once, sorted.

    Examples
    --------
    >>> from jigsaw_crl.diagnostics import unseen_pairs
    >>> unseen_pairs({"lab-1": ["a", "b"], "lab-2": ["b", "c"]})
    [('a', 'c')]
    """
    names = sorted({label for own in labels.values() for label in own})
    seen = {pair for own in labels.values() for pair in combinations(sorted(set(own)), 2)}
    return [pair for pair in combinations(names, 2) if pair not in seen]


def check_coverage(labels: Mapping[str, Sequence[str]]) -> list[Finding]:
    """Findings about which labels which clients share."""
    findings: list[Finding] = []
    names = sorted({label for own in labels.values() for label in own})
    groups = _groups(labels)
    if len(groups) > 1:
        parts = "; ".join(", ".join(group[:4]) for group in groups[:4])
        findings.append(finding("disconnected", float(len(groups)), 1.0, parts=parts))
    if len(labels) > 1:
        findings += _lonely_labels(labels, names)
    pairs = unseen_pairs(labels)
    if pairs:
        total = len(names) * (len(names) - 1) // 2
        shown = ", ".join(f"{a}–{b}" for a, b in pairs[:6]) + (" …" if len(pairs) > 6 else "")
        one = len(pairs) == 1
        what = f"{len(pairs)} of {pluralise(total, 'pair')} of labels {'is' if one else 'are'}"
        words = {"what": f"{what} in no client together", "them": "it" if one else "them"}
        findings.append(finding("unseen-pairs", len(pairs) / total, 0.0, shown=shown, **words))
    return findings


def check_districts(
    fragments: Mapping[str, Fragment], undetermined: Collection[tuple[str, str]]
) -> list[Finding]:
    """A finding about open pairs that are in one district at every client that has both.

    None of these clients can tell which of the two is the ancestor. With few rows, a district may
    turn out smaller with more of them.

    Parameters
    ----------
    fragments : mapping of str to Fragment
    undetermined : collection of (str, str)
        The ordered pairs without a verdict.
    """
    split: set[tuple[str, str]] = set()
    joined: dict[tuple[str, str], list[str]] = {}
    for name, fragment in fragments.items():
        if fragment.districts is None:
            continue
        district = {label: i for i, group in enumerate(fragment.districts) for label in group}
        for a, b in combinations(sorted(fragment.labels), 2):
            if district[a] == district[b] and _shown(fragment, a, b):
                joined.setdefault((a, b), []).append(name)
            else:
                split.add((a, b))
    stuck = sorted(
        (a, b)
        for a, b in joined
        if (a, b) not in split and ((a, b) in undetermined or (b, a) in undetermined)
    )
    if not stuck:
        return []
    shown = ", ".join(f"{a}–{b} ({', '.join(joined[a, b][:3])})" for a, b in stuck[:4]) + (
        " …" if len(stuck) > 4 else ""
    )
    exact = all(fragments[name].n_samples is None for pair in stuck for name in joined[pair])
    words = {
        "what": pluralise(len(stuck), "pair of labels is", "pairs of labels are"),
        "sure": "" if exact else ", as far as its rows tell",
        "rows": "" if exact else ", and says where more rows may do",
    }
    return [finding("always-confounded", float(len(stuck)), 0.0, shown=shown, **words)]


def _shown(fragment: Fragment, a: str, b: str) -> bool:
    """Does the client have evidence that two labels are confounded, and not just none against?"""
    if fragment.bayes is None:
        return True
    i, j = fragment.index(a), fragment.index(b)
    ancestry = fragment.bayes.log_odds
    other = np.fmax(np.fmax(ancestry[i, j], ancestry[j, i]), 0.0)
    return bool(fragment.bayes.district_log_odds[i, j] - other > CLEAR)


def _lonely_labels(labels: Mapping[str, Sequence[str]], names: Sequence[str]) -> list[Finding]:
    owners = {name: [c for c, own in labels.items() if name in own] for name in names}
    lonely = [name for name in names if len(owners[name]) == 1]
    if not lonely:
        return []
    shown = ", ".join(f"{x} ({owners[x][0]})" for x in lonely[:6])
    what = pluralise(len(lonely), "label is", "labels are")
    return [finding("lonely-labels", float(len(lonely)), 0.0, what=what, shown=shown)]


def _groups(labels: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Groups of clients that are connected through common labels."""
    groups: list[tuple[set[str], list[str]]] = []
    for client, own in labels.items():
        touching = [g for g in groups if g[0] & set(own)]
        merged = (
            set(own).union(*(g[0] for g in touching)),
            [c for g in touching for c in g[1]] + [client],
        )
        groups = [g for g in groups if g not in touching] + [merged]
    return [sorted(clients) for _, clients in groups]
