"""Spouses and some ancestry inside a district, from exact moments.

Let the unit q's of a district have Gram matrix Γ, and let `x_j` be the coordinates of c_j in them,
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

Every number has a bound on what the errors of the lines (`exact`) add to it. Write `Σ = s ρ s` with
ρ of unit diagonal, and x divided by s. If the q's are known up to errors of length `e_a` and the
unit c's up to `e'_j`, then to first order

    |δρ[l, m]| ≤ w_l + w_m ,     |δx_j[l]| ≤ e'_j + Σ_a s_a e_a |x_j[a]| + w_l ,
    w_l = Σ_a |ρ[l, a]| s_a e_a ,

and `y_j` is off by at most `|ρ[N,N]⁻¹| (|δx_j[N]| + |δρ[N,N]| |y_j|)`. Between zero and certainly
not zero, a number is *open*. N holds the labels that are certainly no spouses; an open edge counts
where it may add candidates, and not where it would rule them out. "No ancestor" is stated only if
an effect of size `HIDDEN` would have shown.

A wrong line loses zeros of ρ, x, y and of products with lines outside the district, and generically
gains none: with c_j in place of q_j, `ρ[l, m]` gains multiples of `x_j[l] x_j[m]` and of
`x_j[l] ρ[j, m]`, and `x_i[l]` a multiple of `x_i[j] x_j[l]`. So one choice of lines refutes another
if it certainly has more zeros of one of these kinds. What all choices say that are left is stated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.order import transitive_closure
from jigsaw_crl.nullcone.exact import CLEAR, SURE

__all__ = ["DistrictFacts", "district_facts"]


# A zero counts as one if a number of this size would show; ρ and effects are of order one.
HIDDEN = 1e-8
# The bounds hold while the errors of the lines are below this share of Γ's smallest eigenvalue.
FIRST_ORDER = 0.01
# The search over lines grows with the square of the district; larger ones are left open, and those
# with more choices of lines that differ in their zeros.
LARGEST_DISTRICT, MOST_CHOICES = 32, 64


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


@dataclass(frozen=True, eq=False)
class _Numbers:
    """Some numbers of each of f choices of lines, shape (f, m, k), and bounds on their errors."""

    value: FloatArray
    bound: FloatArray

    @cached_property
    def zero(self) -> BoolArray:
        return np.asarray(np.abs(self.value) <= SURE * self.bound)

    @cached_property
    def missing(self) -> BoolArray:
        """Zero, where a number of size `HIDDEN` would show."""
        return self.zero & (self.bound <= HIDDEN)

    @cached_property
    def clear(self) -> BoolArray:
        """Certainly not zero."""
        return np.asarray(np.abs(self.value) > CLEAR * self.bound)

    def behind(self, other: _Numbers) -> BoolArray:
        """Has the other certainly more zeros? Choice by choice, by the larger of both bounds."""
        near = np.abs(self.value) <= CLEAR * np.maximum(self.bound, other.bound)
        near |= np.isnan(self.value) & other.zero
        return np.asarray(near.sum(axis=(1, 2)) < other.zero.sum(axis=(1, 2)))

    def of(self, which: IntArray) -> _Numbers:
        """Those of some choices."""
        return _Numbers(self.value[which], self.bound[which])


@dataclass(frozen=True, eq=False)
class _Choices:
    """Several choices of lines, shape (f, m), whether their bounds hold, and their numbers.

    The numbers are: ρ and products with q's outside; products with c's outside; x; and y, which
    takes longest and is computed where the others leave a choice open.
    """

    lines: IntArray
    sound: BoolArray
    numbers: tuple[_Numbers, ...]

    def of(self, which: IntArray) -> _Choices:
        return _Choices(
            self.lines[which], self.sound[which], tuple(n.of(which) for n in self.numbers)
        )

    def with_y(self) -> _Choices:
        """With y, where N is all that is certainly no spouse; NaN off N."""
        first, _, x = self.numbers[:3]
        m = self.lines.shape[1]
        rho = _Numbers(first.value[:, :, :m], first.bound[:, :, :m])
        missing = rho.missing
        y, bound = np.full_like(x.value, np.nan), np.zeros_like(x.bound)
        for j in np.flatnonzero(missing.any(axis=(0, 2))).tolist():
            N = missing[:, j]
            block = N[:, :, None] & N[:, None, :]
            # The inverse of ρ on N, and of the identity off it.
            inverse = np.linalg.inv(np.where(block, rho.value, np.eye(m)))
            found = inverse @ np.where(N, x.value[:, :, j], 0.0)[:, :, None]
            off = np.where(block, rho.bound, 0.0) @ np.abs(found) + x.bound[:, :, j, None]
            y[:, :, j] = np.where(N, found[:, :, 0], np.nan)
            bound[:, :, j] = (np.where(block, np.abs(inverse), 0.0) @ off)[:, :, 0]
        return replace(self, numbers=(*self.numbers[:3], _Numbers(y, bound)))

    def behind(self, other: _Choices) -> BoolArray:
        """Does the other refute these? Choice by choice, by the numbers that both have."""
        pairs = zip(self.numbers, other.numbers, strict=False)
        fewer = np.any([a.behind(b) for a, b in pairs], axis=0)
        return np.asarray((~self.sound | fewer) & other.sound)

    def pattern(self, k: int) -> bytes:
        """Which numbers of one choice are zero and which are certainly not."""
        return b"".join(x[k].tobytes() for n in self.numbers for x in (n.zero, n.clear))


def district_facts(
    lines: FloatArray,
    error: FloatArray,
    outside: FloatArray,
    error_outside: FloatArray,
    choice: IntArray,
    free: BoolArray,
) -> DistrictFacts | None:
    """Facts about one district; None when it is too large or too ill-conditioned to say.

    Parameters
    ----------
    lines : array, shape (m, 2, d)
        Unit lines of its labels.
    error : array, shape (m,)
        How far either line may be off, as an angle.
    outside, error_outside : array, shapes (k, 2, d) and (k,)
        Those of the other labels: first q, then c.
    choice : array of int, shape (m,)
        Where the search for the lines that are possible starts.
    free : array of bool, shape (m,)
        Targets with two lines.
    """
    if len(choice) > LARGEST_DISTRICT:
        return None
    district = _District(lines, error, outside, error_outside)
    possible = district.possible(choice, free)
    if possible is None:
        return None
    found = [_facts(*one.numbers) for one in possible]
    spouses = {facts.spouses for facts in found}
    return DistrictFacts(
        found[0].spouses if len(spouses) == 1 else None,
        frozenset.intersection(*(facts.no for facts in found)),
        frozenset.intersection(*(facts.one_of for facts in found)),
    )


@dataclass(frozen=True, eq=False)
class _District:
    """Lines of a district and those outside it, as for `district_facts`."""

    lines: FloatArray
    error: FloatArray
    outside: FloatArray
    error_outside: FloatArray

    def possible(self, choice: IntArray, free: BoolArray) -> list[_Choices] | None:
        """Choices that no other one refutes, reached by flips of one or two lines at a time.

        Of choices with the same zeros that say the same, one is returned. None if there are too
        many, or if each refutes another.
        """
        single = np.eye(len(free), dtype=np.intp)[free]
        first, second = np.triu_indices(len(single), 1)
        flips = np.concatenate([single, single[first] + single[second]])
        best = self._choices(choice[None]).with_y()
        found, waiting, tried = {best.pattern(0): best}, [best], {choice.tobytes()}
        while waiting:
            some = self._choices(waiting.pop().lines ^ flips)
            refuting, refuted = best.behind(some), some.behind(best)
            if not refuting.any():
                some = some.of(np.flatnonzero(~refuted)).with_y()
                refuting, refuted = best.behind(some), some.behind(best)
            if refuting.any():
                # One that is refuted in turn is a step towards one that is not.
                best = some.of(np.array([(2 * refuting - refuted).argmax()])).with_y()
                if best.lines.tobytes() in tried:
                    return None
                tried.add(best.lines.tobytes())
                found, waiting = {best.pattern(0): best}, [best]
                continue
            for k in np.flatnonzero(~refuted).tolist():
                if (pattern := some.pattern(k)) not in found:
                    found[pattern] = some.of(np.array([k]))
                    waiting.append(found[pattern])
            if len(found) > MOST_CHOICES:
                return None
        return list(found.values()) if best.sound.all() else None

    def _choices(self, lines: IntArray) -> _Choices:
        rows, e = np.arange(lines.shape[1]), self.error
        q, c = self.lines[rows, lines], self.lines[rows, 1 - lines]
        gram = q @ np.swapaxes(q, 1, 2)
        sound = e.sum() < FIRST_ORDER * np.linalg.eigvalsh(gram)[:, 0]
        gram[~sound] = np.eye(len(rows))
        sigma = np.linalg.inv(gram)
        s = np.sqrt(np.diagonal(sigma, axis1=1, axis2=2))
        rho = sigma / (s[:, :, None] * s[:, None, :])
        x = (sigma @ (q @ np.swapaxes(c, 1, 2))) / s[:, :, None]
        w = np.einsum("fla,fa->fl", np.abs(rho), s * e)
        of_c = e + np.einsum("fa,faj->fj", s * e, np.abs(x))
        of_rho, of_x = w[:, :, None] + w[:, None, :], w[:, :, None] + of_c[:, None, :]
        of_products = np.broadcast_to(
            e[:, None] + self.error_outside, (len(lines), len(e), len(self.outside))
        )
        with_q, with_c = (q @ self.outside[:, k].T for k in (0, 1))
        first = _Numbers(
            np.concatenate([rho, with_q], axis=2), np.concatenate([of_rho, of_products], axis=2)
        )
        return _Choices(
            lines, np.asarray(sound), (first, _Numbers(with_c, of_products), _Numbers(x, of_x))
        )


def _facts(first: _Numbers, _: _Numbers, x: _Numbers, y: _Numbers) -> DistrictFacts:
    """Facts under the first choice of lines."""
    m = x.value.shape[1]
    rho = _Numbers(first.value[0, :, :m], first.bound[0, :, :m])
    missing, clear = rho.missing, rho.clear
    no: set[tuple[int, int]] = set()
    one_of: set[tuple[frozenset[int], int]] = set()

    def conclude(number: _Numbers, l: int, d: int, weight: dict[int, float]) -> None:
        """What a number says that adds up multiples of effects on d, by label."""
        if number.clear[0, l, d]:
            one_of.add((frozenset(weight), d))
        elif number.zero[0, l, d]:
            least = number.bound[0, l, d] / HIDDEN
            no.update((a, d) for a, w in weight.items() if abs(w) >= least)

    for j, apart in enumerate(missing):
        N, rest = np.flatnonzero(apart), np.flatnonzero(~apart)
        if not N.size:
            continue
        through = np.linalg.solve(rho.value[np.ix_(N, N)], rho.value[np.ix_(N, rest)])
        near = transitive_closure(~missing[np.ix_(N, N)])
        for k, l in enumerate(N.tolist()):
            own = {
                a: float(rho.value[l, a] * clear[l, a])
                for a in np.flatnonzero(~missing[l]).tolist()
            }
            conclude(x, l, j, own)
            beside = zip(rest.tolist(), through[k].tolist(), strict=True)
            far = {s: w for s, w in beside if s != j and not missing[s, N[near[k]]].all()}
            conclude(y, l, j, {l: 1.0} | far)
    known = (missing | clear).all()
    pairs = frozenset((a, b) for a, b in np.argwhere(np.triu(clear, 1)).tolist())
    return DistrictFacts(pairs if known else None, frozenset(no), frozenset(one_of))
