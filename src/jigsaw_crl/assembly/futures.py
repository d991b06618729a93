"""What would further data settle? Futures are drawn, and the rule of a verdict applied to each.

The data so far give every ordered pair a probability P and pooled evidence E. A future is a
function: given one of the orders that the data allow, it draws further data and returns by how much
they change the log Bayes factor of every pair, δ. The three relations of a pair then get the
probabilities

    P'(a → d) ∝ P(a → d) e^δ(a, d) ,    P'(d → a) ∝ P(d → a) e^δ(d, a) ,    P'(neither) ∝ rest ,

and `decision.decide` judges P' and E + δ. A pair about which the future says nothing keeps its
verdict; if it is open, only pairs that are decided by then can imply its answer. The chance of a
pair is the share of the futures in which it is decided: 0 for all of them without further data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from jigsaw_crl.assembly.decision import decide
from jigsaw_crl.assembly.dissent import LEAST_CHANCE
from jigsaw_crl.assembly.posterior.rounds import OrderModel
from jigsaw_crl.assembly.verdict import NO, OPEN, YES
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.order import refuted, transitive_closure
from jigsaw_crl.evidence.pooled import Pooled
from jigsaw_crl.evidence.priors import MODEL_ERROR

if TYPE_CHECKING:
    from jigsaw_crl.assembly import GlobalOrder

__all__ = ["Future", "Outlook", "Words", "more_rows", "new_site", "usual_rows"]

# Number of a possible order (`Outlook.orders`), and a source of chance → change of every pair's log
# Bayes factor, shape (p, p).
Future = Callable[[int, np.random.Generator], FloatArray]

# Orders that are drawn from the posterior.
N_ORDERS = 32
# How much more often a word on the same descendant is drawn than any other; the square of it for a
# word on the very pair. Interventions and effects are weak where they were weak.
SAME = 6.0
# Further data change what is estimated from the whole study (trust, shares of scales, missed
# directions). This is the spread of the log factors from that, for pairs that the data are about.
# On seeds 1000 to 1002 of `benchmarks/design_chances.py` the Brier score is 0.172 with it and 0.176
# without.
UNSTEADY = 0.6


def usual_rows(order: GlobalOrder) -> int | None:
    """Rows per regime of a typical client (median of medians); None for exact moments."""
    known = [own_rows(order, k) for k, f in enumerate(order.fragments) if f.n_samples]
    return int(np.median(known)) if known else None


@dataclass(frozen=True, eq=False)
class Outlook:
    """What is known now, in the form in which further evidence is added to it.

    Parameters
    ----------
    order : GlobalOrder
    orders : array of bool, shape (N_ORDERS, p, p)
        Orders that the data allow.
    seed : int
    """

    order: GlobalOrder
    orders: BoolArray
    seed: int

    @classmethod
    def of(cls, order: GlobalOrder, seed: int) -> Outlook:
        return cls(order, np.array(order.sample(N_ORDERS, seed=seed)), seed)

    @cached_property
    def open(self) -> BoolArray:
        """The pairs that are open now, shape (p, p)."""
        opened = self.order.verdicts == OPEN
        return np.asarray(opened & ~np.eye(len(opened), dtype=bool))

    def chance(self, future: Future, n: int, *, implied: bool = True) -> FloatArray:
        """Share of `n` futures in which each open pair is settled, shape (p, p); never 1.

        Different futures are drawn with the same random numbers, so that they can be compared.
        `implied` says whether pairs count that others imply.
        """
        settled = np.zeros(self.open.shape)
        for number in range(n):
            rng = np.random.default_rng([self.order.seed, self.seed, number])
            settled += self._settled(future(number % len(self.orders), rng), implied)
        return np.where(self.open, settled / (n + 1.0), 0.0)

    def _settled(self, change: FloatArray, implied: bool) -> BoolArray:
        """The pairs that are decided once the log factors have changed by so much."""
        concerned = (change != 0) | (change != 0).T
        log_yes, log_none = self._relations
        yes = log_yes + change
        probability = expit(yes - np.logaddexp(log_none, yes.T))
        kept_probability, kept_evidence = self._kept
        verdicts = decide(
            np.where(concerned, probability, kept_probability),
            np.where(concerned, self.order.evidence + self._single + change, kept_evidence),
            bound=np.where(concerned, self.order.table.bounds.value, np.nan),
            smallest=self.order.smallest_effect,
            known=self.order.panel.known,
        ).verdicts
        if not implied:
            return np.asarray(verdicts != OPEN)
        return np.asarray((verdicts != OPEN) | (_follows(verdicts) & ~self._implied))

    @cached_property
    def _relations(self) -> tuple[FloatArray, FloatArray]:
        """Log probabilities of "row is an ancestor of column", and of neither direction."""
        P = np.clip(self.order.probabilities, LEAST_CHANCE, 1.0 - LEAST_CHANCE)
        return np.log(P), np.log(np.clip(1.0 - P - P.T, LEAST_CHANCE, 1.0))

    @cached_property
    def _implied(self) -> BoolArray:
        """The pairs whose answer follows from today's verdicts."""
        return _follows(self.order.verdicts)

    @cached_property
    def _single(self) -> FloatArray:
        """What a single direction says against every ancestor of a label, once a client has both.

        See `OrderModel.log_factor`.
        """
        alone = (self.order.probabilities.max(axis=0) < 0.5) & (self.pooled.n_clients == 0)
        return np.asarray(np.minimum(self.order.said.missed.ancestry, 0.0) * alone)

    @cached_property
    def _kept(self) -> tuple[FloatArray, FloatArray]:
        """A probability and evidence that leave every pair the verdict it has."""
        verdicts = self.order.verdicts
        return (
            np.where(verdicts == OPEN, 0.5, verdicts),
            np.where(verdicts == OPEN, 0.0, np.where(verdicts == YES, np.inf, -np.inf)),
        )

    # -- evidence -------------------------------------------------------------------------------

    @property
    def pooled(self) -> Pooled:
        return self.order.said.pooled

    @cached_property
    def shares(self) -> list[float]:
        """Shares of the effect scales among covers, the invisible one last."""
        return OrderModel(self.order.said).cover_shares(self.order.probabilities)

    def log_factor(self, pooled: Pooled, a: IntArray, d: IntArray) -> FloatArray:
        """Log Bayes factors of the pairs (a, d), about which this is said."""
        return pooled.log_odds(self.shares, self.order.said.missed.leans[a, d])


