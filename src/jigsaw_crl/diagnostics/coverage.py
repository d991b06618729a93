"""Findings about several clients: the same rows, and labels in common."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from math import log

import networkx as nx
import numpy as np

from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.labels import misspelt
from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.client.client import Client
from jigsaw_crl.diagnostics.findings import finding
from jigsaw_crl.diagnostics.regimes import SAME_ROWS, same_rows
from jigsaw_crl.evidence.priors import MODEL_ERROR
from jigsaw_crl.fragment.fragment import Fragment

# The checks of this module, whose findings a further client can change.
ACROSS_CLIENTS = frozenset({"disconnected", "unseen-pairs", "always-confounded", "lonely-labels"})


def check_coverage(labels: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    """Findings about which labels which clients share."""
    share = nx.Graph((("client", c), ("label", x)) for c, own in labels.items() for x in own)
    parts = nx.connected_components(share)
    groups = sorted(sorted(name for kind, name in part if kind == "client") for part in parts)
    if len(groups) > 1:
        shown = "; ".join(few(group, 4) for group in groups[:4])
        yield finding("disconnected", float(len(groups)), 1.0, parts=shown)
    names = sorted({label for own in labels.values() for label in own})
    owners = {name: [c for c, own in labels.items() if name in own] for name in names}
    lonely = [name for name in names if len(owners[name]) == 1]
    if lonely and len(labels) > 1:
        # TankTemp and tank_temp are two labels; a person may have meant one.
        asked = {x: f"; is it {meant}?" for x, meant in misspelt(labels.values()).items()}
        asking = sorted(lonely, key=lambda x: x not in asked)
        shown = few((f"{x} ({owners[x][0]}{asked.get(x, '')})" for x in asking), 6)
        what = pluralise(len(lonely), "label is", "labels are")
        yield finding("lonely-labels", float(len(lonely)), 0.0, what=what, shown=shown)
    seen = {pair for own in labels.values() for pair in combinations(sorted(set(own)), 2)}
    if pairs := [pair for pair in combinations(names, 2) if pair not in seen]:
        total, shown = len(names) * (len(names) - 1) // 2, few((f"{a}–{b}" for a, b in pairs), 6)
        words = {"are": "is", "them": "it"} if len(pairs) == 1 else {"are": "are", "them": "them"}
        what = f"{len(pairs)} of {pluralise(total, 'pair')} of labels"
        yield finding("unseen-pairs", len(pairs) / total, 0.0, what=what, shown=shown, **words)


# What else makes pairs look confounded.
UNSURE = (
    " (or looks so: regimes that are alike, or noise of sensors that is not known, do the same)"
)


def check_districts(
    fragments: Mapping[str, Fragment], undetermined: Collection[tuple[str, str]]
) -> list[Finding]:
    """A finding about open pairs that are in one district at every client that has both.

    None of these clients can tell which of the two is the ancestor. `undetermined` are the ordered
    pairs without a verdict. A warning about a client or a label may be the reason why it looks so,
    and then the client does not count as one that finds them confounded.
    """
    joined: dict[tuple[str, str], list[str]] = {}
    split: set[tuple[str, str]] = set()
    for name, fragment in fragments.items():
        home = {x: i for i, group in enumerate(fragment.districts or ()) for x in group}
        confounded = _confounded(fragment)
        for a, b in combinations(sorted(home), 2):
            if home[a] == home[b] and confounded[fragment.index(a), fragment.index(b)]:
                joined.setdefault((a, b), []).append(name)
            else:
                split.add((a, b))
    opened = {tuple(sorted(pair)) for pair in undetermined}
    stuck = sorted(pair for pair in joined if pair not in split and pair in opened)
    if not stuck:
        return []
    exact = all(fragments[name].n_samples is None for pair in stuck for name in joined[pair])
    words = {
        "what": pluralise(len(stuck), "pair of labels is", "pairs of labels are"),
        "sure": "" if exact else UNSURE,
        "shown": few((f"{a}–{b} ({few(joined[a, b], 3)})" for a, b in stuck), 4),
    }
    return [finding("always-confounded", float(len(stuck)), 0.0, **words)]


def _confounded(fragment: Fragment) -> BoolArray:
    """Pairs that the client has evidence to be confounded, and not just none against, (p, p)."""
    doubtful = {f.regime for f in fragment.findings if f.severity != "info"}
    # A finding without a regime, or about the control, is about all labels.
    everything = not doubtful <= set(fragment.labels)
    clear = np.array([not everything and x not in doubtful for x in fragment.labels])
    pairs: BoolArray = clear[:, None] & clear
    if fragment.bayes is None:
        return pairs
    ancestry = fragment.bayes.log_factor
    other = np.fmax(np.fmax(ancestry, ancestry.T), 0.0)
    # Its model is wrong less often than that. Rounded readings of a real plant gave 24 to 1 for a
    # pair that is not confounded.
    factor = fragment.bayes.district_log_factor - other
    return np.asarray(pairs & (factor > -log(MODEL_ERROR)))


def check_copies(clients: Sequence[Client]) -> Iterator[Finding]:
    """Findings about clients whose control rows are those of an earlier one, to the last digit.

    Sites that whiten their features make all controls alike: then a regime must be the same too.
    What is nearly a copy is found from the fragments (`assembly/suspicions.py`).
    """
    for i, client in enumerate(clients):
        size = float(np.trace(client.control.covariance)) / client.n_features
        is_white = np.allclose(client.control.covariance, size * np.eye(client.n_features))
        for other in clients[:i]:
            if client.is_population or not same_rows(client.control, other.control):
                continue
            common = client.interventions.keys() & other.interventions.keys()
            twins = [
                twin
                for x in common
                for twin in zip(client.interventions[x], other.interventions[x], strict=False)
            ]
            if not is_white or any(same_rows(*twin) for twin in twins):
                words = {"client": client.name, "other": other.name}
                yield finding("duplicated-client", 0.0, SAME_ROWS, **words)
                break
