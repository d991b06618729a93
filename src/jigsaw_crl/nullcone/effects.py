"""Total effects and the latents themselves, with their errors, from hard interventions (T8).

The user says that an intervention is hard: its target no longer listens to its causes. If the
intervention on i is hard, `h_i = (u_i − c_i)/‖q_i‖` reads the latent i itself. The total effect of
j on i, in standard deviations of the control, is

    E_ij = t g_j / g_i ,     t = (u_i − c_i)·u_j ,     g = ‖u − c‖ = √(1 + ‖c‖²) ,

and what intervention j did to i as it was applied is `(u_i − c_i)·d_j / g_i`. Errors are those of
`delta`; the products of two errors add `(p − 1)` times the variance of one entry.

One of the two effects between any pair of hard targets must vanish, because causes do not run in
circles: lines with which neither does are not chosen (`reading`). Where both clearly differ from
zero with all lines that fit, an intervention was not hard, and the labels of such pairs count as
soft.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.findings import ReadingNote
from jigsaw_crl.base.nulls import CLEAR_ERRORS
from jigsaw_crl.evidence.effects import Effects, Sizes
from jigsaw_crl.evidence.hypotheses import Hypotheses
from jigsaw_crl.nullcone.delta import C_I, C_J, U_I, U_J, Errors, delta
from jigsaw_crl.nullcone.reading import Reading, Sight, read

# Log evidence by which the chosen line of a target must lead for its effects to be given.
LEAD = 4.0
# Size of a shift of exact moments from which it says in which direction the target moved.
SHIFTED_EXACTLY = 1e-6
# The fifth vector of the basis of a pair, beside those of `delta`: the shift of j's mean.
D_J = C_J + 1


@dataclass(frozen=True, eq=False)
class Revealed:
    """What the hard interventions of a reading reveal; made by `reveal`."""

    reading: Reading
    # By label: the regime that stands for it, is its line known for sure, did its mean move
    # clearly, and what gives the line its direction.
    regime: IntArray
    known: BoolArray
    shifted: BoolArray
    sign: FloatArray
    up: tuple[int, ...]  # see `Effects.up`
    # Line, c and shift of each label, shape (p, n_latent), and g.
    u: FloatArray
    c: FloatArray
    d: FloatArray
    g: FloatArray

    def tables(self) -> Effects:
        """Effects on every label with a hard intervention, of every label that can be seen."""
        hard, known = self.reading.hard, self.known
        p = len(hard)
        seen = ~np.eye(p, dtype=bool) & (hard & known)[:, None] & known
        total, applied = np.full((2, p, p), np.nan), np.full((2, p, p), np.nan)
        # The cause's unit is its standard deviation, which a hard intervention on it reveals.
        each = (total, hard, total_effect), (applied, self.shifted, applied_effect)
        for table, causes, gradient in each:
            effect, cause = np.nonzero(seen & causes)
            table[:, cause, effect] = self.effects(effect, cause, gradient)
        moved = tuple(self.shifted.astype(int).tolist())
        return Effects(tuple(hard.tolist()), moved, Sizes(*total), Sizes(*applied), self.up)

    def effects(
        self, effect: IntArray, cause: IntArray, gradient: GradientOf
    ) -> tuple[FloatArray, FloatArray]:
        """Effects of labels `cause` on labels `effect`, by `gradient`, with standard errors."""
        i, j, targets = effect, cause, self.reading.targets
        B = np.stack([self.u[i], self.c[i], self.u[j], self.c[j], self.d[j]])
        K = np.einsum("akp,bkp->abk", B, B)
        f = gradient(K, self.g[i], self.g[j])
        if self.reading.exact:
            return f.value, np.zeros_like(f.value)
        R, Y = (np.einsum("akp,bkp->abk", B @ metric, B) for metric in targets.white.metrics)
        r = Errors.of(targets, self.regime, self.reading.choice.reading[self.regime])
        # Lines were turned.
        r = replace(r, by_mean=self.sign * r.by_mean)
        variance = delta(r, i, j, K, R, Y, f.by_u[:, None], f.by_c[:, None], f.by_d)
        # Products of the errors of h_i with those of the line (or the shift) of j.
        own = 1.0 + np.maximum(r.lam[i], -0.9)
        of_i = own**2 / r.alpha[i] + own * (1.0 / r.n[i] + 1.0 / r.n_eff[i])
        of_j = 1.0 / r.alpha[j]
        if f.by_d is not None:
            w = targets.w_mean[self.regime[j]]
            of_j = np.divide(1.0, w, out=np.zeros_like(w), where=w > 0)
        free = max(targets.white.dimension - 1, 1)
        return f.value, np.sqrt(variance[0] + free * f.ratio**2 * of_i * of_j)


class Gradient(NamedTuple):
    """An effect of k pairs (i, j) and its derivatives, in the basis u_i, c_i, u_j, c_j, d_j.

    The effect itself and the number that `(u_i − c_i)·x` is multiplied by in it, shape (k,);
    derivatives by u and by c of i (first row) and of j, shape (2, 5, k), and by the shift d_j,
    shape (1, 5, k), where it is part of the effect.
    """

    value: FloatArray
    ratio: FloatArray
    by_u: FloatArray
    by_c: FloatArray
    by_d: FloatArray | None = None


# Takes the Gram matrices of the bases, shape (5, 5, k), and g of i and of j, shape (k,).
GradientOf = Callable[[FloatArray, FloatArray, FloatArray], Gradient]


def total_effect(K: FloatArray, g_i: FloatArray, g_j: FloatArray) -> Gradient:
    """`E_ij` of the module's docstring."""
    ratio = g_j / g_i
    value = (K[U_I, U_J] - K[C_I, U_J]) * ratio
    by_u, by_c = np.zeros((2, 2, 5, len(ratio)))
    by_u[0, U_J], by_c[0, U_J], by_c[0, C_I] = ratio, -ratio, -value / g_i**2
    by_u[1, U_I], by_u[1, C_I], by_c[1, C_J] = ratio, -ratio, value / g_j**2
    return Gradient(value, ratio, by_u, by_c)