def _follows(verdicts: npt.NDArray[np.int8]) -> BoolArray:
    """The pairs whose answer follows from these verdicts."""
    above = transitive_closure(verdicts == YES)
    return np.asarray(above | refuted(above, verdicts == NO))


# -- futures --------------------------------------------------------------------------------------


def new_site(
    outlook: Outlook,
    a: IntArray,
    d: IntArray,
    tells: FloatArray,
    words: Words | None,
    rows: float | None = None,
) -> Future:
    """A further client says about each pair what the clients so far say about such pairs.

    Parameters
    ----------
    outlook : Outlook
    a, d : array of int, shape (n,)
        Pairs of labels, each in one direction.
    tells : array, shape (n_orders, n)
        Probability that the client can tell, given the order.
    words : Words or None
        None for exact moments: then the client says what is true.
    rows : float, optional
        Rows per regime; by default as many as the clients so far have.
    """

    def future(number: int, rng: np.random.Generator) -> FloatArray:
        heard = rng.random(len(a)) < tells[number]
        pairs = np.append(a[heard], d[heard]), np.append(d[heard], a[heard])
        truth, change = outlook.orders[number], np.zeros(outlook.open.shape)
        if words is None:
            change[pairs] = np.where(truth[pairs], 1e3, -1e3)
            return change
        now = outlook.pooled.at(pairs)
        later = now + words.drawn(*pairs, truth[pairs] + 2 * truth.T[pairs], rows, rng)
        shift = outlook.log_factor(later, *pairs) - outlook.log_factor(now, *pairs)
        noise = UNSTEADY * rng.standard_normal(len(shift))
        change[pairs] = np.where(shift != 0, shift + noise, 0.0)
        return change

    return future


