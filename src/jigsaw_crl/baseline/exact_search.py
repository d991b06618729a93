"""Exact moments, lines 6 to 11 of Algorithm 2: the smallest label set of matching dimension.

Call C *tight* when `dim P(C; W) = |C|`. Trying all sets is exponential in the size of the block;
this module needs polynomial time. Choose one vector `w_j` in each label's space so that the w's are
linearly independent, and let `w'_j` span the rest of it. If C is tight then the |C| independent
vectors `w_j, j ∈ C` span `P(C; W)`; so

    C is tight  ⟺  every w'_j with j ∈ C lies in span{w_i : i ∈ C}
               ⟺  C is closed under the arcs j → i for each i that w'_j needs in the basis w .

The smallest tight set is therefore a class of mutually reachable labels that no arc leaves. Classes
are formed at every threshold on the coefficients, and their dimensions decide among them as in the
paper's search. If the w's cannot be made independent (the data violate the paper's assumptions),
all label sets are tried, smallest first.
"""

from __future__ import annotations

from itertools import combinations, islice

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.order import strongly_connected
from jigsaw_crl.baseline.budget import Budget
from jigsaw_crl.baseline.planes import Space, dimension

__all__ = ["smallest_tight_set"]


# The w's count as independent if the smallest singular value of the unit vectors exceeds this.
# Coefficients then carry at most 1e6 times the error of the vectors; dimensions are checked anyway.
INDEPENDENT = 1e-6
THRESHOLDS = tuple(10.0**-e for e in range(1, 15))
# No further sweeps and starts once the smallest singular value exceeds this.
WELL_SEPARATED = 1e-2
SWEEPS = 6
STARTS = 4
BATCH = 2048


def smallest_tight_set(space: Space, budget: Budget) -> tuple[int, ...]:
    """The smallest C with `dim P(C; W) = |C|`; all labels when no smaller set has it.

    Parameters
    ----------
    space : Space
        Bases of the remaining labels in the orthogonal complement of W.
    budget : Budget
        Each set whose dimension is computed counts.

    Returns
    -------
    tuple of int
        Positions in `space`, ascending.
    """
    m = len(space.vectors)
    everything = tuple(range(m))
    w = _independent_choice(space)
    if w is None:
        return _by_trial(space, budget)
    for members in _closed_classes(space, w):
        if len(members) == m:
            break
        budget.spend(1)
        if dimension(space, [members])[0] == len(members):
            return members
    return everything


def _by_trial(space: Space, budget: Budget) -> tuple[int, ...]:
    """The same by the paper's enumeration: sets of one label come first, then sets of two."""
    m = len(space.vectors)
    for r in range(1, m):  # line 10: r ← r + 1
        subsets = combinations(range(m), r)  # line 6
        while batch := list(islice(subsets, BATCH)):
            budget.spend(len(batch))
            hits = np.flatnonzero(dimension(space, batch) == r)  # line 7
            if hits.size:
                return batch[int(hits[0])]  # line 8
    return tuple(range(m))


def _independent_choice(space: Space) -> FloatArray | None:
    """Independent unit vectors, one in each label's space; shape (s, m), None if impossible.

    From a random start, each vector in turn moves to the direction of its space that is farthest
    from the span of the others: the projection of its dual vector. |det| never decreases.
    """
    m, s, k = space.vectors.shape
    if m > s:
        return None
    frames = np.zeros((m, s, k))
    for j, vectors in enumerate(space.vectors):
        u, sigma, _ = np.linalg.svd(vectors, full_matrices=False)
        # Directions with a small singular value are inaccurate; the label has a better one.
        kept = int(np.count_nonzero(sigma > np.sqrt(space.errors[j])))
        frames[j, :, :kept] = u[:, :kept]
    rng = np.random.default_rng(0)  # any start will do; a fixed seed makes results reproducible
    best, best_sigma = None, INDEPENDENT
    for _ in range(STARTS):
        w = _unit_columns(np.einsum("msk,mk->sm", frames, rng.normal(size=(m, k))))
        for _ in range(SWEEPS):
            smallest = float(np.linalg.svd(w, compute_uv=False)[-1])
            if smallest > best_sigma:
                best, best_sigma = w.copy(), smallest
            if best_sigma > WELL_SEPARATED:
                return best
            _spread(w, frames)
    return best


def _spread(w: FloatArray, frames: FloatArray) -> None:
    """Move each column of w in turn away from the span of the others, inside its own space."""
    for j, frame in enumerate(frames):
        dual = np.linalg.pinv(w)[j]
        moved = frame @ (frame.T @ dual)
        size = float(np.linalg.norm(moved))
        if size > 0:
            w[:, j] = moved / size


def _unit_columns(w: FloatArray) -> FloatArray:
    norms = np.linalg.norm(w, axis=0)
    return np.asarray(w / np.where(norms > 0, norms, 1.0), dtype=np.float64)


def _closed_classes(space: Space, w: FloatArray) -> list[tuple[int, ...]]:
    """Classes of labels that no arc leaves, at every threshold, smallest first."""
    m = len(space.vectors)
    needs = _needs(space, w)
    found: set[tuple[int, ...]] = set()
    for threshold in THRESHOLDS:
        arcs = needs > threshold
        inside = arcs[:, :m]
        for members in strongly_connected(inside):
            others = np.ones(m + 1, dtype=bool)  # the last column is the residual
            others[members] = False
            if not arcs[members][:, others].any():
                found.add(tuple(members))
    return sorted(found, key=lambda members: (len(members), members))


def _needs(space: Space, w: FloatArray) -> FloatArray:
    """Size of the coefficients of w'_j in the basis w, shape (m, m + 1); last column: residual."""
    m = w.shape[1]
    dual = np.linalg.pinv(w)
    needs = np.zeros((m, m + 1))
    for j, vectors in enumerate(space.vectors):
        rest = vectors - np.outer(w[:, j], w[:, j] @ vectors)
        coefficients = dual @ rest
        needs[j, :m] = np.linalg.norm(coefficients, axis=1)
        needs[j, m] = np.linalg.norm(rest - w @ coefficients)
    return needs
