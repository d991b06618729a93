"""What would further data settle? Futures are drawn, and the rule of a verdict applied to each.

The data so far give every ordered pair a probability P and pooled evidence E. In a future, one of
the orders that the data allow is true, and what a further client says about some pairs is drawn
from what clients say about such pairs. That changes the log Bayes factor of each of these by δ, and
the three relations of a pair get the probabilities

    P'(a → d) ∝ P(a → d) e^δ(a, d) ,    P'(d → a) ∝ P(d → a) e^δ(d, a) ,    P'(neither) ∝ rest ,

and `verdict.decide` judges P' and E + δ. A pair about which the future says nothing keeps its
verdict; if it is open, only pairs that are decided by then can imply its answer. The chance of a
pair is the share of the futures in which it is decided: 0 for all of them without further data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from jigsaw_crl.assembly.dissent import LEAST_CHANCE
from jigsaw_crl.assembly.posterior.model import cover_shares
from jigsaw_crl.assembly.verdict import OPEN, YES, decide, implied
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.evidence.pooled import Pooled

if TYPE_CHECKING:
    from jigsaw_crl.assembly.order import GlobalOrder

Pairs = tuple[IntArray, IntArray]

# Orders that are drawn from the posterior, with one future each: the standard error of a chance is
# at most 0.0625.
N_ORDERS = 64


@dataclass(frozen=True, eq=False)
class Outlook:
    """What is known now, in the form in which further evidence is added to it."""

    order: GlobalOrder
    seed: int

    @cached_property
    def orders(self) -> BoolArray:
        """Orders that the data allow, shape (N_ORDERS, p, p)."""
        return np.array(self.order.sample(N_ORDERS, seed=self.seed))

    @cached_property
    def open(self) -> BoolArray:
        """The pairs that are open now, shape (p, p)."""
        return np.asarray(self.order.verdicts == OPEN)

    def asked(self, labels: IntArray) -> Pairs:
        """The pairs of these labels that are open in either direction, each once."""
        grid = np.ix_(labels, labels)
        i, j = np.nonzero(np.triu(self.open[grid] | self.open.T[grid]))
        return labels[i], labels[j]

    def chance(self, pairs: Pairs, tells: FloatArray, made_hard: BoolArray) -> FloatArray:
        """Share of the futures in which each open pair is settled, shape (p, p); never 1.

        A further client says about each pair what the clients so far say about such pairs.
        Different futures are drawn with the same random numbers, so that they can be compared.

        Parameters
        ----------
        pairs : (array of int, array of int), shape (n,) each
            Pairs of labels, each in one direction.
        tells : array, shape (n_orders, n)
            Probability that the client can tell, given the order.
        made_hard : array of bool, shape (p,)
            Labels whose interventions are hard at the client and were not before: it says something
            about their ancestors, as clients so far do about those of other labels.
        """
        settled = np.zeros(self.open.shape)
        for number, truth in enumerate(self.orders):
            rng = np.random.default_rng([self.order.options.seed, self.seed, number])
            told = rng.random(len(pairs[0])) < tells[number]
            a, d = (x[told] for x in pairs)
            both = np.append(a, d), np.append(d, a)
            relation = truth[both] + 2 * truth.T[both]
            settled += self.settled(both, self.words.drawn(relation, made_hard[both[1]], rng))
        return np.where(self.open, settled / (len(self.orders) + 1.0), 0.0)

    def settled(self, pairs: Pairs, said: Pooled) -> BoolArray:
        """The pairs that are decided once this is said too, shape (p, p)."""
        order, now = self.order, self.order.said.pooled.at(pairs)
        shares, leans = cover_shares(order.said.n_scales), order.said.missed.leans[pairs]
        before, after = (x.log_factor(shares, leans) for x in (now, now + said))
        change = np.zeros(self.open.shape)
        change[pairs] = after - before
        concerned = (change != 0) | (change != 0).T
        P = np.clip(order.probabilities, LEAST_CHANCE, 1.0 - LEAST_CHANCE)
        yes = np.log(P) + change
        neither = np.log(np.clip(1.0 - P - P.T, LEAST_CHANCE, 1.0))
        # A probability and evidence that leave every other pair the verdict it has.
        kept = np.where(self.open, 0.5, order.verdicts)
        sure = np.where(self.open, 0.0, np.where(kept == YES, np.inf, -np.inf))
        verdicts = decide(
            np.where(concerned, expit(yes - np.logaddexp(neither, yes.T)), kept),
            np.where(concerned, order.table.evidence + change, sure),
            known=order.panel.known,
        ).verdicts
        return np.asarray((verdicts != OPEN) | ((implied(verdicts) != OPEN) & ~self._implied))

    @cached_property
    def _implied(self) -> BoolArray:
        """The pairs whose answer follows from today's verdicts."""
        return np.asarray(implied(self.order.verdicts) != OPEN)

    @cached_property
    def words(self) -> Words:
        """What the clients say, as draws of what a further one would say."""
        return Words.of(self.order)


