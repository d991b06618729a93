"""What exact moments make certain about ancestry: across districts (T3), and inside them.

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
ρ of unit diagonal, and x divided by s. With errors e of the lines and `w = |ρ| s e`, to first order

    |δρ[l, m]| ≤ w_l + w_m ,     |δx_j[l]| ≤ w_l + e_j + Σ_a s_a e_a |x_j[a]| ,

and `y_j` is off by at most `|ρ[N,N]⁻¹| (|δx_j[N]| + |δρ[N,N]| |y_j|)`. N holds the labels that are
certainly no spouses; an edge that is neither certain nor excluded counts where it may add
candidates, and not where it would rule them out.

A wrong line loses zeros of ρ, x, y and of products with lines outside the district, and generically
gains none. So one choice of lines refutes another if it certainly has more zeros of one of these
kinds. What all choices say that are left is stated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.order import strongly_connected, transitive_closure
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.fragment.fragment import CANNOT_SAY, NO, YES
from jigsaw_crl.nullcone.exact import IS_ZERO, NOT_ZERO
from jigsaw_crl.nullcone.reading import Reading

# By how much the log factors must lead. A number that is zero by exact moments decides by 16 to 50,
# and one that is not by thousands; less is a line or an effect within rounding of another.
BY_ZERO, BY_EFFECT = 14.0, 1_000.0
# A zero inside a district counts if a number of this size would show, and bounds hold while the
# errors of its lines are below the share FIRST_ORDER of Γ's smallest eigenvalue.
SHOWN_SIZE, FIRST_ORDER = 1e-8, 0.01
# The search over lines grows with the square of the district; it is left out in larger ones, and
# given up where more choices of lines differ in their zeros.
LARGEST_DISTRICT, MOST_CHOICES = 32, 64

# (a, d): a is no ancestor of d; (candidates, d): at least one candidate is an ancestor of d.
No = set[tuple[int, int]]
OneOf = set[tuple[frozenset[int], int]]


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of each of p labels of a client; a label of rank 1 has one, and zeros."""

    unit: FloatArray  # shape (p, 2, p)
    error: FloatArray  # how far either line may be off, as an angle
    tilt: FloatArray  # how far a second direction within rounding tilts the one line
    choice: IntArray  # the line of q, 0 or 1, where a search starts
    free: BoolArray  # labels with two lines

    @classmethod
    def of(cls, reading: Reading) -> Lines:
        """Of the first regime of each label: exact moments of further strengths add nothing."""
        first, t = np.unique(reading.owner, return_index=True)[1], reading.targets
        rounding, two = reading.sight.rounding, t.has[first, 0]
        assert rounding is not None
        choice = np.where(two, reading.choice.reading[first], 0)
        return cls(t.u[first, :2], rounding.error[first], rounding.tilt[first], choice, two)


def certain(
    bayes: BayesFactors, same_district: BoolArray, lines: Lines | None
) -> tuple[npt.NDArray[np.int8], OneOf]:
    """What is certain about pairs, shape (p, p), and sets one of which is an ancestor.

    See `Statements`. `lines` are given if every latent has them: they tell something inside
    districts too.
    """
    ahead = bayes.ancestor.max(axis=0)
    neither = np.fmax(np.fmax(bayes.lean, 0.0), ahead.T)
    with np.errstate(invalid="ignore"):  # NaN: the client cannot say
        yes = (ahead - neither > BY_EFFECT) & (ahead - bayes.district > BY_ZERO)
        no = neither - np.fmax(ahead, bayes.district) > BY_ZERO
        known = np.abs(bayes.district - np.fmax(neither, ahead)) >= BY_ZERO
    joined = transitive_closure(same_district | ~known)
    ancestor = np.full(yes.shape, CANNOT_SAY, dtype=np.int8)
    ancestor[no] = NO
    # Inside a district, a spouse's effect passes for one's own; a zero is one there too.
    ancestor[transitive_closure(yes & ~joined)] = YES
    ancestor[same_district] = CANNOT_SAY
    one_of: OneOf = set()
    if lines is None:
        return ancestor, one_of
    # What holds inside a district holds inside several together.
    for members in strongly_connected(joined):
        apart, groups = inside(lines, members)
        for a, d in apart:
            ancestor[members[a], members[d]] = NO
        one_of |= {(frozenset(members[a] for a in group), members[d]) for group, d in groups}
    return ancestor, one_of


