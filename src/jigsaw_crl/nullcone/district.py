"""Spouses and some ancestry inside a district, from exact moments.

Let the q's of a district have Gram matrix Γ, and let `x_j` be the coordinates of c_j in them,
`x_j = Γ⁻¹⟨q, c_j⟩`. Up to the length of each q, `Γ⁻¹ = Σ` (the noise covariance), so its zeros
are the missing bidirected edges (T6), and `x_j = Σ v_j + u_j`, where `v_j` is supported on the
ancestors of j and `u_j` on its spouses. Let N be labels that are neither j nor its spouses, l one
of them, K(l) the bidirected component of l inside N, ∂K(l) the labels outside N, without j, that
are adjacent to it, and `y_j = Σ[N,N]⁻¹ x_j[N]`. Then

- `x_j[l] = 0` means that j has no ancestor in {l} ∪ spouses(l); otherwise one of these is an
  ancestor of j;
- `y_j[l] = 0` means that j has no ancestor in {l} ∪ ∂K(l); otherwise one of these is. An ancestor s
  in ∂K(l) adds the multiple `(Σ[N,N]⁻¹ Σ[N,s])[l]` of its effect, which falls off with the distance
  between l and s.

Every number has a bound on its rounding error: see `district_lines`. Well within the bound it is
zero, far beyond it is not, and between it is *open*. N holds the labels that are certainly no
spouses; an open edge counts where it may add candidates, and not where it would rule them out. "No
ancestor" is stated only if an effect of size `HIDDEN` would have shown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, IntArray
from jigsaw_crl.nullcone.district_lines import HIDDEN, District, Numbers

__all__ = ["DistrictFacts", "district_facts"]


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


def district_facts(district: District, choice: IntArray, free: BoolArray) -> DistrictFacts | None:
    """Facts about one district; None when it is too large or too ill-conditioned to say.

    Parameters
    ----------
    district : District
    choice : array of int, shape (m,)
        Where the search for the lines that are possible starts.
    free : array of bool, shape (m,)
        Targets with two lines.
    """
    if len(choice) > LARGEST_DISTRICT:
        return None
    possible = district.possible(choice, free)
    if possible is None:
        return None
    facts: DistrictFacts | None = None
    for one in possible:
        own = _facts(*one.of_first)
        facts = own if facts is None else facts.common(own)
    return facts


def _facts(rho: Numbers, x: Numbers, y: Numbers) -> DistrictFacts:
    """Facts under one choice of lines."""
    missing, surely, maybe = rho.missing, _sets(rho.clear), _sets(~rho.missing)
    no: set[tuple[int, int]] = set()
    one_of: set[tuple[frozenset[int], int]] = set()

    def conclude(number: Numbers, at: tuple[int, int], weight: dict[int, float]) -> None:
        """What a number says that adds up multiples of effects, by label."""
        if number.clear[at]:
            one_of.add((frozenset(weight), at[1]))
        elif number.zero[at]:
            least = number.bound[at] / HIDDEN
            no.update((a, at[1]) for a, w in weight.items() if abs(w) >= least)

    for j, apart in enumerate(missing):
        N, rest = np.flatnonzero(apart), np.flatnonzero(~apart)
        if not N.size:
            continue
        home = _components(maybe, N.tolist())
        through = np.linalg.solve(rho.value[np.ix_(N, N)], rho.value[np.ix_(N, rest)])
        for l, row in zip(N.tolist(), through, strict=True):
            near = {m: float(rho.value[l, m]) if m in surely[l] else 0.0 for m in maybe[l]}
            conclude(x, (l, j), near)
            beside = zip(rest.tolist(), row.tolist(), strict=True)
            far = {s: w for s, w in beside if s != j and maybe[s] & home[l]}
            conclude(y, (l, j), {l: 1.0} | far)
    known = (missing | rho.clear).all()
    pairs = frozenset((a, b) for a, group in enumerate(surely) for b in group if a < b)
    return DistrictFacts(pairs if known else None, frozenset(no), frozenset(one_of))


def _sets(edges: BoolArray) -> list[set[int]]:
    return [{k for k, edge in enumerate(row) if edge} for row in edges.tolist()]


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
