"""From pooled evidence to a posterior whose doubts follow its own probabilities.

    log posterior(R) = Σ_{covers} (E_c − C) + Σ_{implied pairs} (E_i − c) + Σ_{d with ancestors} S_d

A cover is a pair with no label between. Its effect is what the intervention on the descendant
changes, and it is nearly always visible. An implied effect is a product of others and often is not.
So E_c and E_i mix the effect scales with different weights. C is 2, or `log((p − 1)/1.4)` with few
labels, or `log((p − 1)/2.8)` with many: about 1.4 p pairs are covers in all families of graphs in
the benchmarks. An implied pair costs c = 0.6, or nothing if one of its parts is itself invisible; a
cost of 1 for every pair would penalise long chains. S_d is what the number of directions says about
d's having ancestors. What the user knows outweighs everything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.assembly.evidence import Evidence
from jigsaw_crl.assembly.posterior.chains import sample_orders
from jigsaw_crl.assembly.posterior.doubts import (
    INVISIBLE,
    CommonCause,
    common_cause,
    invisible_share,
)
from jigsaw_crl.assembly.posterior.posterior import Posterior
from jigsaw_crl.assembly.posterior.walk import KNOWN, Weights
from jigsaw_crl.assembly.verdict import NO, YES
from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.order import cover_matrix
from jigsaw_crl.evidence.pooled import Pooled

__all__ = ["OrderModel", "sample_posterior"]


# Prior shares of plain, weak and invisible effects among covers, worth ten covers; and of plain and
# weak ones among implied effects that are visible.
COVER_SHARES, PRIOR_COVERS = (0.8, 0.18, 0.02), 10.0
VISIBLE_SHARES = (0.6, 0.4)
# With more labels than MANY, each label has too few pairs to estimate its own invisible share, and
# an implied pair costs more.
MANY = 64
IMPLIED_COST, IMPLIED_COST_OF_MANY = 0.6, 0.8


def cover_cost(p: int) -> float:
    """Prior log-odds against a cover, for p labels."""
    places = max(p - 1, 1)
    return float(max(min(2.0, np.log(max(places / 1.4, 1.0))), np.log(places / 2.8)))


@dataclass(frozen=True, eq=False)
class OrderModel:
    """What makes an order probable, given what the clients say.

    Parameters
    ----------
    said : Evidence
    """

    said: Evidence

    @property
    def pooled(self) -> Pooled:
        return self.said.pooled

    def _above(self, probability: FloatArray) -> FloatArray:
        """Probabilities that count for common causes: of pairs that some client has."""
        return np.where(self.pooled.n_clients > 0, probability, 0.0)

    def cover_shares(self, probability: FloatArray | None) -> list[float]:
        """Shares of the effect scales among covers, from the pairs that are probable covers."""
        n = self.pooled.n_scales
        unseen = COVER_SHARES[-1]
        even = (*((1.0 - unseen) / n,) * n, unseen)
        prior = np.array(COVER_SHARES if len(COVER_SHARES) == n + 1 else even)
        if probability is None:
            return list(map(float, prior))
        covers = cover_matrix(probability > 0.5) & (self.pooled.n_clients > 0)
        shares = prior
        for _ in range(5):
            logs = self.pooled.ancestor[:, covers] + np.log(shares)[:, None]
            each = np.exp(logs - np.logaddexp.reduce(logs, axis=0)).sum(axis=1)
            shares = PRIOR_COVERS * prior + each
            shares = shares / shares.sum()
        return list(map(float, shares))

    def _direct(self, probability: FloatArray | None) -> tuple[FloatArray, CommonCause | None]:
        """Log Bayes factors of every pair as a cover, and the common causes that were weighed."""
        shares = self.cover_shares(probability)
        evidence = self.pooled.log_factor(shares, self.said.missed.leans)
        cause = None
        if probability is not None:
            cause = common_cause(self.said, self._above(probability))
        if cause is not None:
            evidence = cause.doubted(evidence, shares)
        return evidence, cause

    def weights(self, probability: FloatArray | None) -> Weights:
        """What an order is worth, given the probabilities of the round before."""
        p = len(self.said.labels)
        few = p <= MANY
        cost = cover_cost(p)
        n = self.pooled.n_scales
        visible = VISIBLE_SHARES if len(VISIBLE_SHARES) == n else (1.0 / n,) * n
        direct, cause = self._direct(probability)
        # Nothing is excused before common causes were weighed: one false cover would excuse more.
        hidden, excused = np.full((p, p), INVISIBLE), np.zeros((p, p), dtype=bool)
        if probability is not None:
            hidden, excused = invisible_share(
                self.pooled, direct, probability, visible, cost, by_row=few
            )
        shares = [*(v * (1.0 - hidden) for v in visible), hidden]
        implied = self.pooled.log_factor(shares, self.said.missed.leans)
        if cause is not None:
            implied = cause.doubted(implied, shares)
        price = IMPLIED_COST if few else IMPLIED_COST_OF_MANY
        implied = implied - np.where(excused, 0.0, price)
        cover = direct - cost - implied
        for matrix in (implied, cover):
            np.fill_diagonal(matrix, 0.0)
        known = self.said.panel.known
        implied[known == YES], implied[known == NO] = KNOWN, -KNOWN
        ancestry = self.said.missed.ancestry
        return Weights(np.ascontiguousarray(implied), np.ascontiguousarray(cover), ancestry)

    def log_factor(self, probability: FloatArray | None) -> FloatArray:
        """Log Bayes factor of every pair, all doubts applied, shape (p, p).

        A single direction counts against a label's having any ancestor, and so against each of them
        where no ancestor of the label is likely: beside a likely one, a second costs nothing more.
        It says nothing about labels that no client has beside it: a hidden ancestor need not show.
        """
        evidence, _ = self._direct(probability)
        if probability is not None:
            alone = (probability.max(axis=0) < 0.5) & (self.pooled.n_clients > 0)
            evidence = evidence + np.minimum(self.said.missed.ancestry, 0.0) * alone
        np.fill_diagonal(evidence, 0.0)
        return evidence


def sample_posterior(model: OrderModel, rng: np.random.Generator) -> Posterior:
    """Probability of every ordered pair; the doubts follow the probabilities."""
    return sample_orders(model.weights(None), rng, doubts=model.weights)