def more_rows(outlook: Outlook, k: int, factor: float) -> Future:
    """Site k takes `factor` times as many rows.

    It measures the share s of a pair with an error e (`Fragment.shares`), and e² falls as one over
    the rows. Given the order, the scale τ of an effect is drawn, then the true share: from N(s, e²)
    times the prior N(0, τ²) of an ancestor, 0 otherwise. The site's log factor at scale τ,

        l_τ = −½ log(1 + τ²/e²) + ½ (s/e)² τ²/(τ² + e²) ,

    changes by the difference of this formula at (s', e²/r) and at (s, e²). A district explains an
    ancestor's share too; it loses ½ log r of the same gain, and log r where there is no ancestor.
    Two labels may truly lie in one district; once the rows show that, nothing is said about them,
    unless the intervention is hard.
    """
    said, weight = outlook.order.said, float(outlook.order.said.use.weights[k])
    claims, members = said.claims[k], said.claims[k].members
    bayes, log_open = claims.bayes, claims.log_open
    assert bayes is not None
    assert log_open is not None
    grid = members[:, None], members[None, :]
    value, error = _shares(outlook, k)
    rest = outlook.pooled.minus([(weight, members, claims.evidence)]).of(members)
    factors, district = np.nan_to_num(bayes.ancestor), np.nan_to_num(bayes.district)
    scales = outlook.pooled.of(members).ancestor + np.log(outlook.shares)[:, None, None]
    scales = np.exp(scales - np.logaddexp.reduce(scales, axis=0)).cumsum(axis=0)
    taus, most_said = np.append(bayes.scales, 0.0), -np.log(MODEL_ERROR)

    def log_factor(ancestor: FloatArray, district: FloatArray) -> FloatArray:
        new = replace(bayes, ancestor=ancestor, district=np.fmax(district, district.T))
        own = new.bounded().averaged(log_open)
        if own.n_scales != rest.n_scales:
            own = own.at_scales(rest.n_scales)
        own = Pooled.sum(rest.n_scales, len(members), [(weight, np.arange(len(members)), own)])
        return outlook.log_factor(rest + own, *grid)

    now = log_factor(bayes.ancestor, district)

    def future(number: int, rng: np.random.Generator) -> FloatArray:
        ancestor = outlook.orders[number][grid]
        shape, either = ancestor.shape, ancestor | ancestor.T
        scale = (rng.random(shape) > scales).sum(axis=0)
        tau = taus[np.minimum(scale, len(taus) - 1)]
        shrunk = tau**2 / (tau**2 + error**2)
        share = shrunk * value + np.sqrt(shrunk) * error * rng.standard_normal(shape)
        further = (factor - 1.0) * np.where(ancestor, share, 0.0)
        noise = np.sqrt(factor - 1.0) * error * rng.standard_normal(shape)
        later = (value + further + noise) / factor, error / np.sqrt(factor)
        gain = np.stack([_gain(tau, *later) - _gain(tau, value, error) for tau in bayes.scales])
        best = np.where(ancestor, gain.max(axis=0), gain.max(axis=0).T)
        loss = np.where(either, 0.5 * np.log(factor) - best, np.log(factor))
        # Districts are symmetric: one draw a pair.
        largest = factors.max(axis=0)
        apart = np.where(ancestor, largest, np.where(ancestor.T, largest.T, 0.0))
        odds = log_open + district - np.log1p(-np.exp(log_open)) - apart
        draw, seen = (np.triu(x, 1) + np.triu(x, 1).T for x in rng.random((2, *shape)))
        inside = (draw < expit(odds)) & ~bayes.settled
        # Districts, and regimes that were too weak to read, show sooner or later.
        found = inside & (seen > 1.0 / factor)
        unread = ~claims.says & (rng.random(shape) < factor**-0.5)
        new = np.where(found, 0.0, np.where(inside, factors, factors + gain))
        new = np.where(unread, np.nan, new)
        joined = np.where(found, most_said, np.where(inside, district, district - loss))
        change = np.zeros(outlook.open.shape)
        change[grid] = log_factor(new, joined) - now
        return change

    return future


def _shares(outlook: Outlook, k: int) -> tuple[FloatArray, FloatArray]:
    """Shares of a site and their errors; what is not measured counts as 0 ± 1."""
    rows = outlook.order.panel.rows[k]
    if rows.shares is None:
        return np.zeros(rows.together.shape), np.ones(rows.together.shape)
    value, error = rows.shares
    known = ~np.isnan(value)
    return np.where(known, value, 0.0), np.where(known, np.maximum(error, 1e-6), 1.0)


def _gain(tau: float, value: FloatArray, error: FloatArray) -> FloatArray:
    """Log factor of an effect of scale τ against none: see `more_rows`."""
    fit = 0.5 * (value / error) ** 2 * tau**2 / (tau**2 + error**2)
    return np.asarray(fit - 0.5 * np.log1p(tau**2 / error**2))


def own_rows(order: GlobalOrder, k: int) -> float:
    """Median rows per regime of a client; NaN for exact moments."""
    samples = order.fragments[k].n_samples
    return float(np.median(list(samples.values()))) if samples else np.nan


