"""What can be said inside a district from exact moments? Spouses, and some ancestry.

Let the q's of a district have Gram matrix Γ, and let `x_j` be the coordinates of c_j in them,
`x_j = Γ⁻¹⟨q, c_j⟩`. Up to the length of each q, `Γ⁻¹ = Σ` (the noise covariance), so its zeros
are the missing bidirected edges (T6), and `x_j = Σ v_j + u_j`, where `v_j` is supported on the
ancestors of j and `u_j` on its spouses. For l in `N_j` (the district without j and its spouses),
with K(l) the bidirected component of l inside N_j, ∂K(l) the spouses of j adjacent to it, and
`y_j = Σ[N_j,N_j]⁻¹ x_j[N_j]`:

- `x_j[l] = 0` says that j has no ancestor in {l} ∪ spouses(l); otherwise one of them is one;
- `y_j[l] = 0` says that j has no ancestor in {l} ∪ ∂K(l); otherwise one of them is one.

The lines are chosen to have as many of these zeros as possible, by single and double flips; what
is said is what all equally good choices say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

__all__ = ["DistrictFacts", "district_facts"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.intp]

# Between "zero" and "clearly not zero" lies a factor in which nothing is said.
GREY = 1e3
# The search over lines grows with the square of the district; larger ones are left open.
LARGEST_DISTRICT = 32


@dataclass(frozen=True)
class DistrictFacts:
    """Facts about one district, by position in it.

    Parameters
    ----------
    spouses : frozenset of (int, int)
        Bidirected edges, i < j; None where a number is neither zero nor clearly different.
    no : frozenset of (int, int)
        `(a, d)`: a is no ancestor of d.
    one_of : frozenset of (frozenset of int, int)
        `(candidates, d)`: at least one candidate is an ancestor of d.
    """

    spouses: frozenset[tuple[int, int]] | None
    no: frozenset[tuple[int, int]]
    one_of: frozenset[tuple[frozenset[int], int]]

    def common(self, other: DistrictFacts) -> DistrictFacts:
        return DistrictFacts(
            self.spouses if self.spouses == other.spouses else None,
            self.no & other.no,
            self.one_of & other.one_of,
        )


def district_facts(
    lines: FloatArray,
    choice: IntArray,
    free: BoolArray,
    outside_q: FloatArray,
    outside_c: FloatArray,
    rounding: float,
) -> DistrictFacts | None:
    """Facts about one district; None when it is too large or too ill-conditioned to say.

    Parameters
    ----------
    lines : array, shape (m, 2, d)
        Unit lines of the district's targets; slot 1 is zero for a target of rank 1.
    choice : array of int, shape (m,)
        Where the search for the best lines starts.
    free : array of bool, shape (m,)
        Targets with two lines.
    outside_q, outside_c : array, shape (k, d)
        Unit q's and c's of the targets in other districts.
    rounding : float
        Relative rounding error of the whitened moments.
    """
    if len(lines) > LARGEST_DISTRICT:
        return None
    view = _View(lines, outside_q, outside_c, rounding)
    best, value = choice.copy(), view.score(choice)
    improved = True
    while improved:
        improved = False
        for flip in _flips(free):
            trial = best.copy()
            trial[list(flip)] ^= 1
            trial_value = view.score(trial, value)
            if trial_value > value:
                best, value, improved = trial, trial_value, True
                break
    facts = view.facts(best)
    for flip in _flips(free):
        trial = best.copy()
        trial[list(flip)] ^= 1
        if view.score(trial, value) == value:
            other = view.facts(trial)
            facts = None if facts is None or other is None else facts.common(other)
    return facts


def _flips(free: BoolArray) -> Iterator[tuple[int, ...]]:
    nodes = np.flatnonzero(free).tolist()
    yield from ((i,) for i in nodes)
    yield from combinations(nodes, 2)


@dataclass(frozen=True, eq=False)
class _View:
    lines: FloatArray
    outside_q: FloatArray
    outside_c: FloatArray
    rounding: float

    def _algebra(self, choice: IntArray) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Σ scaled to unit diagonal, x with matching scale, ⟨q, c⟩, and the tolerance."""
        rows = np.arange(len(choice))
        q, c = self.lines[rows, choice], self.lines[rows, 1 - choice]
        gram = q @ q.T
        values = np.linalg.eigvalsh(gram)
        if values[0] <= self.rounding * len(choice):
            return gram, gram, gram, np.inf
        sigma = np.linalg.inv(gram)
        root = np.sqrt(np.diagonal(sigma))
        inner = q @ c.T
        x = (sigma @ inner) / root[:, None]  # x[l, j]
        return sigma / np.outer(root, root), x, inner, self.rounding * float(values[-1] / values[0])

    def score(
        self, choice: IntArray, rival: tuple[int, int, int] = (-1, -1, -1)
    ) -> tuple[int, int, int]:
        """Zeros of Σ; of ⟨q, c⟩ inside the district and towards the others; of x and y.

        The last are not counted (−1) when the first two already fall behind the rival's.
        """
        sigma, x, inner, tolerance = self._algebra(choice)
        if not np.isfinite(tolerance):
            return (-1, -1, -1)
        rows = np.arange(len(choice))
        q, c = self.lines[rows, choice], self.lines[rows, 1 - choice]
        products = (inner, q @ self.outside_c.T, self.outside_q @ c.T)
        zeros = [np.abs(product) <= tolerance for product in products]
        across = np.abs(q @ self.outside_q.T) <= tolerance
        edges = np.abs(sigma) > tolerance
        ahead = (int((~edges).sum()) + int(across.sum()), sum(int(z.sum()) for z in zeros))
        if ahead < rival[:2]:
            return (*ahead, -1)
        in_district = 0
        for j in range(len(choice)):
            outside = np.flatnonzero(~edges[j])
            if outside.size:
                y = np.linalg.solve(sigma[np.ix_(outside, outside)], x[outside, j])
                in_district += int((np.abs(x[outside, j]) <= tolerance).sum())
                in_district += int((np.abs(y) <= tolerance).sum())
        return (*ahead, in_district)

    def facts(self, choice: IntArray) -> DistrictFacts | None:
        sigma, x, _, tolerance = self._algebra(choice)
        if not np.isfinite(tolerance):
            return None
        size = np.abs(sigma)
        if ((size > tolerance) & (size <= GREY * tolerance)).any():
            return None
        edges = size > tolerance
        no: set[tuple[int, int]] = set()
        one_of: set[tuple[frozenset[int], int]] = set()

        def conclude(value: float, candidates: set[int], j: int) -> None:
            if abs(value) <= tolerance:
                no.update((l, j) for l in candidates)
            elif abs(value) > GREY * tolerance:
                one_of.add((frozenset(candidates), j))

        for j in range(len(choice)):
            outside = np.flatnonzero(~edges[j])
            if outside.size == 0:
                continue
            inner = sigma[np.ix_(outside, outside)]
            y = np.linalg.solve(inner, x[outside, j])
            spouses = set(np.flatnonzero(edges[j]).tolist()) - {j}
            for l, component in zip(outside.tolist(), _components(edges, outside), strict=True):
                conclude(x[l, j], set(np.flatnonzero(edges[l]).tolist()), j)
                touching = {s for s in spouses if edges[s, component].any()}
                conclude(y[np.flatnonzero(outside == l)[0]], {l} | touching, j)
        pairs = np.argwhere(np.triu(edges, 1))
        return DistrictFacts(
            frozenset((int(a), int(b)) for a, b in pairs), frozenset(no), frozenset(one_of)
        )


def _components(edges: BoolArray, nodes: IntArray) -> list[list[int]]:
    """For each of the nodes, its component in the graph restricted to them."""
    from jigsaw_crl.order import strongly_connected

    groups = strongly_connected(edges[np.ix_(nodes, nodes)])
    home = {i: [int(nodes[k]) for k in group] for group in groups for i in group}
    return [home[i] for i in range(len(nodes))]
