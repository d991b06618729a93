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
error of v counts with the strength of the second target only, so that the turns converge. Where
such regimes are the second targets of one another, nothing but its strength tells a target from a
second one: the rest of D must be the larger part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.nulls import CLEARLY, beyond
from jigsaw_crl.client.white import White
from jigsaw_crl.evidence.mixture import Statistics
from jigsaw_crl.nullcone.judge import Judged
from jigsaw_crl.nullcone.readings import READINGS, ZERO, Readings, estimate

# Turns after which lines and second targets no longer change each other.
TURNS = 8
# Two lines are one explanation if their cosine exceeds this.
SAME = 0.9


@dataclass(frozen=True, eq=False)
class Second:
    """Second targets of a client's regimes."""

    # Unit line of the second target; zeros where there is none or it is not known, shape (r, p).
    line: FloatArray
    regime: IntArray  # a regime of the label that it belongs to, shape (r,); −1 where there is none
    suspect: BoolArray  # regimes that seem to have several targets, shape (r,)

    @classmethod
    def none(cls, white: White, suspect: BoolArray) -> Second:
        """None that is known."""
        return cls(np.zeros_like(white.d), np.full(len(suspect), -1), suspect)

    @property
    def found(self) -> BoolArray:
        """Regimes whose second target is known, shape (r,)."""
        return self.regime >= 0

    @property
    def refused(self) -> BoolArray:
        """Regimes with several targets of which one is not known, shape (r,)."""
        return self.suspect & ~self.found

    def without(self, white: White) -> White:
        """The regimes with `P M P + vvᵀ` in place of M, v the line of their second target."""
        v = self.line
        P = np.eye(white.dimension) - v[:, :, None] * v[:, None, :]
        M = P @ white.M @ P + v[:, :, None] * v[:, None, :]
        return replace(white, M=M, d=np.einsum("rpq,rq->rp", P, white.d))

    def widened(self, statistics: Statistics, targets: Readings) -> Statistics:
        """The statistics, with the error of what is not known along the second targets.

        c is free along v, with its own size.
        """
        covariance = statistics.covariance.copy()
        s, t = np.divmod(np.arange(READINGS**2), READINGS)
        first, second = statistics.first, statistics.second
        for own, other, at, slot in ((second, first, 1, s), (first, second, 2, t)):
            along = np.einsum("ksp,kp->ks", targets.u[other], self.line[own])[:, slot]
            covariance[:, :, at, at] += (targets.size[own][:, None] * along) ** 2
        return replace(statistics, covariance=covariance)


def second_targets(white: White, judged: Judged) -> tuple[Second, White]:
    """The second targets of the regimes that have several, and the regimes without them."""
    suspect = judged.third > 1
    second = Second.none(white, suspect)
    moved = []
    for j in np.flatnonzero(suspect).tolist():
        values, vectors = np.linalg.eigh(white.M[j])
        below, above = beyond(values, judged.edges[j])
        out = np.maximum(below, above) > 1
        # Two targets show four directions; a regime that shows more has more targets.
        if 1 < out.sum() <= 4:
            third, edges = float(judged.third[j]), judged.edges[j]
            moved.append(_Moved(j, third, values[out] - 1.0, vectors.T[out], edges))
    for _ in range(TURNS):
        before, second = second, _turn(white, second, moved)
        if (before.regime == second.regime).all():
            break
    second = _turn(white, second, moved, sure=True)
    return second, second.without(white)


def _turn(white: White, second: Second, moved: list[_Moved], *, sure: bool = False) -> Second:
    """The second targets by the lines that the regimes show without those of the turn before."""
    found = estimate(second.without(white))
    turned = Second.none(white, second.suspect)
    # A line is known if its regime has one target, or a second one whose line is known.
    known = ~second.suspect
    for _ in moved:
        known = known | (second.found & known[second.regime])
    owner, single = found.white.owner, np.arange(READINGS) == ZERO
    read = found.has & found.usable[:, None] & (single == (found.odds < 0)[:, None])
    for m in moved:
        whose, slot = np.nonzero(read & (owner != owner[m.regime])[:, None])
        lines = found.u[whose, slot]
        best = m.best(lines, ~known[whose], sure=sure) if len(lines) else None
        if best is not None:
            turned.line[m.regime], turned.regime[m.regime] = lines[best], whose[best]
    return turned


@dataclass(frozen=True, eq=False)
class _Moved:
    """The directions that a regime moves: `M − I` is nearly `Vᵀ diag(values) V`.

    `third` is that of the regime as it is, and `edges` are those of chance (see `Judged`).
    """

    regime: int
    third: float
    values: FloatArray
    V: FloatArray
    edges: FloatArray

    def best(self, lines: FloatArray, unknown: BoolArray, *, sure: bool) -> int | None:
        """The line that explains the regime best, if one does.

        Of lines of shape (m, p), those that are `unknown` may belong to the second target of their
        own regime. If `sure`, only one that leaves no third direction, and that no other line
        explains as well.
        """
        a = lines @ self.V.T
        # A matrix with the eigenvalues of the rest of D without each line, shape (m, k, k).
        K = self.values[:, None] * (np.eye(len(self.values)) - a[:, :, None] * a[:, None, :])
        rest = np.sort(np.linalg.eigvals(K).real, axis=1)
        below, above = beyond(1.0 + rest, self.edges)
        left = np.maximum(below[:, 1], above[:, -2])
        count = (np.maximum(below, above) > 1).sum(axis=1)
        # The line is that of the regime's own target if the rest is half of the change or more.
        smaller = 2 * np.einsum("mab,mba->m", K, K) <= np.sum(self.values**2)
        smaller &= unknown
        second = np.sort(np.abs(rest), axis=1)[:, -2]
        best = int(np.lexsort((second, count, smaller, np.maximum(left, 1.0)))[0])
        if not sure:
            return best if left[best] < self.third else None
        others = np.abs(lines @ lines[best]) < SAME
        also = others & (left <= CLEARLY) & (count <= count[best])
        return None if left[best] > 1 or smaller[best] or also.any() else best
