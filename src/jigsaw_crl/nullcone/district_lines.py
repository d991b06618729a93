"""Which lines the targets of a district may have, by exact moments, with bounds on rounding.

Let `u_a` be the unit q's of a district, `Γ⁻¹ = Σ = s ρ s` with s diagonal and ρ of unit diagonal,
and `x_j[l]` the coordinates of c_j, divided by `s_l`. The dual of `u_l` has length `s_l`. If the
u's are known up to errors of length `e_a` and the unit c's up to `e'_j`, then to first order

    |δρ[l, m]| ≤ w_l + w_m ,     |δx_j[l]| ≤ e'_j + Σ_a s_a e_a |x_j[a]| + w_l ,
    w_l = Σ_a |ρ[l, a]| s_a e_a ,

and `y_j = ρ[N,N]⁻¹ x_j[N]` is off by at most `|ρ[N,N]⁻¹| (|δx_j[N]| + |δρ[N,N]| |y_j|)`. The
product of two unit lines has the sum of their errors.

A wrong line loses zeros of ρ, x, y and of products with lines outside the district, and generically
gains none: with c_j in place of q_j, `ρ[l, m]` gains multiples of `x_j[l] x_j[m]` and of
`x_j[l] ρ[j, m]`, and `x_i[l]` a multiple of `x_i[j] x_j[l]`. So one choice of lines refutes another
if it certainly has more zeros of one of these kinds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray

__all__ = ["HIDDEN", "Choices", "District", "Numbers"]


# A number beyond this multiple of its bound is certainly not zero: the bounds are of first order.
CLEAR = 10.0
# A zero counts as one if a number of this size would show; ρ and effects are of order one.
HIDDEN = 1e-8
# Bounds are for the worst case, and rounding errors are found to be below a thousandth of them. A
# number is zero within this share of its bound; beyond it may be a small number.
SURE = 1e-2
# The bounds hold while the errors of the lines are below this share of Γ's smallest eigenvalue.
FIRST_ORDER = 0.01
# With more choices of lines than this that differ in their zeros, the district is left open.
MOST_CHOICES = 64
# Numbers worked on at once, about 10 MB.
AT_ONCE = 1_000_000


@dataclass(frozen=True, eq=False)
class Numbers:
    """Some numbers, and what rounding may have added to each; NaN where there is none."""

    value: FloatArray
    bound: FloatArray

    @cached_property
    def zero(self) -> BoolArray:
        return np.asarray(np.abs(self.value) <= SURE * self.bound)

    @cached_property
    def missing(self) -> BoolArray:
        """Zero, where a number of size `HIDDEN` would show."""
        return np.asarray(self.zero & (self.bound <= HIDDEN))

    @cached_property
    def clear(self) -> BoolArray:
        """Certainly not zero."""
        return np.asarray(np.abs(self.value) > CLEAR * self.bound)

    def within(self, other: Numbers) -> BoolArray:
        """Near zero by the larger of both bounds, or not there where the other is zero."""
        near = np.abs(self.value) <= CLEAR * np.maximum(self.bound, other.bound)
        return np.asarray(near | (np.isnan(self.value) & other.zero))

    def of(self, which: IntArray | int) -> Numbers:
        """Those of some choices."""
        return Numbers(self.value[which], self.bound[which])


@dataclass(frozen=True, eq=False)
class Choices:
    """Several choices of lines, shape (f, m), and their numbers by kind.

    The kinds are: ρ and products of q's; products of q's with c's; x; and y, where it is computed.
    """

    lines: IntArray
    sound: BoolArray
    kinds: tuple[tuple[Numbers, ...], ...]

    def of(self, which: IntArray) -> Choices:
        kinds = tuple(tuple(n.of(which) for n in kind) for kind in self.kinds)
        return Choices(self.lines[which], self.sound[which], kinds)

    @property
    def of_first(self) -> tuple[Numbers, Numbers, Numbers]:
        """ρ, x and y of the first choice, shape (m, m) each."""
        (rho, _), _, (x,), (y,) = self.kinds
        return rho.of(0), x.of(0), y.of(0)

    def with_y(self) -> Choices:
        (rho, _), _, (x,) = self.kinds
        return Choices(self.lines, self.sound, (*self.kinds, (_inside(rho, x),)))

    def behind(self, other: Choices, kinds: slice) -> BoolArray:
        """Has the other certainly more zeros of one of these kinds? Choice by choice."""
        behind = ~self.sound
        for own, its in zip(self.kinds[kinds], other.kinds[kinds], strict=True):
            least = sum(_count(n.zero) for n in its)
            most = sum(_count(n.within(o)) for n, o in zip(own, its, strict=True))
            behind = (behind | (most < least)) & other.sound
        return behind

    def patterns(self) -> list[bytes]:
        """Of each choice, which numbers are zero and which are certainly not."""
        numbers = [n for kind in self.kinds for n in kind]
        flags = [f for n in numbers for f in (n.zero, n.clear)]
        return [b"".join(f[k].tobytes() for f in flags) for k in range(len(self.lines))]


def _count(flags: BoolArray) -> IntArray:
    return np.asarray(flags.sum(axis=(1, 2)))


def _inside(rho: Numbers, x: Numbers) -> Numbers:
    """`y[l, j]` of each choice, shape (f, m, m), with N all that is certainly no spouse of j."""
    missing = rho.missing
    y, bound = np.full_like(x.value, np.nan), np.zeros_like(x.bound)
    for j in np.flatnonzero(missing.any(axis=(0, 2))).tolist():
        N = missing[:, j]
        block = N[:, :, None] & N[:, None, :]
        # The inverse of ρ on N, and of the identity off it.
        inverse = np.linalg.inv(np.where(block, rho.value, np.eye(N.shape[1])))
        found = inverse @ np.where(N, x.value[:, :, j], 0.0)[:, :, None]
        off = np.where(block, rho.bound, 0.0) @ np.abs(found) + x.bound[:, :, j, None]
        y[:, :, j] = np.where(N, found[:, :, 0], np.nan)
        bound[:, :, j] = (np.where(block, np.abs(inverse), 0.0) @ off)[:, :, 0]
    return Numbers(y, bound)


@dataclass(frozen=True, eq=False)
class District:
    """Inner products of all 2m lines of a district, with each other and with those outside.

    Parameters
    ----------
    own : array, shape (2m, 2m)
    with_q, with_c : array, shape (2m, k)
    error : array, shape (2m,)
        How far each line may be off, as an angle.
    error_outside : array, shape (k,)
    """

    own: FloatArray
    with_q: FloatArray
    with_c: FloatArray
    error: FloatArray
    error_outside: FloatArray

    @classmethod
    def of(
        cls, lines: FloatArray, error: FloatArray, outside: FloatArray, error_outside: FloatArray
    ) -> District:
        """From unit lines, shape (m, 2, d), and those outside, (k, 2, d): first q's, then c's.

        `error` and `error_outside`, shapes (m,) and (k,): how far either line may be off.
        """
        flat = lines.reshape(-1, lines.shape[2])
        with_q, with_c = flat @ outside[:, 0].T, flat @ outside[:, 1].T
        return cls(flat @ flat.T, with_q, with_c, np.repeat(error, 2), error_outside)

    def possible(self, choice: IntArray, free: BoolArray) -> list[Choices] | None:
        """Choices that no other one refutes, reached by flips of one or two lines at a time.

        Of choices with the same zeros, which say the same, one is returned. None if there are too
        many, or if each refutes another.

        Parameters
        ----------
        choice : array of int, shape (m,)
            Where the search starts.
        free : array of bool, shape (m,)
            Targets with two lines.
        """
        flips = _flips(free)
        best = self._choices(choice[None]).with_y()
        found, waiting, tried = {best.patterns()[0]: best}, [best], {choice.tobytes()}
        while waiting:
            for some in self._parts(waiting.pop().lines ^ flips):
                better, equal = _compared(some, best)
                if better is not None:
                    best = better
                    if best.lines.tobytes() in tried:
                        return None
                    tried.add(best.lines.tobytes())
                    found, waiting = {best.patterns()[0]: best}, [best]
                    break
                for k, pattern in enumerate(equal.patterns()):
                    if pattern not in found:
                        found[pattern] = equal.of(np.array([k]))
                        waiting.append(found[pattern])
                if len(found) > MOST_CHOICES:
                    return None
        return list(found.values()) if best.sound.all() else None

    def _parts(self, choices: IntArray) -> Iterator[Choices]:
        m, k = len(self.own) // 2, self.with_q.shape[1]
        size = max(1, AT_ONCE // (m * (m + k)))
        for at in range(0, len(choices), size):
            yield self._choices(choices[at : at + size])

    def _choices(self, lines: IntArray) -> Choices:
        rho, x, sound = self._algebra(lines)
        q, _ = _positions(lines)
        bound = self.error[q][:, :, None] + self.error_outside
        with_q, with_c = Numbers(self.with_q[q], bound), Numbers(self.with_c[q], bound)
        return Choices(lines, sound, ((rho, with_q), (with_c,), (x,)))

    def _algebra(self, lines: IntArray) -> tuple[Numbers, Numbers, BoolArray]:
        """ρ and `x[l, j]` of each choice, shape (f, m, m), and whether the bounds hold, (f,)."""
        q, c = _positions(lines)
        gram = self.own[q[:, :, None], q[:, None, :]]
        e = self.error[q]
        sound = e.sum(axis=1) < FIRST_ORDER * np.linalg.eigvalsh(gram)[:, 0]
        gram[~sound] = np.eye(q.shape[1])
        sigma = np.linalg.inv(gram)
        s = np.sqrt(np.diagonal(sigma, axis1=1, axis2=2))
        rho = sigma / (s[:, :, None] * s[:, None, :])
        x = (sigma @ self.own[q[:, :, None], c[:, None, :]]) / s[:, :, None]
        w = np.einsum("fla,fa->fl", np.abs(rho), s * e)
        of_c = self.error[c] + np.einsum("fa,faj->fj", s * e, np.abs(x))
        of_rho, of_x = w[:, :, None] + w[:, None, :], w[:, :, None] + of_c[:, None, :]
        return Numbers(rho, of_rho), Numbers(x, of_x), np.asarray(sound)


def _compared(some: Choices, best: Choices) -> tuple[Choices | None, Choices]:
    """One of some choices that refutes the best, if there is one, and those that it leaves open."""
    # y takes longest to compute. By the other kinds, those that are left refute nothing.
    for with_y, kinds in ((False, slice(3)), (True, slice(3, 4))):
        some = some.with_y() if with_y else some
        refuting, refuted = best.behind(some, kinds), some.behind(best, kinds)
        if refuting.any():
            # One that is refuted in turn is a step towards one that is not.
            better = some.of(np.array([(2 * refuting - refuted).argmax()]))
            return better if with_y else better.with_y(), some
        some = some.of(np.flatnonzero(~refuted))
    return None, some


def _positions(lines: IntArray) -> tuple[IntArray, IntArray]:
    """Positions of the q's and of the c's among the lines, shape (f, m) each."""
    q = 2 * np.arange(lines.shape[1]) + lines
    return q, q ^ 1


def _flips(free: BoolArray) -> IntArray:
    """Rows of zeros and ones: every single free target flipped, and every two."""
    single = np.eye(len(free), dtype=np.intp)[free]
    first, second = np.triu_indices(len(single), 1)
    return np.concatenate([single, single[first] + single[second]])