def inside(lines: Lines, members: list[int]) -> tuple[No, OneOf]:
    """Facts about one district, by position in it; none if it is ill-conditioned.

    Where no search tells which lines are possible, the zeros of the first choice are stated: wrong
    lines have none in addition.
    """
    if len(members) == 1:
        return set(), set()
    start = _Choices.of(lines, members, lines.choice[members][None]).with_y()
    possible = _possible(lines, members, start) if len(members) <= LARGEST_DISTRICT else []
    if not possible:
        edges, _, _, x, y = start.numbers
        apart = start.sound & edges.missing[0] & (x.missing | y.missing)[0]
        return {(a, d) for a, d in np.argwhere(apart).tolist()}, set()
    found = [_facts(one) for one in possible]
    return set.intersection(*(no for no, _ in found)), set.intersection(*(one for _, one in found))


@dataclass(frozen=True, eq=False)
class _Numbers:
    """Some numbers of each of f choices of lines, shape (f, m, k), and bounds on their errors."""

    value: FloatArray
    bound: FloatArray

    @property
    def zero(self) -> BoolArray:
        return np.asarray(np.abs(self.value) <= IS_ZERO * self.bound)

    @property
    def missing(self) -> BoolArray:
        """Zero, where a number of size `SHOWN_SIZE` would show."""
        return self.zero & (self.bound <= SHOWN_SIZE)

    @property
    def clear(self) -> BoolArray:
        """Certainly not zero."""
        return np.asarray(np.abs(self.value) > NOT_ZERO * self.bound)

    def behind(self, other: _Numbers) -> BoolArray:
        """Has the other certainly more zeros? Choice by choice, by the larger of both bounds."""
        near = np.abs(self.value) <= NOT_ZERO * np.maximum(self.bound, other.bound)
        near |= np.isnan(self.value) & other.zero
        return np.asarray(near.sum(axis=(1, 2)) < other.zero.sum(axis=(1, 2)))


@dataclass(frozen=True, eq=False)
class _Choices:
    """Several choices of lines, shape (f, m), whether their bounds hold, and their numbers.

    The numbers are ρ; products with q's and with c's outside; x; and y, which takes longest and is
    computed where the others leave a choice open.
    """

    lines: IntArray
    sound: BoolArray
    numbers: tuple[_Numbers, ...]

    @classmethod
    def of(cls, given: Lines, members: list[int], lines: IntArray) -> _Choices:
        rows, others = np.arange(len(members)), np.delete(np.arange(len(given.unit)), members)
        e, unit = (given.error + given.tilt)[members], given.unit[members]
        q, c = unit[rows, lines], unit[rows, 1 - lines]
        gram = q @ q.mT
        sound = np.asarray(e.sum() < FIRST_ORDER * np.linalg.eigvalsh(gram)[:, 0])
        gram[~sound] = np.eye(len(rows))
        sigma = np.linalg.inv(gram)
        s = np.sqrt(np.diagonal(sigma, axis1=1, axis2=2))
        rho = sigma / (s[:, :, None] * s[:, None, :])
        x = sigma @ (q @ c.mT) / s[:, :, None]
        w = np.einsum("fla,fa->fl", np.abs(rho), s * e)
        of_c = e + np.einsum("fa,faj->fj", s * e, np.abs(x))
        own, shape = given.choice[others], (len(lines), len(rows), len(others))
        of_outside = np.broadcast_to(e[:, None] + given.error[others], shape)
        return cls(
            lines,
            sound,
            (
                _Numbers(rho, w[:, :, None] + w[:, None, :]),
                _Numbers(q @ given.unit[others, own].T, of_outside),
                _Numbers(q @ given.unit[others, 1 - own].T, of_outside),
                _Numbers(x, w[:, :, None] + of_c[:, None, :]),
            ),
        )

    def only(self, which: list[int]) -> _Choices:
        numbers = tuple(_Numbers(n.value[which], n.bound[which]) for n in self.numbers)
        return _Choices(self.lines[which], self.sound[which], numbers)

    def with_y(self) -> _Choices:
        """With y, where N is all that is certainly no spouse; NaN off N."""
        rho, x, m = self.numbers[0], self.numbers[3], self.lines.shape[1]
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
        return _Choices(self.lines, self.sound, (*self.numbers[:4], _Numbers(y, bound)))

    def behind(self, other: _Choices) -> BoolArray:
        """Does the other refute these? Choice by choice, by the numbers that both have."""
        pairs = zip(self.numbers, other.numbers, strict=False)
        fewer = np.any([a.behind(b) for a, b in pairs], axis=0)
        return np.asarray((~self.sound | fewer) & other.sound)

    def pattern(self, k: int) -> bytes:
        """Which numbers of one choice are zero and which are certainly not."""
        return b"".join(x[k].tobytes() for n in self.numbers for x in (n.zero, n.clear))


