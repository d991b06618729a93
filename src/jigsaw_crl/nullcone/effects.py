"""Total effects and the latents themselves, with their errors, from hard interventions (T8).

The user says that an intervention is hard: its target no longer listens to its causes. If the
intervention on i is hard, `h_i = (u_i − c_i)/‖q_i‖` reads the latent i itself. The total effect of
j on i, in standard deviations of the control, is

    E_ij = t g_j / g_i ,     t = (u_i − c_i)·u_j ,     g = ‖u − c‖ = √(1 + ‖c‖²) ,

and what intervention j did to i as it was applied is `(u_i − c_i)·d_j / g_i`. Errors are those of
`delta`; the products of two errors add `(p − 1)` times the variance of one entry.

One of the two effects between any pair of hard targets must vanish, because causes do not run in
circles. Where both clearly differ from zero, an intervention was not hard, and the labels of such
pairs count as soft.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.stats import norm

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.client.nulls import FALSE_ALARM
from jigsaw_crl.evidence.effects import Effects, Sizes
from jigsaw_crl.evidence.hypotheses import Hypotheses
from jigsaw_crl.nullcone.delta import C_I, C_J, U_I, U_J, Errors, delta
from jigsaw_crl.nullcone.reading import Reading, Sight, read

__all__ = ["Contradicted", "Revealed", "read_claimed"]

# Log evidence by which the chosen line of a target must lead for its effects to be given.
LEAD = 4.0
# A shift of the mean in standard errors from which it says in which direction the target moved,
# and its size by exact moments.
SHIFTED, SHIFTED_EXACTLY = 5.0, 1e-6
# Effects in both directions are clear from so many standard errors.
BOTH_WAYS = 4.0
# The fifth vector of the basis of a pair, beside those of `delta`: the shift of j's mean.
D_J = 4


@dataclass(frozen=True)
class Contradicted:
    """A label whose intervention cannot have been hard.

    Parameters
    ----------
    label : str
    value, threshold : float
        The smaller of the two effects in the pair that shows it most clearly, in standard errors,
        and what chance allows.
    """

    label: str
    value: float
    threshold: float


@dataclass(frozen=True, eq=False)
class Revealed:
    """What the hard interventions of a reading reveal.

    Lines are those of the regime that stands for each label. Their direction is that in which the
    sensor rises that the user named for the label; else that of the label's shift; and if none
    shows, that in which the sensor rises that carries most of it.

    Parameters
    ----------
    reading : Reading
    named : tuple of int
        The feature that is named for each label; −1 for none.
    """

    reading: Reading
    named: tuple[int, ...] = ()

    @cached_property
    def known(self) -> BoolArray:
        """Labels whose line is known for sure, shape (p,)."""
        return np.isfinite(self._best[1])

    @cached_property
    def _best(self) -> tuple[IntArray, FloatArray]:
        """The regime that stands for each label and its strength; −inf if no line is sure."""
        reading = self.reading
        p = len(reading.hard)
        regime, best = np.zeros(p, dtype=np.intp), np.full(p, -np.inf)
        sure = reading.targets.usable & (reading.exact | (reading.choice.margin > LEAD))
        strength = np.where(sure, reading.targets.strength, -np.inf)
        for r, label in enumerate(reading.owner.tolist()):
            if strength[r] > best[label]:
                regime[label], best[label] = r, strength[r]
        return regime, best

    @cached_property
    def _chosen(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """u, c and d of each label, shape (p, d), and `g`, shape (p,)."""
        targets, regime = self.reading.targets, self._best[0]
        at = regime, self.reading.choice.reading[regime]
        white, u, c = targets.white, targets.u[at], targets.c[at]
        sign = self._sign[:, None]
        # What noise adds to ‖c‖².
        own = 1.0 + np.maximum(targets.lam[at], -0.9)
        added = max(white.dimension - 1, 1) * own / white.size[regime]
        size = np.maximum(np.einsum("rp,rp->r", c, c) - added, 0.0)
        return sign * u, sign * c, white.d[regime], np.sqrt(1.0 + size)

    @cached_property
    def _unturned(self) -> FloatArray:
        """u of each label as it was read, in either direction, shape (p, d)."""
        regime = self._best[0]
        u: FloatArray = self.reading.targets.u[regime, self.reading.choice.reading[regime]]
        return u

    @cached_property
    def _sign(self) -> FloatArray:
        """The sign that gives each line its direction, shape (p,)."""
        carried = self.reading.targets.white.carried
        response = carried @ self._unturned.T
        size = np.linalg.norm(carried, axis=1, keepdims=True)
        most = np.argmax(np.abs(response) / np.where(size > 0, size, np.inf), axis=0)
        sensor = np.where(self._is_named, self._sensors, most)
        by_sensor = response[sensor, np.arange(len(most))]
        by_shift = np.einsum(
            "rp,rp->r", self._unturned, self.reading.targets.white.d[self._best[0]]
        )
        rule = np.where(self.shifted & ~self._is_named, by_shift, by_sensor)
        return np.where(rule < 0, -1.0, 1.0)

    @property
    def _sensors(self) -> IntArray:
        """The feature that is named for each label, shape (p,); −1 for none."""
        return np.broadcast_to(np.array(self.named or -1), self.known.shape)

    @property
    def _is_named(self) -> BoolArray:
        return np.asarray(self._sensors >= 0)

    def up(self) -> tuple[int, ...]:
        """`Effects.up`: labels whose direction a named sensor gives; −1 if the shift went down."""
        if not self._is_named.any():
            return ()
        u, _, d, _ = self._chosen
        down = self.shifted & (np.einsum("rp,rp->r", u, d) < 0)
        told = self._is_named & self.known
        return tuple(np.where(told, np.where(down, -1, 1), 0).tolist())

    def loadings(self, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What the features do when a label moves, and the share of their variance, (p, n) twice.

        One standard deviation of the label moves them by `g (S₀ − Ψ) Wᵀ u`; of a label whose
        intervention is soft, one of its noise, without g. NaN where no line is known.
        """
        u, _, _, g = self._chosen
        response = u @ self.reading.targets.white.carried.T
        response = np.where(self.known[:, None], response, np.nan)
        share = response**2 / variances
        return response * np.where(self.reading.hard, g, 1.0)[:, None], share

    @cached_property
    def shifted(self) -> BoolArray:
        """Labels whose mean moved clearly, shape (p,)."""
        d = self.reading.targets.white.d[self._best[0]]
        m = np.abs(np.einsum("rp,rp->r", self._unturned, d))
        if self.reading.exact:
            return np.asarray(self.known & (m > SHIFTED_EXACTLY))
        weight = self.reading.targets.w_mean[self._best[0]]
        return np.asarray(self.known & (m * np.sqrt(weight) > SHIFTED))

    def functionals(self) -> FloatArray:
        """Functionals in whitened space that read latents with hard interventions, shape (p, d)."""
        u, c, _, _ = self._chosen
        return np.asarray((u - c) / np.linalg.norm(u - c, axis=1, keepdims=True))

    def tables(self) -> Effects:
        """Effects on every label with a hard intervention, of every label that can be seen."""
        hard, known = self.reading.hard, self.known
        p = len(hard)
        seen = ~np.eye(p, dtype=bool) & (hard & known)[:, None] & known
        total, applied = np.full((2, p, p), np.nan), np.full((2, p, p), np.nan)
        # The cause's unit is its standard deviation, which a hard intervention on it reveals.
        for table, causes in ((total, hard), (applied, self.shifted)):
            effect, cause = np.nonzero(seen & causes)
            table[:, cause, effect] = self.effects(effect, cause, applied=table is applied)
        moved = tuple(self.shifted.astype(int).tolist())
        return Effects(tuple(hard.tolist()), moved, Sizes(*total), Sizes(*applied), self.up())

    def effects(
        self, effect: IntArray, cause: IntArray, *, applied: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Effects of labels `cause` on labels `effect`, with their standard errors.

        Parameters
        ----------
        effect, cause : array of int, shape (k,)
        applied : bool
            What the cause's intervention did as applied, in place of the total effect.
        """
        i, j, targets = effect, cause, self.reading.targets
        u, c, d, g = self._chosen
        B = np.stack([u[i], c[i], u[j], c[j], d[j]])
        K = np.einsum("akp,bkp->abk", B, B)
        column, ratio = (D_J, 1.0 / g[i]) if applied else (U_J, g[j] / g[i])
        value = (K[U_I, column] - K[C_I, column]) * ratio
        if self.reading.exact:
            return value, np.zeros_like(value)
        a, b = np.zeros((2, 1, 5, len(i))), np.zeros((2, 1, 5, len(i)))
        a[0, 0, column] = ratio
        b[0, 0, column] = -ratio
        b[0, 0, C_I] = -value / g[i] ** 2
        shift = None
        if applied:
            # ∂/∂d = (u_i − c_i)/g_i
            shift = np.zeros((1, 5, len(i)))
            shift[0, U_I], shift[0, C_I] = ratio, -ratio
        else:
            a[1, 0, U_I], a[1, 0, C_I] = ratio, -ratio
            b[1, 0, C_J] = value / g[j] ** 2
        noise, regime = targets.white.noise, self._best[0]
        R = K if noise is None else K + np.einsum("akp,pq,bkq->abk", B, noise, B)
        r = Errors.of(targets, regime, self.reading.choice.reading[regime])
        # Lines were turned.
        r = replace(r, by_mean=self._sign * r.by_mean)
        variance = delta(r, i, j, K, R, (a[0], a[1]), (b[0], b[1]), shift)[0]
        # Products of the errors of h_i with those of the line (or the shift) of j.
        own = 1.0 + np.maximum(r.lam[i], -0.9)
        of_i = own**2 / r.alpha[i] + own * (1.0 / r.n[i] + 1.0 / r.n_eff)
        of_j = 1.0 / r.alpha[j]
        if applied:
            w = targets.w_mean[regime[j]]
            of_j = np.divide(1.0, w, out=np.zeros_like(w), where=w > 0)
        free = max(targets.white.dimension - 1, 1)
        return value, np.sqrt(variance + free * ratio**2 * of_i * of_j)


def read_claimed(
    sight: Sight, labels: tuple[str, ...], hypotheses: Hypotheses, hard: BoolArray
) -> tuple[Reading, tuple[Contradicted, ...]]:
    """Read a client whose interventions on some labels are said to be hard.

    Labels for which the data contradict this are read as soft.
    """
    reading = read(sight, len(labels), hypotheses=hypotheses, hard=hard)
    found = _contradictions(labels, reading) if hard.any() else ()
    if not found:
        return reading, ()
    wrong = {c.label for c in found}
    rest = hard & ~np.array([label in wrong for label in labels])
    return read(sight, len(labels), hypotheses=hypotheses, hard=rest), found


def _contradictions(labels: tuple[str, ...], reading: Reading) -> tuple[Contradicted, ...]:
    revealed = Revealed(reading)
    own = np.flatnonzero(revealed.known & reading.hard)
    if len(own) < 2:
        return ()
    i, j = (own[x] for x in np.triu_indices(len(own), 1))
    z = []
    for a, b in ((i, j), (j, i)):
        value, error = revealed.effects(a, b)
        # Exact moments carry rounding errors only.
        z.append(np.abs(value) / np.maximum(error, SHIFTED_EXACTLY if reading.exact else 0.0))
    least: FloatArray = np.minimum(z[0], z[1])
    threshold = max(float(norm.isf(FALSE_ALARM / (2 * len(least)))), BOTH_WAYS)
    out: dict[int, Contradicted] = {}
    open_ = least > threshold
    while open_.any():
        # The label in most contradictions; if two are in equally many, both are doubted.
        count = np.bincount(i[open_], minlength=len(labels))
        count = count + np.bincount(j[open_], minlength=len(labels))
        for label in np.flatnonzero(count == count.max()).tolist():
            clearest = float(least[open_ & ((i == label) | (j == label))].max())
            clear = round(min(clearest, 1e6), 2)
            out[label] = Contradicted(labels[label], clear, round(threshold, 2))
        open_ &= ~np.isin(i, list(out)) & ~np.isin(j, list(out))
    return tuple(out[label] for label in sorted(out))
