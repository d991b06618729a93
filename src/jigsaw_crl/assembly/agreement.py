"""Do the sites agree on a pair, or do some have an effect that others lack?

Pooling adds up what the sites say, as if one truth held at all of them. Let x_ks be what client k
says of a pair: the log Bayes factor of an effect of scale s against none, with districts averaged
over. The two accounts of what all sites say are

    one truth:      log ½ [1 + mean_s exp Σ_k x_ks] ,
    sites differ:   log mean_s ∫₀¹ Π_k [θ exp x_ks + 1 − θ] dθ ,

where a share θ of the sites, which may be any, has the effect. The difference is the log Bayes
factor that sites differ. A client from which a probable cause of both labels is hidden does not
count: the cause can look like an effect there, and nowhere else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logsumexp

from jigsaw_crl.assembly.panel import SPEAKS, Claims, Panel
from jigsaw_crl.assembly.posterior.weights import FIRST_RATE, MOST_WORK, pool
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray

__all__ = ["DIFFER", "Disagreement", "agreement", "pairs_apart"]

# Bayes factor from which sites are said to differ. In 100 simulated sound studies of 4 to 15
# sites, the largest of all pairs was 4.5.
DIFFER = 20.0
# Probability, before the data, that one truth holds at all sites.
ONE_TRUTH = 0.95
# Log-odds above which a label counts as a cause that may be hidden from a client.
PROBABLE = -1.0
# The integral over θ is exact for twice as many sites, less one.
NODES = 10


class Disagreement(NamedTuple):
    """A pair on which sites differ: those that have the effect, and those that lack it."""

    ancestor: str
    descendant: str
    having: tuple[str, ...]
    lacking: tuple[str, ...]
    bayes_factor: float


def agreement(panel: Panel) -> FloatArray:
    """Probability that one truth holds at all sites, for every ordered pair, shape (p, p).

    NaN for pairs of fewer than two sites, and everywhere if there are too many labels and sites.
    """
    return np.asarray(expit(np.log(ONE_TRUTH / (1 - ONE_TRUTH)) - _log_factors(panel)))


def pairs_apart(panel: Panel) -> tuple[Disagreement, ...]:
    """The pairs on which sites differ, the clearest first; each pair of labels once."""
    factors = _log_factors(panel)
    found: dict[frozenset[int], Disagreement] = {}
    with np.errstate(invalid="ignore"):
        a, d = np.nonzero(factors > np.log(DIFFER))
    for i in np.argsort(-factors[a, d], kind="stable").tolist():
        pair = int(a[i]), int(d[i])
        sides = _sides(panel, *pair)
        if all(sides) and frozenset(pair) not in found:
            ancestor, descendant = (panel.labels[x] for x in pair)
            factor = float(np.exp(factors[pair]))
            found[frozenset(pair)] = Disagreement(ancestor, descendant, *sides, factor)
    return tuple(found.values())


def _log_factors(panel: Panel) -> FloatArray:
    """Log Bayes factors of "sites differ" against "one truth"."""
    p, scales = len(panel.labels), panel.n_scales
    weighing = [c for c in panel.claims if c.evidence is not None]
    if len(weighing) < 2 or len(weighing) * p * p > MOST_WORK:
        return np.full((p, p), np.nan)
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    share = ((1 + nodes) / 2)[:, None, None, None]
    differ, one = np.zeros((NODES, scales, p, p)), np.zeros((scales, p, p))
    heard = np.zeros((p, p), dtype=np.int64)
    total = _pooled(panel)
    for c in weighing:
        x, says = _said(c, total)
        rows, columns = c.members[:, None], c.members[None, :]
        one[:, rows, columns] += x
        differ[:, :, rows, columns] += np.logaddexp(np.log(share) + x, np.log1p(-share))
        heard[rows, columns] += says
    log_weights = np.log(weights / 2)[:, None, None, None]
    apart = logsumexp(differ + log_weights, axis=(0, 1)) - np.log(scales)
    together = np.logaddexp(logsumexp(one, axis=0) - np.log(scales), 0.0) - np.log(2)
    return np.asarray(np.where(heard > 1, apart - together, np.nan))


def _pooled(panel: Panel) -> FloatArray:
    """Log-odds of every pair against all else, all clients together."""
    odds = pool(panel, np.ones(len(panel.claims)), FIRST_RATE).log_odds()
    return np.asarray(odds - np.logaddexp(0.0, odds.T))


def _said(c: Claims, total: FloatArray) -> tuple[FloatArray, BoolArray]:
    """What a client says at each visible scale, zero where it does not count; and where it does."""
    assert c.evidence is not None
    hidden: IntArray = np.setdiff1d(np.arange(len(total)), c.members)
    causes = (total[np.ix_(hidden, c.members)] > PROBABLE).astype(np.int64)
    says = c.says & ~(causes.T @ causes > 0)
    return np.where(says, c.evidence.ancestor[:-1], 0.0), np.asarray(says)


def _sides(panel: Panel, a: int, d: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The sites that have an effect, and those that lack it, at the scale on which most speak."""
    total = _pooled(panel)
    said: dict[str, FloatArray] = {}
    for k, i, j in panel.seen_by(a, d):
        if panel.claims[k].evidence is not None:
            x, says = _said(panel.claims[k], total)
            said |= {panel.claims[k].client: x[:, i, j]} if says[i, j] else {}
    scale = int(np.argmax(np.sum([np.abs(x) for x in said.values()], axis=0)))
    having = tuple(name for name, x in said.items() if x[scale] > SPEAKS)
    return having, tuple(name for name, x in said.items() if x[scale] < -SPEAKS)
