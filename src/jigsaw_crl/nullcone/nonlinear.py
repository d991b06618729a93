"""Is a client's system linear, and if not: what its hard interventions say all the same.

In a linear system every regime moves one plane (T1): the misfit of its mean and covariance to "one
latent moved" is chance, and T8 reads the client. Where some regimes do not fit, and hard
interventions shift the means of their targets, labels are read by peeling (T9, `peeling`), if that
explains most of the misfits. Others make regimes misfit as well:

- Offsets of batches move the means of all regimes and no covariance; bends leave the regimes of
  labels without descendants alone (`Fits.offsets`).
- An intervention that acts on a second label moves one that need not depend on its target: where
  most of the regimes that do not fit clearly moved a label that depends on their target neither in
  the control nor inside the regime, and bent no other (`_aside`), the client is not peeled.

A slight bend shows more clearly in the effects: by T8 they then run both ways between two labels,
as they do where an intervention is called hard and is not. In a linear system a false claim leaves
no misfit. So if effects run both ways, a smaller misfit decides.

Labels that are not called hard, or whose mean does not move, are no readers and are not removed;
nothing is said about them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.nulls import CLEAR_ERRORS, LENIENT, RARE_ALARM
from jigsaw_crl.client.white import White
from jigsaw_crl.evidence.effects import Effects, Sizes
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.evidence.hypotheses import Hypotheses
from jigsaw_crl.nullcone.changes import Changes, changes_of, fits
from jigsaw_crl.nullcone.peeling import Peeled, peel

# A clear misfit is at least this many times its expectation: heavy tails of single latents, which
# the rows count for on average only, reach 1.7.
RATIO = 2.0
# A label was moved directly if its shift is clear by MOVED_CLEARLY standard errors, its dependence
# on the target is within CHANCE of them, and ASIDE of what the shift suggests is not.
MOVED_CLEARLY, CHANCE, ASIDE = 6.0, 3.0, 0.3


@dataclass(frozen=True, eq=False)
class Nonlinear:
    """What peeling says about a client of p labels."""

    read: BoolArray  # labels that were read, shape (p,)
    # Tail probability of each regime's misfit to "one latent moved", NaN if it was not tested; and
    # of what peeling leaves of it, NaN if the label was not peeled; shape (p,).
    bends: FloatArray
    unexplained: FloatArray
    peeled: Peeled  # of the labels that were peeled, `which`
    which: list[int]
    functionals: FloatArray  # readers of the features, shape (len(which), n_features)

    def _spread(self, table: FloatArray) -> FloatArray:
        """A table of the peeled labels as one of all labels; NaN for labels that are not read."""
        p = len(self.read)
        out = np.full((*table.shape[:-2], p, p), np.nan)
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
    contradicts: bool = False,
    doubted: float = LENIENT,
) -> tuple[Nonlinear | None, float]:
    """Peel a client whose hard interventions contradict a linear system.

    Parameters
    ----------
    white : White
    hard : array of bool, shape (p,)
        Labels whose intervention is hard.
    scales : tuple of float
        Effect scales of the hypotheses.
    contradicts : bool
        By T8, effects run both ways between some labels, or means contradict covariances.
    doubted : float
        The chance of the misfits up to which the client is then peeled, and so the chance that a
        false claim is not named; otherwise it is `RARE_ALARM`, over all regimes.

    Returns
    -------
    nonlinear : Nonlinear or None
        None if nothing contradicts a linear system, or peeling does not explain what does.
    chance : float
        Probability of misfits as large as these in a linear system.
    """
    if white.exact or hard.sum() < 2 or white.dimension < 2:
        return None, 1.0
    changes, W = changes_of(white, np.flatnonzero(hard).tolist())
    fit = fits(changes)
    limit = RARE_ALARM / len(fit.tail)
    bent = (fit.tail < limit) & (fit.ratio > RATIO)
    if fit.offsets or not (bent.any() or (contradicts and fit.chance <= doubted)):
        return None, fit.chance
    shift = np.sqrt(changes.w_mean) * np.linalg.norm(changes.d, axis=1)
    clear = shift > CLEAR_ERRORS + np.sqrt(changes.d.shape[1])
    which = np.flatnonzero(hard)[clear]
    if len(which) < 2:
        return None, fit.chance
    changes, _ = changes_of(white, which.tolist())
    peeled = peel(changes, scales)
    left = peeled.fit < limit
    # Peeling must explain half of the misfits or more, and second targets fewer than half.
    unexplained = 2 * (left.sum() + (bent & ~clear).sum()) > bent.sum()
    aside = _aside(changes, peeled) & bent[clear]
    if unexplained or (bent.any() and 2 * aside.sum() >= bent.sum()):
        return None, fit.chance
    bends, rest = np.full((2, len(hard)), np.nan)
    bends[hard], rest[which] = fit.tail, peeled.fit
    read = np.zeros(len(hard), dtype=bool)
    read[which] = ~left
    found = Nonlinear(read, bends, rest, peeled, which.tolist(), peeled.readers @ W)
    return found, fit.chance


def _aside(changes: Changes, peeled: Peeled) -> BoolArray:
    """Regimes of labels a that moved a label d directly, and bent nothing; shape (r,).

    With m the dose, t/m is the slope of d on a by their means. Inside the regime of a, whose target
    depends on nothing, the slope is `h_dᵀ(K + D_a)h_a / h_aᵀ(K + D_a)h_a`; in the control it is
    the correlation `h_dᵀ K h_a`. Where d moved and depends on a neither here nor there, a second
    target explains it, unless the two slopes differ for labels that do not depend on d: a response
    that rises and falls may be flat on average.
    """
    h, K, t, error = peeled.readers, changes.signal, peeled.value, peeled.error
    signed = np.diagonal(t)[:, None]
    dose = np.abs(signed)
    C = np.einsum("ap,rpq,dq->rad", h, K + changes.D, h)
    rows = np.arange(len(h))
    own = C[rows, rows, rows][:, None]
    inside = C[rows, rows] / own
    of_inside = np.hypot(error / dose, np.sqrt(np.einsum("rdd->rd", C) / own / changes.n[:, None]))
    of_control = np.hypot(error / dose, np.sqrt(1.0 / changes.n_control))
    seen = ASIDE * np.abs(t) / dose
    with np.errstate(invalid="ignore"):  # NaN where a was removed before d
        found = np.abs(t) > MOVED_CLEARLY * error
        for slope, of in ((inside, of_inside), (h @ K @ h.T, of_control)):
            found &= (np.abs(slope) < CHANCE * of) & (CHANCE * of < seen)
        bends = np.abs(t / signed - inside) > MOVED_CLEARLY * of_inside
        moves = np.abs(t) > CHANCE * error
    np.fill_diagonal(found, False)
    np.fill_diagonal(moves, True)
    return np.asarray(found.any(axis=1) & ~(bends & ~(found @ moves)).any(axis=1))
