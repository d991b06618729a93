"""Regimes that act on a second latent, one whose line is known from its own regime.

A regime that acts on its own target j and on that of another label o shows, in coordinates whitened
by the control and about its own mean,

    D = q_j c_jᵀ + c_j q_jᵀ + q_o c_oᵀ + c_o q_oᵀ ,

four directions instead of two. With v the unit line of q_o, which the regime of o shows, and
`P = I − vvᵀ`, the rest

    P D P = (P q_j)(P c_j)ᵀ + (P c_j)(P q_j)ᵀ

is that of one target again, and `P q_j = q_j` unless j and o share a district (T2). What is lost is
how j depends on o. So the regime is used without the direction v, and nothing is said about the
pair of j and o.

Which label o is, is told by the rest: with the right one no third direction is left, with any other
line there is. The line of o may itself come from a regime with a second target. Lines and second
targets are therefore found in turns, starting from the lines that the regimes show as they are; an
error of v counts with the strength of the second target only, so that the turns converge. Then
nothing but its strength tells a target from a second one: the rest of D must be the larger part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.client.white import White
from jigsaw_crl.evidence.mixture import Statistics
from jigsaw_crl.nullcone.arrows import ZERO, Arrows, shifts_fit
from jigsaw_crl.nullcone.spikes import MARGIN, SEVERAL, Spikes, bulk_edges, judge

__all__ = ["Second", "second_targets"]

# Two targets show four directions; a regime that shows more has more targets than two.
MOST = 4
# Lines follow one another for at most this many turns more than there are second targets, or until
# none of them moves further.
TURNS, STILL = 8, 1e-6
# Two lines are one explanation if their cosine exceeds this.
SAME = 0.9
# A regime's line is taken for that of its own target if the rest without the second one has at
# least this share of the squared change.
LARGER = 0.5
# Standard deviation of the cosine of two lines that may share a district.
LEAN = 0.1


@dataclass(frozen=True, eq=False)
class Second:
    """Second targets of a client's regimes.

    Parameters
    ----------
    line : array, shape (r, p)
        Unit line of the second target; zeros where there is none or it is not known.
    regime : array of int, shape (r,)
        A regime of the label that it belongs to; −1 where there is none.
    suspect : array of bool, shape (r,)
        Regimes that seem to have several targets, by what one regime in 5,000 shows by chance.
    """

    line: FloatArray
    regime: IntArray
    suspect: BoolArray

    @property
    def found(self) -> BoolArray:
        """Regimes whose second target is known, shape (r,)."""
        return self.regime >= 0

    @property
    def refused(self) -> BoolArray:
        """Regimes with several targets of which one is not known, shape (r,)."""
        return self.suspect & ~self.found

    def off(self, rows: FloatArray) -> FloatArray:
        """One row for each regime, shape (r, p), without its part along the second target."""
        return np.asarray(rows - np.einsum("rp,rp->r", rows, self.line)[:, None] * self.line)

    def widened(self, statistics: Statistics, arrows: Arrows, size: FloatArray) -> Statistics:
        """The statistics, with the error of what is not known along the second targets.

        c is free along v, with its own size, and so is the line if the two share a district.
        """
        if not self.found.any():
            return statistics
        covariance = statistics.covariance.copy()
        shape = len(covariance), *2 * arrows.has.shape[1:]
        first, second = statistics.first, statistics.second
        for own, other, at, axis in ((second, first, 1, 2), (first, second, 2, 1)):
            v = self.line[own][:, None]
            u = np.broadcast_to(np.expand_dims((arrows.u[other] * v).sum(axis=2), axis), shape)
            c = np.broadcast_to(np.expand_dims((arrows.c[other] * v).sum(axis=2), axis), shape)
            u, c = (x.reshape(covariance.shape[:2]) for x in (u, c))
            covariance[:, :, at, at] += (size[own][:, None] * u) ** 2
            covariance[:, :, 0, 0] += (LEAN * u) ** 2
            covariance[:, :, 3 - at, 3 - at] += (LEAN * c) ** 2
        return replace(statistics, covariance=covariance)


def second_targets(white: White, spikes: Spikes) -> tuple[Second | None, White, Spikes]:
    """The second targets of the regimes that have several, and the regimes without them.

    None if no regime has several targets.
    """
    third = spikes.third
    if white.exact or not (third > SEVERAL).any():
        return None, white, spikes
    chosen = third > MARGIN
    moved = [_Moved.of(white, j, float(third[j])) for j in np.flatnonzero(chosen).tolist()]
    moved = [m for m in moved if 1 < len(m.values) <= MOST]
    second = Second(np.zeros_like(white.d), np.full(len(third), -1), chosen)
    clean, arrows = white, shifts_fit(white)[2]
    for _ in range(len(moved) + TURNS):
        before = second
        second = _turn(moved, arrows, white.owner, second)
        clean = _without(white, second)
        arrows = shifts_fit(clean)[2]
        along = np.abs(np.einsum("rp,rp->r", before.line, second.line))
        if (along > 1.0 - STILL)[second.found].all():
            break
    second = _sure(moved, arrows, white.owner, second, judge(clean).third)
    clean = _without(white, second)
    return second, clean, judge(clean)


def _turn(moved: list[_Moved], arrows: Arrows, owner: IntArray, before: Second) -> Second:
    """The second targets after one more turn.

    Lines of those that were found follow those of their labels. Of the others, those are found
    whose second target is that of a regime with a known line; if there is none, the one that a line
    explains best.
    """
    line, regime = before.line.copy(), before.regime.copy()
    settled = before.found | ~before.suspect
    new: list[tuple[tuple[bool, bool, bool, float], int, FloatArray, int]] = []
    for m in moved:
        lines, whose = _candidates(arrows, owner, m.regime)
        if before.found[m.regime]:
            same = np.abs(lines @ line[m.regime]) * (owner[whose] == owner[regime[m.regime]])
            if same.max(initial=0.0) > SAME:
                line[m.regime] = lines[same.argmax()]
            continue
        if not len(lines):
            continue
        left, count, size = m.rest(lines)
        smaller = np.array([m.kept(v) <= LARGER for v in lines])
        best = int(np.lexsort((size, count, smaller, np.maximum(left, MARGIN)))[0])
        if left[best] < m.third:
            unexplained = max(left[best], MARGIN) / m.third
            unknown = left[best] > MARGIN, not settled[whose[best]], bool(smaller[best])
            new.append(((*unknown, unexplained), m.regime, lines[best], whose[best]))
    known = [x for x in new if not any(x[0][:2])] or sorted(new, key=lambda x: x[:2])[:1]
    for _, j, v, o in known:
        line[j], regime[j] = v, o
    return replace(before, line=line, regime=regime)


def _sure(
    moved: list[_Moved], arrows: Arrows, owner: IntArray, second: Second, third: FloatArray
) -> Second:
    """Only those that leave no third direction, that no other line explains, and whose line is one.

    A line is known if its regime has one target or if the line of its second target is known. Where
    regimes are the second targets of one another in a circle, exchanging each target with the
    second one fits as well; then each must have moved its regime more than the second one did.
    """
    explained, larger = np.zeros((2, len(owner)), dtype=bool)
    for m in moved:
        j = m.regime
        if second.regime[j] < 0 or third[j] > MARGIN:
            continue
        lines, _ = _candidates(arrows, owner, j)
        own = int(m.rest(second.line[j : j + 1])[1][0])
        left, count, _ = m.rest(lines[np.abs(lines @ second.line[j]) < SAME])
        explained[j] = not ((left <= SEVERAL) & (count <= own)).any()
        larger[j] = explained[j] and m.kept(second.line[j]) > LARGER
    known = ~second.suspect
    for _ in moved:
        larger &= (larger | known)[second.regime]
    known |= larger
    for _ in moved:
        known |= explained & known[second.regime]
    sure = explained & known[second.regime]
    line = np.where(sure[:, None], second.line, 0.0)
    return replace(second, line=line, regime=np.where(sure, second.regime, -1))


def _candidates(arrows: Arrows, owner: IntArray, j: int) -> tuple[FloatArray, IntArray]:
    """Lines of the regimes of other labels than that of j, and the regimes that they belong to."""
    there = arrows.has & (arrows.seen & (owner != owner[j]))[:, None]
    single = np.arange(arrows.has.shape[1]) == ZERO
    regime, slot = np.nonzero(there & (single == (arrows.odds < 0)[:, None]))
    return arrows.u[regime, slot], regime


@dataclass(frozen=True, eq=False)
class _Moved:
    """The directions that a regime moves: `M − I` is nearly `Vᵀ diag(values) V`.

    `third` is that of the regime as it is (see `Spikes`), and `edges` are those of the noise.
    """

    regime: int
    third: float
    values: FloatArray
    V: FloatArray
    edges: tuple[float, ...]

    @classmethod
    def of(cls, white: White, j: int, third: float) -> _Moved:
        edges = tuple(float(x[0]) for x in bulk_edges(white.dimension - 1, white.size[j : j + 1]))
        lower, below, upper, above = edges
        values, vectors = np.linalg.eigh(white.M[j])
        out = (values > upper + MARGIN * above) | (values < lower - MARGIN * below)
        return cls(j, third, values[out] - 1.0, vectors.T[out], edges)

    def _without(self, lines: FloatArray) -> FloatArray:
        """A matrix with the eigenvalues of the rest of D without each line, shape (m, k, k)."""
        a = lines @ self.V.T
        return np.asarray(
            self.values[:, None] * (np.eye(len(self.values)) - a[:, :, None] * a[:, None, :])
        )

    def rest(self, lines: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
        """`Spikes.third` of the regime without each line, and the directions that it then moves.

        Their number, and the size of the second largest; each has shape (m,).
        """
        values = np.sort(np.linalg.eigvals(self._without(lines)).real, axis=1)
        lower, below, upper, above = self.edges
        under, over = (lower - 1.0 - values) / below, (1.0 + values - upper) / above
        third = np.maximum(under[:, 1], over[:, -2])
        count = (np.maximum(under, over) > MARGIN).sum(axis=1)
        return third, count, np.sort(np.abs(values), axis=1)[:, -2]

    def kept(self, line: FloatArray) -> float:
        """Share of ‖D‖² that the rest without the line has."""
        K = self._without(line[None])[0]
        return float(np.trace(K @ K) / np.sum(self.values**2))


def _without(white: White, second: Second) -> White:
    """The regimes with `P M P + vvᵀ` in place of M, v the line of their second target."""
    found = np.flatnonzero(second.found)
    if not len(found):
        return white
    M = white.M.copy()
    for j in found.tolist():
        v, Mv = second.line[j], M[j] @ second.line[j]
        M[j] += (v @ Mv + 1.0) * np.outer(v, v) - np.outer(v, Mv) - np.outer(Mv, v)
    return replace(white, M=M, d=second.off(white.d))
