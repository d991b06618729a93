"""What would further data settle? Futures are drawn, and the rules of a verdict applied to each.

The data so far give every ordered pair a probability P and pooled evidence E. In one future an
order is drawn from the posterior, further evidence is drawn given that order and added to what the
clients say, which changes the pair's log-odds by δ, and the three relations of a pair get the
probabilities

    P'(a → d) ∝ P(a → d) e^δ(a, d) ,    P'(d → a) ∝ P(d → a) e^δ(d, a) ,    P'(neither) ∝ rest .

Then the rules of `decision.decide` apply: 0.95 and 0.05, evidence of its own, and what decided
pairs imply. The chance of a pair is the share of the futures in which it is decided.

A further client is drawn from the clients that are there (`Donors`): what one of them says about a
pair with the same relation. So weak interventions, small effects, missed directions and readings
that cannot be told apart count as often as they do in this study.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from jigsaw_crl.assembly.panel import Panel
from jigsaw_crl.assembly.posterior.rounds import OrderModel
from jigsaw_crl.assembly.verdict import CERTAIN_NO, CERTAIN_YES, LEAST_AGAINST, SILENT
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.order import refuted, transitive_closure
from jigsaw_crl.evidence.pooled import Pooled
from jigsaw_crl.evidence.priors import MODEL_ERROR

if TYPE_CHECKING:
    from jigsaw_crl.assembly import GlobalOrder

__all__ = ["Donors", "Outlook", "usual_rows"]

# Probabilities count as known to this: they are frequencies in some thousand orders.
LEAST = 1e-3
# Any further data change what is estimated from the whole study (trust, shares of scales, missed
# directions) and what other pairs imply. This is the spread of the log-odds from that, for pairs
# that the further data are about and for others.
UNSTEADY, STEADIER = 0.6, 0.25
# Entries (a client's word on an ordered pair) that futures are drawn from, at most.
MOST_DONORS = 3000
# How much more often than any other an entry is drawn that has the ancestor or the descendant of
# the pair, and one of the very pair: interventions and effects are weak where they were weak.
SAME_LABEL, SAME_PAIR = 4.0, 40.0
# No client's log factor on a pair exceeds this.
MOST_SAID = -float(np.log(MODEL_ERROR))


def usual_rows(order: GlobalOrder) -> int | None:
    """Rows per regime of a typical client (median of medians); None for exact moments."""
    known = [list(f.n_samples.values()) for f in order.fragments if f.n_samples]
    return int(np.median([np.median(n) for n in known])) if known else None


@dataclass(frozen=True, eq=False)
class Outlook:
    """What is known now, in the form in which further evidence is added to it.

    Parameters
    ----------
    model : OrderModel
        The clients' evidence, pooled, all doubts applied.
    evidence, probability : array, shape (p, p)
        Of every ordered pair, now.
    """

    model: OrderModel
    evidence: FloatArray
    probability: FloatArray

    @classmethod
    def of(cls, order: GlobalOrder) -> Outlook:
        weights = np.array([order.client_weights[f.client] for f in order.fragments])
        model = OrderModel.of(order.panel, weights, order.rate)
        return cls(model, order.evidence, order.probabilities)

    @cached_property
    def shares(self) -> list[float]:
        """Shares of the effect scales among covers, the invisible one last."""
        return self.model.cover_shares(self.probability)

    @cached_property
    def _log_odds(self) -> FloatArray:
        return self.model.pooled.log_odds(self.shares, self.model.panel.missed.leans)

    @cached_property
    def _relations(self) -> tuple[FloatArray, FloatArray]:
        """Log probabilities of "row is an ancestor of column", and of neither direction."""
        P = np.clip(self.probability, LEAST, 1.0 - LEAST)
        return np.log(P), np.log(np.clip(1.0 - P - P.T, LEAST, 1.0))

    @cached_property
    def _single(self) -> FloatArray:
        """What a single direction says against every ancestor of a label, once a client sees it."""
        alone = self.probability.max(axis=0) < 0.5
        return np.asarray(np.minimum(self.model.panel.missed.ancestry, 0.0) * alone)

    def settled(
        self, pooled: Pooled, rng: np.random.Generator, *, implied: bool = True
    ) -> BoolArray:
        """The pairs that would be decided if the clients said this, shape (p, p).

        Parameters
        ----------
        pooled : Pooled
            All evidence, that of today included.
        rng : numpy.random.Generator
            Draws what the rest of the study changes: see `UNSTEADY`.
        implied : bool
            Count pairs that decided pairs imply.
        """
        delta = pooled.log_odds(self.shares, self.model.panel.missed.leans) - self._log_odds
        more = (pooled.ancestor != self.model.pooled.ancestor).any(axis=0)
        delta = delta + np.where(more, UNSTEADY, STEADIER) * rng.standard_normal(delta.shape)
        first = (pooled.n_clients > 0) & (self.model.pooled.n_clients == 0)
        evidence = self.evidence + delta + self._single * first
        log_yes, log_none = self._relations
        yes, no = log_yes + delta, np.logaddexp(log_none, (log_yes + delta).T)
        probability = np.exp(yes - np.logaddexp(yes, no))
        high = (probability > CERTAIN_YES) & (np.abs(evidence) >= SILENT)
        low = (probability < CERTAIN_NO) & (evidence < -LEAST_AGAINST)
        np.fill_diagonal(high, False)
        if not implied:
            return np.asarray(high | low)
        above = transitive_closure(high)
        return np.asarray(above | refuted(above, low & ~above))


@dataclass(frozen=True, eq=False)
class Donors:
    """What the clients say about ordered pairs, as draws of what a further client would say.

    Parameters
    ----------
    row, column, reverse : array of int, shape (n,)
        The pair of each entry, and the entry of the opposite pair at the same client.
    apart : array of bool, shape (n,)
        The client has the two labels in different districts, or both interventions are hard.
    ancestor, leaning : array, shape (n_scales + 1, n)
    lean : array, shape (n,)
    counts : array of int, shape (3, n)
        As in `Pooled`: in_doubt, single, n_clients.
    """

    row: IntArray
    column: IntArray
    reverse: IntArray
    apart: BoolArray
    ancestor: FloatArray
    leaning: FloatArray
    lean: FloatArray
    counts: IntArray

    @classmethod
    def of(cls, panel: Panel, rows: int | None, rng: np.random.Generator) -> Donors | None:
        """The entries of all clients that weigh pairs; None if there is none.

        Parameters
        ----------
        panel : Panel
        rows : int or None
            Rows per regime of the further client: see `_at_rows`. None leaves all as it is.
        rng : numpy.random.Generator
            Draws entries where there are too many.
        """
        parts: list[tuple[np.ndarray, ...]] = []
        start = 0
        for claims, fragment in zip(panel.claims, panel.fragments, strict=True):
            e = claims.evidence
            if e is None or len(claims.members) < 2:
                continue
            i, j = np.nonzero(~np.eye(len(claims.members), dtype=bool))
            number = np.zeros((len(claims.members),) * 2, dtype=np.int64)
            number[i, j] = np.arange(start, start + len(i))
            start += len(i)
            factor = 1.0
            if rows is not None and fragment.n_samples:
                factor = rows / float(np.median(list(fragment.n_samples.values())))
            said = (_at_rows(x[..., i, j], factor) for x in (e.ancestor, e.leaning, e.lean))
            pair = (claims.members[i], claims.members[j], number[j, i])
            counts = np.stack([e.in_doubt[i, j], e.single[i, j], e.n_clients[i, j]])
            apart = ~claims.together
            if claims.bayes is not None:
                # Hidden causes leave nothing open where both interventions are hard.
                apart = apart | (claims.bayes.settled & claims.bayes.settled.T)
            parts.append((*pair, apart[i, j], *said, counts))
        if not parts:
            return None
        return cls(*(np.concatenate(x, axis=-1) for x in zip(*parts, strict=True)))._few(rng)

    def _few(self, rng: np.random.Generator) -> Donors:
        """At most `MOST_DONORS` entries, each with its opposite."""
        if len(self.row) <= MOST_DONORS:
            return self
        first = np.flatnonzero(self.row < self.column)
        first = rng.choice(first, MOST_DONORS // 2, replace=False)
        kept = np.concatenate([first, self.reverse[first]])
        half = len(first)
        reverse = np.concatenate([np.arange(half, 2 * half), np.arange(half)])
        return Donors(
            self.row[kept],
            self.column[kept],
            reverse,
            self.apart[kept],
            self.ancestor[:, kept],
            self.leaning[:, kept],
            self.lean[kept],
            self.counts[:, kept],
        )

    def drawn(
        self, a: int, d: int, relation: IntArray, P: FloatArray, rng: np.random.Generator
    ) -> IntArray:
        """An entry for each of several futures of the pair (a, d).

        Parameters
        ----------
        a, d : int
        relation : array of int
            Per future: 0 neither, 1 a is an ancestor of d, 2 d is one of a.
        P : array, shape (p, p)
            Probabilities today, which say how far an entry has the relation itself.
        rng : numpy.random.Generator
        """
        same_a, same_d = self.row == a, self.column == d
        weight = 1.0 + SAME_LABEL * (same_a.astype(float) + same_d) + SAME_PAIR * (same_a & same_d)
        weight = weight * self.apart
        yes, opposite = P[self.row, self.column], P[self.column, self.row]
        of_relation = (np.maximum(1.0 - yes - opposite, 0.0), yes, opposite)
        out = np.zeros(len(relation), dtype=np.int64)
        for kind, share in enumerate(of_relation):
            which = np.flatnonzero(relation == kind)
            total = np.cumsum(weight * share)
            if not total[-1] > 0:
                total = np.cumsum(np.ones(len(weight)))
            out[which] = np.searchsorted(total, rng.random(len(which)) * total[-1], side="right")
        return np.minimum(out, len(self.row) - 1)

    def added(self, to: Pooled, a: IntArray, d: IntArray, entry: IntArray, weight: float) -> Pooled:
        """The evidence with what the entries say about pairs (a, d), in both directions."""
        new = to + Pooled.zero(to.n_scales, len(to.lean))
        for i, j, e in ((a, d, entry), (d, a, self.reverse[entry])):
            for name in ("ancestor", "leaning", "lean"):
                getattr(new, name)[..., i, j] += weight * getattr(self, name)[..., e]
            for name, count in zip(("in_doubt", "single", "n_clients"), self.counts, strict=True):
                getattr(new, name)[i, j] += count[e]
        return new


def _at_rows(x: FloatArray, factor: float) -> FloatArray:
    """Log factors from `factor` times as many rows.

    What speaks for a hypothesis grows with the rows. What speaks against it grows with their
    logarithm, ½ log n: the hypothesis allows effects of many sizes, and none was seen.
    """
    if factor == 1.0:
        return x
    against = np.minimum(x - 0.5 * np.log(factor), 0.0)
    return np.asarray(
        np.where(x > 0, np.minimum(x * factor, MOST_SAID), np.where(x < 0, against, x))
    )
