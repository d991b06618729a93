"""Check the paper's Assumptions 1, 2 and 3 in simulated worlds.

python benchmarks/assumptions.py        # the paper's settings A, B and C, three seeds each
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.order import strongly_connected
from jigsaw_crl.truth.simulate import SEM, SETTINGS, Change, Truth, World, setting

# An entry below this share of the largest counts as zero: sums over hidden paths have some tens of
# terms, and so a relative rounding error near 1e-15.
CANCELLATION = 1e-12


@dataclass(frozen=True)
class Degeneracy:
    """A failure of one condition of Assumption 2.

    Parameters
    ----------
    client : str
    condition : {"i", "ii", "iii"}
    labels : frozenset of str
        (i), (ii): the intervention, and the parent or spouse that it does not affect; (iii): the
        block. As printed, (iii) is sufficient for recovery but not necessary, and a sparse block
        can fail it by its structure alone.
    """

    client: str
    condition: str
    labels: frozenset[str]


@dataclass(frozen=True)
class AssumptionReport:
    """Which of the paper's assumptions fail, and where.

    Parameters
    ----------
    missing_interventions : tuple of (client, label)
        Assumption 1: latents that a client accesses but never intervenes on.
    unseen : tuple of str
        Labels that no client accesses.
    degenerate : tuple of Degeneracy
        Assumption 2.
    unwitnessed : tuple of (ancestor, descendant)
        Assumption 3: Hasse edges that no client shows as a parent relation of singleton blocks.
    """

    missing_interventions: tuple[tuple[str, str], ...]
    unseen: tuple[str, ...]
    degenerate: tuple[Degeneracy, ...]
    unwitnessed: tuple[tuple[str, str], ...]

    @property
    def holds(self) -> dict[int, bool]:
        """Assumption number to whether it holds."""
        return {1: not self.missing_interventions, 2: not self.degenerate, 3: not self.unwitnessed}

    def __str__(self) -> str:
        missing = [f"{c} never intervenes on {x}" for c, x in self.missing_interventions]
        failing = [f"{d.client}: ({d.condition}) {sorted(d.labels)}" for d in self.degenerate]
        edges = ", ".join(f"{a} -> {d}" for a, d in self.unwitnessed)
        reasons = (", ".join(missing), ", ".join(failing), edges and f"no client witnesses {edges}")
        return "\n".join(
            f"Assumption {number}: {f'fails ({why})' if why else 'holds'}"
            for number, why in enumerate(reasons, 1)
        )


def check_assumptions(
    world: World, interventions: Mapping[int, Iterable[str]] | None = None
) -> AssumptionReport:
    """Check Assumptions 1, 2 and 3 on a simulated world; off-target effects are not considered.

    Parameters
    ----------
    world : World
    interventions : mapping of client number to labels, optional
        Labels that a client intervenes on; by default all of its latents.

    Returns
    -------
    AssumptionReport
    """
    truths = [world.truth(k) for k in range(world.n_clients)]
    used = {k: frozenset(labels) for k, labels in (interventions or {}).items()}
    missing = [
        (t.client, label)
        for k, t in enumerate(truths)
        for label in t.labels
        if label not in used.get(k, t.labels)
    ]
    seen = {label for t in truths for label in t.labels}
    witnessed = {edge for t in truths for edge in _witnessed(t)}
    return AssumptionReport(
        missing_interventions=tuple(missing),
        unseen=tuple(label for label in world.labels if label not in seen),
        degenerate=tuple(
            failure
            for k, t in enumerate(truths)
            for failure in _degeneracies(world, k, t, used.get(k, frozenset(t.labels)))
        ),
        unwitnessed=tuple(sorted(world.order.covers() - witnessed)),
    )


def _witnessed(truth: Truth) -> list[tuple[str, str]]:
    """Parent relations between singleton blocks."""
    return [
        (*above, *below)  # type: ignore[misc]
        for above, below in truth.block_order.covers()
        if len(above) == len(below) == 1
    ]


def _degeneracies(world: World, k: int, truth: Truth, used: frozenset[str]) -> list[Degeneracy]:
    nodes, found = world.views[k].nodes, []
    d, u = {}, {}
    for label in truth.labels:
        if label in used:
            d[label], u[label] = _effects(world.sem, nodes, world.change(k, label))
    position = {label: i for i, label in enumerate(truth.labels)}
    for label in d:
        parents = [a for a, c in truth.parents if c == label]
        spouses = [x for pair in truth.spouses if label in pair for x in pair - {label}]
        found += [
            Degeneracy(truth.client, condition, frozenset((label, other)))
            for condition, vector, others in (("i", d[label], parents), ("ii", u[label], spouses))
            for other in others
            if not _nonzero(vector)[position[other]]
        ]
    for block in truth.blocks:
        rows = [position[label] for label in truth.labels if label in block]
        if block <= d.keys() and not _spreads(truth, rows, d, u):
            found.append(Degeneracy(truth.client, "iii", block))
    return found


def _effects(sem: SEM, O: IntArray, change: Change) -> tuple[FloatArray, FloatArray]:
    """`d = Δa_O + A_MOᵀ (I − A_MM)⁻ᵀ Δa_M` and `u = B Σ_MM (I − A_MM)⁻ᵀ Δa_M`."""
    M = np.setdiff1d(np.arange(sem.n_latent), O)
    A, delta = sem.A, change.weights
    rest = (np.eye(len(M)) - A[np.ix_(M, M)]).T
    back = np.linalg.solve(rest, delta[M])
    B = np.linalg.solve(rest, A[np.ix_(O, M)].T).T
    u: FloatArray = np.asarray(B @ (sem.variances[M] * back), dtype=np.float64)
    return delta[O] + A[np.ix_(M, O)].T @ back, u


def _spreads(
    truth: Truth, rows: list[int], d: dict[str, FloatArray], u: dict[str, FloatArray]
) -> bool:
    """Condition (iii): every proper part B of a block has `|∪ N_i| > |B|`.

    In other words, the zero pattern N is fully indecomposable: it has a perfect matching, and with
    the matching on the diagonal it is strongly connected. This takes polynomial time.
    """
    A, Sigma = truth.marginal.A[np.ix_(rows, rows)], truth.marginal.Sigma[np.ix_(rows, rows)]
    rest = np.linalg.inv(np.eye(len(rows)) - A.T)
    pattern = np.array(
        [
            _nonzero(u[label][rows] + Sigma @ rest @ d[label][rows])
            for label in (truth.labels[i] for i in rows)
        ]
    )
    return fully_indecomposable(pattern)


def fully_indecomposable(pattern: BoolArray) -> bool:
    """Whether every proper nonempty set of rows reaches more columns than it has rows."""
    if len(pattern) == 1:
        return True
    # Here because scipy.sparse takes a quarter of a second to import.
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    match = maximum_bipartite_matching(csr_array(pattern.astype(np.int8)), perm_type="column")
    return bool((match >= 0).all()) and len(strongly_connected(pattern[:, match])) == 1


def _nonzero(vector: FloatArray) -> BoolArray:
    largest = float(np.abs(vector).max(initial=0.0))
    return np.asarray(np.abs(vector) > CANCELLATION * largest, dtype=bool)


if __name__ == "__main__":
    for name in SETTINGS:
        for seed in range(3):
            print(f"setting {name}, seed {seed}", check_assumptions(setting(name, seed)), sep="\n")