@dataclass(frozen=True, eq=False)
class Words:
    """What the clients say about ordered pairs, as draws of what a further client would say.

    So weak interventions, small effects, missed directions and readings that cannot be told apart
    count as often as they do in this study.

    Parameters
    ----------
    p : int
        Number of labels.
    pair : array of int, shape (n,)
        Column times p, plus row, of each word; ascending.
    rows : array, shape (n,)
        Rows per regime of the client.
    total : array, shape (3 n + 1,)
        Cumulative weights: of all words as words on unrelated labels, then as words on ancestors,
        then as words on descendants.
    said : Pooled
        Arrays of n words.
    """

    p: int
    pair: IntArray
    rows: FloatArray
    total: FloatArray
    said: Pooled

    @classmethod
    def of(cls, outlook: Outlook) -> Words:
        """The words of all clients, as far as each is trusted.

        A word counts for nothing where the client cannot tell because the labels share a district.
        """
        order, said, P = outlook.order, outlook.order.said, outlook.order.probabilities
        fields = tuple(Pooled.__dataclass_fields__)
        parts: list[tuple[np.ndarray, ...]] = []
        for k, claims in enumerate(said.claims):
            i, j = np.nonzero(~np.eye(len(claims.members), dtype=bool))
            a, d = claims.members[i], claims.members[j]
            tells = ~said.panel.rows[k].together
            if claims.bayes is not None:
                # Hidden causes leave nothing open where both interventions are hard.
                tells = tells | (claims.bayes.settled & claims.bayes.settled.T)
            # In every study some words count, if only a little.
            weight = said.use.weights[k] * tells[i, j] + LEAST_CHANCE**2
            relations = np.stack([np.maximum(1.0 - P[a, d] - P[d, a], 0.0), P[a, d], P[d, a]])
            own = (getattr(claims.evidence, name)[..., i, j] for name in fields)
            rows = np.full(len(i), own_rows(order, k))
            parts.append((d * len(order) + a, rows, weight * relations, *own))
        pair, rows, weights, *values = (
            np.concatenate(x, axis=-1) for x in zip(*parts, strict=True)
        )
        sort = np.argsort(pair, kind="stable")
        total = np.append(0.0, np.cumsum(weights[:, sort]))
        found = Pooled(*(x[..., sort] for x in values))
        return cls(len(order), pair[sort], rows[sort], total, found)

    def drawn(
        self,
        a: IntArray,
        d: IntArray,
        relation: IntArray,
        rows: float | None,
        rng: np.random.Generator,
    ) -> Pooled:
        """A word on each pair (a, d), as if from so many rows.

        `relation` is 0 for unrelated labels, 1 where a is an ancestor of d, 2 where d is one of a.
        """
        n, p = len(self.pair), self.p
        start = relation * n
        # All words, those on the same descendant, and those on the same pair.
        places = (
            np.array([0 * d, d * p, d * p + a]),
            np.array([0 * d + p * p, d * p + p, d * p + a + 1]),
        )
        low, high = (self.total[start + np.searchsorted(self.pair, x)] for x in places)
        mass = np.cumsum((high - low) * np.array([[1.0], [SAME], [SAME**2]]), axis=0)
        which = (rng.random(len(d)) * mass[-1] >= mass).sum(axis=0), np.arange(len(d))
        at = low[which] + rng.random(len(d)) * (high - low)[which]
        entry = np.clip(np.searchsorted(self.total, at, side="right") - 1 - start, 0, n - 1)
        factor = 1.0 if rows is None else np.nan_to_num(rows / self.rows[entry], nan=1.0)
        word = self.said.at(entry)
        return replace(
            word,
            ancestor=_at_rows(word.ancestor, factor),
            leaning=_at_rows(word.leaning, factor),
            lean=_at_rows(word.lean, factor),
        )


def _at_rows(x: FloatArray, factor: float | FloatArray) -> FloatArray:
    """Log factors from `factor` times as many rows.

    What speaks for a hypothesis grows with the rows. What speaks against it grows with their
    logarithm, ½ log n: the hypothesis allows effects of many sizes, and none was seen.
    """
    against = np.minimum(x - 0.5 * np.log(factor), 0.0)
    for_it = np.minimum(x * factor, -np.log(MODEL_ERROR))
    return np.where(x > 0, for_it, np.where(x < 0, against, x))
