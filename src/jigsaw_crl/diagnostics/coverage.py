"""Findings about several clients: rows in common, and labels in common.

Two independent samples differ: with S and S' the covariances of one regime from n and n' rows of
the same law, whitened by their mean in r directions,

    T = ½ n n'/(n + n') ‖S − S'‖²

is about χ² with r(r + 1)/2 degrees of freedom. Samples of different laws are further apart, and so
are samples with heavier tails than Gaussian rows. So regimes that are much *closer* than that, all
of them, share rows: a copy with a row more, or with some noise on top, or most of a copy.

Lighter tails bring samples nearer: rows that take two values leave the r variances no error at all,
and features that each site scales to unit variance do the same. Hence r(r − 1)/2 degrees count, and
the rows must be closer by a further factor. Controls do not count, because sites that whiten their
features make them all alike.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import log

import networkx as nx
import numpy as np
from scipy.special import gammaincinv

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.client.client import Client
from jigsaw_crl.diagnostics.findings import finding
from jigsaw_crl.diagnostics.regimes import SAME_ROWS
from jigsaw_crl.evidence.priors import MODEL_ERROR
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.moments.regime import Moments

__all__ = ["ACROSS_CLIENTS", "check_copies", "check_coverage", "check_districts", "unseen_pairs"]

# The checks of this module, whose findings a further client can change.
ACROSS_CLIENTS = frozenset({"disconnected", "unseen-pairs", "always-confounded", "lonely-labels"})

# Log odds from which a client has evidence that two labels are confounded: its model is wrong less
# often than that. Rounded readings of a real plant gave 24 to 1 for a pair that is not.
CLEAR = -log(MODEL_ERROR)
# Chance that independent samples are called near copies, if their tails were as light as the
# margin allows.
BY_CHANCE = 1e-9
MARGIN = 4.0
# A covariance that is a multiple of the identity to this precision was made so.
WHITE = 1e-6


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
        "sure": "" if exact else ", or their regimes look alike, as far as its rows tell",
    }
    return [finding("always-confounded", float(len(stuck)), 0.0, shown=shown, **words)]


def _shown(fragment: Fragment, a: str, b: str) -> bool:
    """Does the client have evidence that two labels are confounded, and not just none against?"""
    if fragment.bayes is None:
        return True
    i, j = fragment.index(a), fragment.index(b)
    ancestry = fragment.bayes.log_factor
    other = np.fmax(np.fmax(ancestry[i, j], ancestry[j, i]), 0.0)
    return bool(fragment.bayes.district_log_factor[i, j] - other > CLEAR)


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
    share = nx.Graph((("client", c), ("label", x)) for c, own in labels.items() for x in own)
    parts = nx.connected_components(share)
    return sorted(sorted(name for kind, name in part if kind == "client") for part in parts)


# -- copies ---------------------------------------------------------------------------------------


def check_copies(clients: Sequence[Client]) -> list[Finding]:
    """Findings about clients whose rows are those of an earlier one, or nearly so."""
    findings: list[Finding] = []
    for i, j in _alike(clients):
        if any(f.client == clients[i].name for f in findings):
            continue
        found = _copy(clients[i], clients[j]) or _near_copy(clients[i], clients[j])
        if found is not None:
            findings.append(found)
    return findings


def _alike(clients: Sequence[Client]) -> Iterator[tuple[int, int]]:
    """Pairs of clients whose control variances differ less than those of independent samples."""
    tiny = np.finfo(np.float64).tiny
    seen: dict[int, tuple[list[int], list[FloatArray], list[float]]] = {}
    for i, client in enumerate(clients):
        n = client.control.n
        if n is None:
            continue
        spread = np.log(np.maximum(np.diagonal(client.control.covariance), tiny))
        numbers, spreads, sizes = seen.setdefault(client.n_features, ([], [], []))
        if numbers:
            # 2/n + 2/n' on average for Gaussian rows: copies are far below, most others far above.
            apart = np.mean((np.array(spreads) - spread) ** 2, axis=1)
            close = apart <= 1 / n + 1 / np.array(sizes)
            yield from ((i, numbers[k]) for k in np.flatnonzero(close))
        numbers.append(i)
        spreads.append(spread)
        sizes.append(float(n))


def _copy(client: Client, other: Client) -> Finding | None:
    """The same control rows to the last digit."""
    if not _same(client.control, other.control):
        return None
    if _is_white(client.control.covariance) and not any(
        _same(a, b) for a, b in _common(client, other)
    ):
        return None
    return finding("duplicated-client", 0.0, SAME_ROWS, client=client.name, other=other.name)


def _near_copy(client: Client, other: Client) -> Finding | None:
    """Regimes of common labels that are closer than independent samples can be."""
    r = min(client.n_latent, other.n_latent)
    pairs = list(_common(client, other))
    if r < 2 or not pairs:
        return None
    both = client.control.covariance + other.control.covariance
    basis = np.linalg.eigh(both)[1][:, -r:]
    distance = sum(_distance(a, b, basis) for a, b in pairs)
    degrees = len(pairs) * r * (r - 1) / 2
    # Lower quantile of χ², by which T divided by its degrees of freedom is judged.
    edge = 2 * float(gammaincinv(degrees / 2, BY_CHANCE)) / degrees / MARGIN
    if distance / degrees >= edge:
        return None
    return finding("near-copy", distance / degrees, edge, client=client.name, other=other.name)


def _common(client: Client, other: Client) -> Iterator[tuple[Moments, Moments]]:
    """The regimes of the labels that both have, strength by strength."""
    for label, moments in client.interventions.items():
        twins = other.interventions.get(label, ())
        if len(twins) == len(moments):
            yield from zip(moments, twins, strict=True)


def _distance(a: Moments, b: Moments, basis: FloatArray) -> float:
    """T of two samples, in the directions of `basis`."""
    assert a.n is not None
    assert b.n is not None
    if a.n + b.n - 2 < basis.shape[1]:
        return np.inf  # too few rows to whiten by
    first, second = (basis.T @ m.covariance @ basis for m in (a, b))
    values, vectors = np.linalg.eigh((first + second) / 2)
    if values[0] <= 0:
        return np.inf
    white = vectors / np.sqrt(values)
    difference = white.T @ (first - second) @ white
    return float(0.5 * a.n * b.n / (a.n + b.n) * np.sum(difference**2))


def _same(a: Moments, b: Moments) -> bool:
    if a.n != b.n:
        return False
    size = float(np.abs(a.covariance).max())
    return bool(np.allclose(a.covariance, b.covariance, rtol=0, atol=SAME_ROWS * size))


def _is_white(covariance: FloatArray) -> bool:
    """True for a multiple of the identity, which whitening at the site gives."""
    size = float(np.trace(covariance)) / len(covariance)
    plain = size * np.eye(len(covariance))
    return bool(np.allclose(covariance, plain, rtol=0, atol=WHITE * size))
