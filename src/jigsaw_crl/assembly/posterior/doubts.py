"""Reasons to doubt what clients see of a pair, each estimated from the study.

- The effect of an implied pair is a product and may be too small to see (`invisible_share`).
- A hidden common cause with unequal loadings looks like ancestry at every client that lacks it
  (`common_cause`): once per pair, and only for a cause that has a name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.assembly.evidence import Evidence
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.order import transitive_closure
from jigsaw_crl.evidence.pooled import Pooled, Shares, mixed

__all__ = ["CommonCause", "common_cause", "invisible_share", "too_many_causes"]


# Implied pairs: prior share of invisible effects, worth ten pairs; a label's own share is shrunk to
# the study's with the weight of three pairs; beyond an invisible part nothing is expected.
INVISIBLE, PRIOR_PAIRS, ROW_PAIRS, EXCUSED = 0.08, 10.0, 3.0, 0.9
# A common ancestor that is hidden from a client shows there with this probability, as a district or
# looking like ancestry; otherwise its effects are too small to see.
SHOWS = 0.9
# How often a hidden common cause looks like ancestry in one direction (.06 to .08 in simulations).
MIMIC = 0.05
# Common causes are weighed one by one: labels³ × clients operations, not beyond this.
MOST_WORK = 3e10


def _product(a: BoolArray, b: BoolArray) -> BoolArray:
    return np.asarray((a.astype(np.float32) @ b.astype(np.float32)) > 0.5)


def invisible_share(
    pooled: Pooled,
    direct: FloatArray,
    probability: FloatArray,
    visible: tuple[float, ...],
    cover_cost: float,
    *,
    by_row: bool = True,
) -> tuple[FloatArray, BoolArray]:
    """Probability that each pair's effect is invisible if it is implied, and which are excused.

    An effect through z is a product: beyond an invisible part nothing is expected of the whole
    (excused, at no cost). Otherwise the share of invisible pairs among those that its row or column
    would imply, shrunk to the study's share. "Would imply" follows evidence that would pay for a
    cover as well as the last orders, so that a chain that was cut can heal. Only pairs that two
    clients saw count: where each pair has one client, one false cover would excuse the next.
    """
    seen = [x + np.log(w) for x, w in zip(pooled.ancestor, visible, strict=False)]
    off = ~np.eye(len(direct), dtype=bool)
    # A study of one client has nothing else to learn from.
    twice = pooled.n_clients > int(pooled.n_clients.max() > 1)
    hidden = (np.logaddexp.reduce(seen, axis=0) < 0) & twice & off
    chain = ((direct > cover_cost + 1.0) & (direct > direct.T) & twice) | (probability > 0.5)
    chain = transitive_closure(chain & off)
    chain &= ~chain.T & off
    excused = (_product(chain & hidden, chain) | _product(chain, chain & hidden)) & chain
    counted = _product(chain, chain) & chain & ~excused & twice
    missing = counted & hidden
    study = (missing.sum() + PRIOR_PAIRS * INVISIBLE) / (counted.sum() + PRIOR_PAIRS)
    weight = ROW_PAIRS if by_row else 1e6
    row, column = (
        (missing.sum(axis=i) + weight * study) / (counted.sum(axis=i) + weight) for i in (1, 0)
    )
    own = np.clip(np.fmax(row[:, None], column[None, :]), 0.01, 0.8)
    return np.where(excused, EXCUSED, own), excused


@dataclass(frozen=True, eq=False)
class CommonCause:
    """The most probable common cause of every pair that would look like ancestry.

    Parameters
    ----------
    log_odds : array, shape (p, p)
        "Unrelated, but below this cause, which looks like ancestry where it is hidden" against
        "unrelated", from the clients that lack the cause.
    inside : array, shape (n_scales + 1, p, p)
        What the clients say that have it.
    """

    log_odds: FloatArray
    inside: FloatArray

    def doubted(self, evidence: FloatArray, shares: Shares) -> FloatArray:
        """`E' = log(e^E + e^(b + x)) − log(1 + e^b)`, x from the clients that have the cause."""
        there = np.minimum(mixed(self.inside, shares), np.fmax(evidence, 0.0))
        doubt = np.logaddexp(evidence, self.log_odds + there)
        return np.asarray(doubt - np.logaddexp(0.0, self.log_odds))


def too_many_causes(said: Evidence) -> bool:
    """Are there too many labels and clients to weigh hidden common causes?"""
    return float(len(said.labels)) ** 3 * len(said.claims) > MOST_WORK


def common_cause(said: Evidence, above: FloatArray) -> CommonCause | None:
    """Weigh every label h as a common cause of every pair; None where there are too many.

    At a client without h, `H_k = log[1 − s + s e^max(l_A, l_A', l_D)] − log[1 − π + π e^{l_D}]`,
    with s = `SHOWS` and π the probability that the pair lies in one district there. Where a hard
    intervention settles the pair, no hidden cause looks like an effect (T8), and only l_D counts in
    the first term. The weight of h is `MIMIC` times `above[h, i] above[h, j]` over the expected
    number of common ancestors.

    Parameters
    ----------
    said : Evidence
    above : array, shape (p, p)
        Probability of every pair, and 0 where no client has both labels: a cause that is above j
        only because i seems to be is no reason to doubt that i is.
    """
    p, n, trust = len(above), len(said.claims), said.use.weights
    if too_many_causes(said):
        return None
    H, single = np.zeros((n, p, p)), np.zeros((n, p, p), dtype=bool)
    has = said.panel.where >= 0
    for k, claims in enumerate(said.claims):
        if claims.bayes is None or claims.log_open is None:
            continue
        grid = np.ix_(claims.members, claims.members)
        ancestor = np.nan_to_num(claims.bayes.ancestor.max(axis=0))
        district = np.nan_to_num(claims.bayes.district)
        most = np.fmax(np.fmax(ancestor, ancestor.T), district)
        most = np.where(claims.bayes.settled, district, most)
        mimics = np.logaddexp(np.log1p(-SHOWS), np.log(SHOWS) + most)
        closed = np.log1p(-np.exp(claims.log_open))
        H[k][grid] = trust[k] * (mimics - np.logaddexp(closed, claims.log_open + district))
        alone = np.array(claims.bayes.single)
        single[k][grid] = alone[:, None] | alone
    total, log_above = H.sum(axis=0), np.log(np.clip(above, 1e-9, 1.0))
    log_missed = np.log(said.missed.share)
    best, who = np.full((p, p), -np.inf), np.zeros((p, p), dtype=np.intp)
    for h in np.flatnonzero(above.max(axis=1) >= 0.01):
        value = log_above[h][:, None] + log_above[h][None, :] + total - H[has[:, h]].sum(axis=0)
        # Where h is hidden both targets have a second direction. That it was missed counts once:
        # a direction that is weak is weak at all clients.
        value += log_missed * single[~has[:, h]].any(axis=0)
        value[h] = value[:, h] = -np.inf
        better = value > best
        best[better], who[better] = value[better], h
    shared = np.log(np.fmax(1.0, above.T @ above))
    best = np.fmax(best, -700.0) + np.log(MIMIC) - shared
    inside = np.zeros((said.n_scales + 1, p, p))
    for k, claims in enumerate(said.claims):
        if claims.bayes is None:
            continue
        grid = np.ix_(claims.members, claims.members)
        there = has[k][who[grid]]
        for s in range(said.n_scales):
            inside[s][grid] += np.where(there, trust[k] * claims.evidence.ancestor[s], 0.0)
    return CommonCause(best, inside)
