"""Is a client's system linear, and if not: what its hard interventions say all the same.

In a linear system every regime moves one plane (T1): the misfit of each regime to "one latent
moved" is chance, and T8 reads the client. Where some regimes do not fit, and hard interventions
shift the means of their targets, labels are read by peeling (T9, `peeling`). It is used if it
explains most of the misfits: those of several targets, batches or gains stay.

A slight bend shows more clearly in the effects: by T8 they then run both ways between two labels,
as they do where an intervention is called hard and is not. If so, a smaller misfit decides.

Labels that are not called hard, or whose mean does not move, are no readers and are not removed;
nothing is said about them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.client.white import White
from jigsaw_crl.evidence.effects import Effects, Sizes
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.evidence.hypotheses import Hypotheses
from jigsaw_crl.nullcone.peeling import Changes, Peeled, fits, peel

__all__ = ["BENT", "Nonlinear", "read_nonlinear"]

# Chance that a linear client is peeled, over all its regimes; and the same where effects run both
# ways, which is then the chance that a false claim is not named.
BENT, DOUBTED = 1e-4, 0.05
# A shift of the mean in standard errors from which a label can be read.
SHIFTED = 5.0
# Peeling is used if it leaves at most this share of the misfits unexplained.
EXPLAINED = 0.5


@dataclass(frozen=True, eq=False)
class Nonlinear:
    """What peeling says about a client of p labels.

    Parameters
    ----------
    read : array of bool, shape (p,)
        Labels that were read.
    bends : array, shape (p,)
        Tail probability of each regime's misfit to "one latent moved"; NaN if it was not tested.
    unexplained : array, shape (p,)
        Tail probability of what peeling leaves of it; NaN if the label was not peeled.
    peeled : Peeled
        Of the labels that were peeled, `which`.
    which : array of int
    functionals : array, shape (len(which), n_features)
        Readers of the features.
    """

    read: BoolArray
    bends: FloatArray
    unexplained: FloatArray
    peeled: Peeled
    which: list[int]
    functionals: FloatArray

    def _spread(self, table: FloatArray, fill: float = np.nan) -> FloatArray:
        """A table of the peeled labels as one of all labels; NaN for labels that are not read."""
        p = len(self.read)
        out = np.full((*table.shape[:-2], p, p), fill)
        out[..., np.array(self.which)[:, None], np.array(self.which)] = table
        out[..., ~self.read, :] = np.nan
        out[..., :, ~self.read] = np.nan
        return out

    def bayes(self, hypotheses: Hypotheses) -> BayesFactors:
        """The evidence of every pair. Districts are not looked for: their factor is 1."""
        ancestor = self._spread(self.peeled.log_factors)
        district = np.where(np.isnan(ancestor[0]), np.nan, 0.0)
        np.fill_diagonal(district, np.nan)
        settled = self.read[:, None] & self.read
        np.fill_diagonal(settled, False)
        return BayesFactors(hypotheses.scales, ancestor, district, settled=settled)

    def effects(self) -> Effects:
        """What each intervention did to the labels, as it was applied.

        There are no total effects: slopes depend on the dose.
        """
        p = len(self.read)
        value, error = self._spread(self.peeled.value), self._spread(self.peeled.error)
        value[np.isnan(error)] = np.nan
        hard = np.zeros(p, dtype=bool)
        hard[self.which] = True
        return Effects(
            hard=tuple(hard.tolist()),
            moved=tuple(hard.astype(int).tolist()),
            total=Sizes(*np.full((2, p, p), np.nan)),
            applied=Sizes(value, error),
        )


def read_nonlinear(
    white: White,
    hard: BoolArray,
    scales: tuple[float, ...],
    *,
    both_ways: bool = False,
    elsewhere: bool = False,
) -> Nonlinear | None:
    """Peel a client whose hard interventions contradict a linear system; None if none does.

    Parameters
    ----------
    white : White
    hard : array of bool, shape (p,)
        Labels whose intervention is hard.
    scales : tuple of float
        Effect scales of the hypotheses.
    both_ways : bool
        By T8, effects run both ways between some labels.
    elsewhere : bool
        The system is not linear at another client.
    """
    if white.exact or hard.sum() < 2:
        return None
    changes, W = _changes(white, np.flatnonzero(hard).tolist())
    if changes.d.shape[1] < 2:
        return None
    tail, whole = fits(changes)
    limit = BENT / len(tail)
    bent = tail < limit
    sign = both_ways and (elsewhere or min(len(tail) * float(tail.min()), whole) < DOUBTED)
    if not (bent.any() or sign):
        return None
    shift = np.sqrt(changes.w_mean) * np.linalg.norm(changes.d, axis=1)
    clear = shift > SHIFTED + np.sqrt(changes.d.shape[1])
    which = np.flatnonzero(hard)[clear]
    if len(which) < 2:
        return None
    peeled = peel(changes.of(clear), scales)
    left = peeled.fit < limit
    if left.sum() + (bent & ~clear).sum() > EXPLAINED * bent.sum():
        return None
    bends, unexplained = np.full((2, len(hard)), np.nan)
    bends[hard], unexplained[which] = tail, peeled.fit
    read = np.zeros(len(hard), dtype=bool)
    read[which] = ~left
    return Nonlinear(read, bends, unexplained, peeled, which.tolist(), peeled.readers @ W)


def _changes(white: White, labels: list[int]) -> tuple[Changes, FloatArray]:
    """What the regimes of some labels changed, and the whitening that was used.

    Of several strengths of one label, the covariances are averaged (a mixture of hard interventions
    is hard about its own means) and the clearest shift counts.
    """
    # Rows carry the sensors' noise: coordinates in which their covariance is I.
    rows, errors, p = white.rows, white.errors, white.dimension
    every = rows.M - np.eye(p)
    signal = np.eye(p) if white.noise is None else np.linalg.inv(np.eye(p) + white.noise)
    D, d, n, n_mean, base = [], [], [], [], []
    for label in labels:
        own = np.flatnonzero(white.owner == label)
        weight = white.n[own] / white.n[own].sum()
        length = errors.precision[own] * np.einsum("rp,rp->r", rows.d[own], rows.d[own])
        best = int(own[length.argmax()])
        D.append(np.einsum("r,rab->ab", weight, every[own]))
        d.append(rows.d[best] * float(errors.known[best]))
        n.append(float(white.n[own].sum()))
        n_mean.append(float(errors.n[best]))
        base.append(float(errors.base[best] / errors.n_control))
    changes = Changes(
        np.array(D), np.array(d), signal, np.array(n), white.n_control,
        np.array(n_mean), np.array(base),
    )  # fmt: skip
    return changes, rows.W