def stated(yes: BoolArray, n_scales: int) -> Pooled:
    """Exact statements about pairs: evidence that outweighs everything."""
    said = np.broadcast_to(np.where(yes, 1e3, -1e3), (n_scales + 1, len(yes)))
    none = np.zeros((3, len(yes)), dtype=np.int32)
    return Pooled(said, said, np.zeros(len(yes)), *none)


@dataclass(frozen=True, eq=False)
class Words:
    """What the clients say about ordered pairs, as draws of what a further client would say.

    So weak interventions, small effects, missed directions and readings that cannot be told apart
    count as often as they do in this study. Where nobody says anything, and from exact moments, a
    word is a true statement.
    """

    # Cumulative weights as words on unrelated labels, on ancestors, and on descendants; and of
    # those alone that say something, shape (2, 3, n + 1); at most LEAST_CHANCE if none does.
    total: FloatArray
    # Arrays of n words.
    said: Pooled

    @classmethod
    def of(cls, order: GlobalOrder) -> Words:
        """The words of all clients, as far as each is trusted.

        A word counts for nothing where the client cannot tell because the labels share a district.
        """
        said, P = order.said, order.probabilities
        # "Yes" on ancestors, "no" on others: they count only if nothing else does.
        truths = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]) * LEAST_CHANCE**2
        values = stated(np.array([True, False]), said.n_scales)
        parts: list[tuple[np.ndarray, ...]] = [(np.stack([truths, truths]), *vars(values).values())]
        for k, claims in enumerate(said.claims if order.mode == "evidence" else ()):
            i, j = np.nonzero(~np.eye(len(claims.members), dtype=bool))
            a, d = claims.members[i], claims.members[j]
            tells = ~said.panel.rows[k].together
            if claims.bayes is not None:
                # Hidden causes leave nothing open where both interventions are hard.
                tells = tells | (claims.bayes.settled & claims.bayes.settled.T)
            # The fourth power, so that mostly words count whose relation is clear: on seeds 1000 to
            # 1003 of `benchmarks/design_chances.py` the Brier score is 0.178, and 0.195 without it.
            relations = np.stack([np.maximum(1.0 - P[a, d] - P[d, a], 0.0), P[a, d], P[d, a]])
            weight = said.use.weights[k] * tells[i, j] * relations**4
            own = vars(claims.evidence.at((i, j))).values()
            parts.append((np.stack([weight, weight * claims.says[i, j]]), *own))
        weights, *found = (np.concatenate(x, axis=-1) for x in zip(*parts, strict=True))
        return cls(np.cumsum(np.insert(weights, 0, 0.0, axis=-1), axis=-1), Pooled(*found))

    def drawn(self, relation: IntArray, speaks: BoolArray, rng: np.random.Generator) -> Pooled:
        """A word on each pair.

        `relation` is 0 for unrelated labels, 1 for an ancestor, and 2 for a descendant; `speaks`
        where a word is drawn from those that say something.
        """
        at, entry = rng.random(len(relation)), np.zeros(len(relation), dtype=np.intp)
        for kind, number in np.ndindex(2, 3):
            total = self.total[kind, number]
            own = (relation == number) & (speaks == bool(kind))
            entry[own] = np.searchsorted(total, at[own] * total[-1], side="right") - 1
        return self.said.at(np.minimum(entry, self.total.shape[-1] - 2))