def _possible(given: Lines, members: list[int], best: _Choices) -> list[_Choices]:
    """Choices that no other one refutes, reached by flips of one or two lines at a time.

    Of choices with the same zeros, which say the same, one is returned; an empty list if there are
    too many, or if each refutes another.
    """
    single = np.eye(len(members), dtype=np.intp)[given.free[members]]
    first, second = np.triu_indices(len(single), 1)
    flips = np.concatenate([single, single[first] + single[second]])
    found, waiting, tried = {best.pattern(0): best}, [best], {best.lines.tobytes()}
    while waiting:
        some = _Choices.of(given, members, waiting.pop().lines ^ flips)
        refuting, refuted = best.behind(some), some.behind(best)
        if not refuting.any():
            some = some.only(np.flatnonzero(~refuted).tolist()).with_y()
            refuting, refuted = best.behind(some), some.behind(best)
        if refuting.any():
            # One that is refuted in turn is a step towards one that is not.
            best = some.only([int((2 * refuting - refuted).argmax())]).with_y()
            if best.lines.tobytes() in tried:
                return []
            tried.add(best.lines.tobytes())
            found, waiting = {best.pattern(0): best}, [best]
            continue
        for k in np.flatnonzero(~refuted).tolist():
            if (pattern := some.pattern(k)) not in found:
                found[pattern] = some.only([k])
                waiting.append(found[pattern])
        if len(found) > MOST_CHOICES:
            return []
    return list(found.values()) if best.sound.all() else []


def _facts(choice: _Choices) -> tuple[No, OneOf]:
    """What follows from one choice of lines."""
    edges, _, _, x, y = choice.numbers
    rho, missing, clear = edges.value[0], edges.missing[0], edges.clear[0]
    no, one_of = No(), OneOf()

    def conclude(number: _Numbers, l: int, d: int, weight: dict[int, float]) -> None:
        """What a number says that adds up multiples of effects on d, by label."""
        if number.clear[0, l, d]:
            one_of.add((frozenset(weight), d))
        elif number.zero[0, l, d]:
            least = number.bound[0, l, d] / SHOWN_SIZE
            no.update((a, d) for a, w in weight.items() if abs(w) >= least)

    for j, apart in enumerate(missing):
        N, rest = np.flatnonzero(apart), np.flatnonzero(~apart)
        through = np.linalg.solve(rho[np.ix_(N, N)], rho[np.ix_(N, rest)])
        near = transitive_closure(~missing[np.ix_(N, N)])
        for k, l in enumerate(N.tolist()):
            own = np.flatnonzero(~missing[l]).tolist()
            conclude(x, l, j, {a: float(rho[l, a] * clear[l, a]) for a in own})
            beside = zip(rest.tolist(), through[k].tolist(), strict=True)
            far = {s: w for s, w in beside if s != j and not missing[s, N[near[k]]].all()}
            conclude(y, l, j, {l: 1.0} | far)
    return no, one_of
