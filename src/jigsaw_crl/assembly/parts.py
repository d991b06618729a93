"""Studies with more labels than orders are sampled of: parts that share no client.

Labels are joined if a client has both of them, directly or through others. No evidence speaks about
two labels that are not, so each part is assembled on its own, and a pair between two parts is
undetermined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from jigsaw_crl.assembly.order import GlobalOrder
from jigsaw_crl.assembly.panel import Panel, check_size
from jigsaw_crl.assembly.posterior import Convergence
from jigsaw_crl.assembly.verdict import OPEN
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.evidence.priors import IN_DISTRICT
from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["connected_parts", "joined"]


def connected_parts(panel: Panel) -> list[list[Fragment]]:
    """The fragments, those that are joined by shared labels together.

    Raises
    ------
    InputError
        A part has more labels than orders are sampled of.
    """
    p, n = len(panel.labels), len(panel.claims)
    label = np.concatenate(panel.members)
    client = p + np.repeat(np.arange(n), [len(m) for m in panel.members])
    graph = coo_array((np.ones(len(label)), (label, client)), shape=(p + n, p + n))
    n_parts, part = connected_components(graph, directed=False)
    check_size(int(np.bincount(part[:p]).max()))
    found: list[list[Fragment]] = [[] for _ in range(n_parts)]
    for fragment, k in zip(panel.fragments, part[p:].tolist(), strict=True):
        found[k].append(fragment)
    return found


def joined(panel: Panel, parts: Sequence[GlobalOrder]) -> GlobalOrder:
    """One order of all parts; pairs between them are undetermined and have their prior probability.

    Parameters
    ----------
    panel : Panel
        Of all fragments.
    parts : sequence of GlobalOrder
    """
    p = len(panel.labels)
    exact = all(part.mode == "exact" for part in parts)
    verdicts = np.full((p, p), OPEN, dtype=np.int8)
    decoded = np.zeros((p, p), dtype=bool)
    sampled = np.full((p, p), IN_DISTRICT)
    evidence = np.zeros((p, p))
    disputed: list[tuple[int, int]] = []
    for part in parts:
        at = np.array([panel.position[label] for label in part.labels])
        grid = np.ix_(at, at)
        verdicts[grid], decoded[grid], evidence[grid] = part.verdicts, part.decoded, part.evidence
        sampled[grid] = part.probabilities
        if part.convergence is not None:
            disputed += [(at[a], at[d]) for a, d in part.convergence.disputed]
    runs = [part.convergence for part in parts if part.convergence is not None]
    note = (
        f"the labels fall apart into {pluralise(len(parts), 'part')} that share no client: pairs "
        "between them are undetermined, and effects are not pooled"
    )
    weights = {name: w for part in parts for name, w in part.client_weights.items()}
    order = replace(
        parts[0],
        labels=panel.labels,
        mode="exact" if exact else "evidence",
        verdicts=verdicts,
        decoded=decoded,
        sampled=sampled,
        client_weights={name: weights[name] for name in panel.names},
        notes=(note, *dict.fromkeys(text for part in parts for text in part.notes)),
        fragments=panel.fragments,
        rate=max(part.rate for part in parts),
        disagreement=any(part.disagreement for part in parts),
        convergence=_least_agreed(runs, disputed),
    )
    order.__dict__["panel"], order.__dict__["evidence"] = panel, evidence
    return order


def _least_agreed(
    runs: Sequence[Convergence], disputed: Sequence[tuple[int, int]]
) -> Convergence | None:
    """What holds for the chains of all parts."""
    if not runs:
        return None
    return Convergence(
        all(run.converged for run in runs),
        max(run.r_hat for run in runs),
        max(run.worst_error for run in runs),
        min(run.sweeps for run in runs),
        min(run.chains for run in runs),
        tuple(disputed),
    )
