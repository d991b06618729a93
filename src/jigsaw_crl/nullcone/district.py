"""Spouses and some ancestry inside a district, from exact moments.

Let the q's of a district have Gram matrix Γ, and let `x_j` be the coordinates of c_j in them,
`x_j = Γ⁻¹⟨q, c_j⟩`. Up to the length of each q, `Γ⁻¹ = Σ` (the noise covariance), so its zeros
are the missing bidirected edges (T6), and `x_j = Σ v_j + u_j`, where `v_j` is supported on the
ancestors of j and `u_j` on its spouses. For l in `N_j` (the district without j and its spouses),
with K(l) the bidirected component of l inside N_j, ∂K(l) the spouses of j adjacent to it, and
`y_j = Σ[N_j,N_j]⁻¹ x_j[N_j]`:

- `x_j[l] = 0` means that j has no ancestor in {l} ∪ spouses(l); otherwise one of these is an
  ancestor of j;
- `y_j[l] = 0` means that j has no ancestor in {l} ∪ ∂K(l); otherwise one of these is. An ancestor s
  in ∂K(l) adds a multiple of `(Σ[N_j,N_j]⁻¹ Σ[N_j,s])[l]`, which falls off with the distance
  between l and s; where it is within rounding of zero, `y_j[l] = 0` says nothing about s.

The lines are chosen to have as many of these zeros as possible, by single and double flips. Only
facts that hold under all equally good choices are stated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray

__all__ = ["DistrictFacts", "district_facts"]


# Numbers between the tolerance and this multiple of it are neither zero nor clearly non-zero.
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
    view = _View.of(lines, outside_q, outside_c, rounding)
    flips = _flips(free)
    best = choice
    while True:
        trials = best ^ flips
        value, *values = view.scores(trials)
        better = [k for k, v in enumerate(values) if v > value]
        if not better:
            break
        best = trials[better[0] + 1]
    facts = view.facts(best)
    for trial, v in zip(trials[1:], values, strict=True):
        if v == value:
            other = view.facts(trial)
            facts = None if facts is None or other is None else facts.common(other)
    return facts


def _flips(free: BoolArray) -> IntArray:
    """Rows of zeros and ones: no line flipped, every single one of a free target, every two."""
    single = np.eye(len(free), dtype=np.intp)[free]
    first, second = np.nonzero(np.triu(np.ones((len(single), len(single)), dtype=bool), 1))
    none = np.zeros((1, len(free)), dtype=np.intp)
    return np.concatenate([none, single, single[first] + single[second]])


@dataclass(frozen=True, eq=False)
class _Algebra:
    """Of several choices of lines: Σ scaled to unit diagonal, x to match, tolerances."""

    sigma: FloatArray
    x: FloatArray  # x[l, j]
    tolerance: FloatArray


@dataclass(frozen=True, eq=False)
class _View:
    """Inner products of all 2m lines of the district: with each other, and with those outside."""

    own: FloatArray
    with_q: FloatArray
    with_c: FloatArray
    rounding: float

    @classmethod
    def of(
        cls, lines: FloatArray, outside_q: FloatArray, outside_c: FloatArray, rounding: float
    ) -> _View:
        flat = lines.reshape(-1, lines.shape[2])
        return cls(flat @ flat.T, flat @ outside_q.T, flat @ outside_c.T, rounding)

    def _lines(self, choices: IntArray) -> tuple[IntArray, IntArray]:
        """Positions of the q's and of the c's, shape (f, m) each."""
        q = 2 * np.arange(choices.shape[1]) + choices
        return q, q ^ 1

    def _algebra(self, choices: IntArray) -> _Algebra:
        q, c = self._lines(choices)
        gram = self.own[q[:, :, None], q[:, None, :]]
        values = np.linalg.eigvalsh(gram)
        tolerance = np.full(len(q), np.inf)
        sound = values[:, 0] > self.rounding * q.shape[1]
        tolerance[sound] = self.rounding * (values[sound, -1] / values[sound, 0])
        gram[~sound] = np.eye(q.shape[1])
        sigma = np.linalg.inv(gram)
        root = np.sqrt(np.diagonal(sigma, axis1=1, axis2=2))
        x = (sigma @ self.own[q[:, :, None], c[:, None, :]]) / root[:, :, None]
        return _Algebra(sigma / (root[:, :, None] * root[:, None, :]), x, tolerance)

    def scores(self, choices: IntArray) -> list[tuple[int, int, int]]:
        """Zeros of Σ; of ⟨q, c⟩ inside the district and towards the others; of x and y.

        The last are not counted (−1) when the first two already fall behind the first choice's.
        """
        # Several hundred choices at once, in about 10 MB.
        most = max(1, 1_000_000 // (choices.shape[1] * (choices.shape[1] + self.with_q.shape[1])))
        found: list[tuple[int, int, int]] = []
        for k in range(0, len(choices), most):
            found += self._scores(choices[k : k + most], found[0] if found else None)
        return found

    def _scores(
        self, choices: IntArray, rival: tuple[int, int, int] | None
    ) -> list[tuple[int, int, int]]:
        q, c = self._lines(choices)
        algebra = self._algebra(choices)
        limit = algebra.tolerance[:, None, None]

        def zeros(products: FloatArray) -> IntArray:
            return np.asarray((np.abs(products) <= limit).sum(axis=(1, 2)))

        missing = zeros(algebra.sigma) + zeros(self.with_q[q])
        apart = zeros(self.own[q[:, :, None], c[:, None, :]])
        apart = apart + zeros(self.with_c[q]) + zeros(self.with_q[c])
        found: list[tuple[int, int, int]] = []
        for k, ahead in enumerate(zip(missing.tolist(), apart.tolist(), strict=True)):
            if not np.isfinite(algebra.tolerance[k]):
                found.append((-1, -1, -1))
            elif rival is not None and ahead < rival[:2]:
                found.append((*ahead, -1))
            else:
                found.append((*ahead, self._inside(algebra, k)))
            rival = found[0] if rival is None else rival
        return found

    def _inside(self, algebra: _Algebra, k: int) -> int:
        """Zeros of x and y."""
        sigma, x, tolerance = algebra.sigma[k], algebra.x[k], algebra.tolerance[k]
        count = 0
        for j, missing in enumerate(np.abs(sigma) <= tolerance):
            outside = np.flatnonzero(missing)
            if outside.size:
                y = np.linalg.solve(sigma[outside[:, None], outside], x[outside, j])
                count += int(np.count_nonzero(np.abs(x[outside, j]) <= tolerance))
                count += int(np.count_nonzero(np.abs(y) <= tolerance))
        return count

    def facts(self, choice: IntArray) -> DistrictFacts | None:
        algebra = self._algebra(choice[None])
        sigma, x, tolerance = algebra.sigma[0], algebra.x[0], float(algebra.tolerance[0])
        if not np.isfinite(tolerance):
            return None
        size = np.abs(sigma)
        edges = size > tolerance
        if (edges & (size <= GREY * tolerance)).any():
            return None
        near = [{k for k, edge in enumerate(row) if edge} for row in edges.tolist()]
        no: set[tuple[int, int]] = set()
        one_of: set[tuple[frozenset[int], int]] = set()

        def conclude(value: float, candidates: set[int], shown: set[int], j: int) -> None:
            if abs(value) <= tolerance:
                no.update((l, j) for l in shown)
            elif abs(value) > GREY * tolerance:
                one_of.add((frozenset(candidates), j))

        for j, own in enumerate(near):
            outside = [l for l in range(len(near)) if l not in own]
            if not outside:
                continue
            inner, right = sigma[outside][:, outside], x[outside, j]
            home = _components(near, outside)
            spouses = sorted(own - {j})
            solution = np.linalg.solve(inner, np.column_stack([right, sigma[outside][:, spouses]]))
            seen = np.abs(solution[:, 1:]) > GREY**2 * tolerance
            for row, (l, x_l) in enumerate(zip(outside, right.tolist(), strict=True)):
                conclude(x_l, near[l], near[l], j)
                touching = {s for s in spouses if near[s] & home[l]}
                # Far from a spouse, y is within rounding of zero although it is an ancestor.
                shown = {s for k, s in enumerate(spouses) if seen[row, k]} & touching
                conclude(float(solution[row, 0]), {l} | touching, {l} | shown, j)
        pairs = frozenset((a, b) for a, group in enumerate(near) for b in group if a < b)
        return DistrictFacts(pairs, frozenset(no), frozenset(one_of))


def _components(near: list[set[int]], nodes: list[int]) -> dict[int, set[int]]:
    """For each of the nodes, its component in the graph restricted to them."""
    home: dict[int, set[int]] = {}
    for start in nodes:
        if start in home:
            continue
        component, waiting = {start}, [start]
        while waiting:
            new = (near[waiting.pop()] & set(nodes)) - component
            component |= new
            waiting += new
        home.update(dict.fromkeys(component, component))
    return home