def applied_effect(K: FloatArray, g_i: FloatArray, _: FloatArray) -> Gradient:
    """`(u_i − c_i)·d_j / g_i`: what intervention j did to i as it was applied."""
    ratio = 1.0 / g_i
    value = (K[U_I, D_J] - K[C_I, D_J]) * ratio
    by_u, by_c = np.zeros((2, 2, 5, len(ratio)))
    by_u[0, D_J], by_c[0, D_J], by_c[0, C_I] = ratio, -ratio, -value / g_i**2
    by_d = np.zeros((1, 5, len(ratio)))
    by_d[0, U_I], by_d[0, C_I] = ratio, -ratio
    return Gradient(value, ratio, by_u, by_c, by_d)


def reveal(reading: Reading, named: tuple[int, ...] = ()) -> Revealed:
    """What the hard interventions of a reading reveal.

    The direction of a line is that in which the sensor rises that the user named for the label;
    else that of the label's shift; and if none shows, that in which the sensor rises that carries
    most of it. `named` has the feature that is named for each label; −1 for none.
    """
    targets, white, p = reading.targets, reading.targets.white, len(reading.hard)
    # The clearest of a label's regimes whose line is sure, and among equals the first.
    sure = targets.usable & (reading.exact | (reading.choice.margin > LEAD))
    order = np.flatnonzero(sure)[::-1]
    order = order[np.argsort(targets.strength[order], kind="stable")]
    regime, known = np.zeros(p, dtype=np.intp), np.zeros(p, dtype=bool)
    regime[reading.owner[order]], known[reading.owner[order]] = order, True
    at = regime, reading.choice.reading[regime]
    u, c, d = targets.u[at], targets.c[at], white.d[regime]
    along = np.einsum("rp,rp->r", u, d)
    clear = np.abs(along) * (1.0 if reading.exact else np.sqrt(targets.w_mean[regime]))
    shifted = known & (clear > (SHIFTED_EXACTLY if reading.exact else CLEAR_ERRORS))
    sensors = np.broadcast_to(np.array(named or -1), (p,))
    response = white.carried @ u.T
    size = np.linalg.norm(white.carried, axis=1, keepdims=True)
    most = np.argmax(np.abs(response) / np.where(size > 0, size, np.inf), axis=0)
    by_sensor = response[np.where(sensors >= 0, sensors, most), np.arange(p)]
    rule = np.where(shifted & (sensors < 0), along, by_sensor)
    sign = np.where(rule < 0, -1.0, 1.0)
    told = np.where(shifted & (sign * along < 0), -1, 1) * (known & (sensors >= 0))
    # What noise adds to ‖c‖².
    own = 1.0 + np.maximum(targets.lam[at], -0.9)
    added = max(white.dimension - 1, 1) * own / white.size[regime]
    g = np.sqrt(1.0 + np.maximum(np.einsum("rp,rp->r", c, c) - added, 0.0))
    up = tuple(told.tolist()) if (sensors >= 0).any() else ()
    turn = sign[:, None]
    return Revealed(reading, regime, known, shifted, sign, up, turn * u, turn * c, d, g)


def read_claimed(
    sight: Sight, labels: tuple[str, ...], hypotheses: Hypotheses, hard: BoolArray
) -> tuple[Reading, tuple[ReadingNote, ...]]:
    """Read a client whose interventions on some labels are said to be hard.

    Labels for which the data contradict this are read as soft. Their notes have the smaller of the
    two effects in the pair that shows it most clearly, in standard errors.
    """
    notes: dict[int, ReadingNote] = {}
    while True:
        reading = read(sight, len(labels), hypotheses=hypotheses, hard=hard)
        sure = reading.choice.margin > LEAD
        s, least = reading.statistics, reading.both_ways
        both = (least > reading.edge) & sure[s.first] & sure[s.second]
        if not both.any():
            return reading, tuple(notes[x] for x in sorted(notes))
        i, j = reading.owner[s.first], reading.owner[s.second]
        # The label in most contradictions; if two are in equally many, both are doubted.
        count = np.bincount(np.concatenate([i[both], j[both]]), minlength=len(labels))
        for x in np.flatnonzero(count == count.max()).tolist():
            size = round(min(float(least[both & ((i == x) | (j == x))].max()), 1e6), 2)
            notes[x] = ReadingNote(labels[x], "not-hard", size, round(reading.edge, 2))
            hard = hard & (np.arange(len(labels)) != x)
