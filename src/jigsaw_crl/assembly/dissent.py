"""Where do clients stand against the others? One comparison, each client against all the rest.

For client k let r be what all others say together under the same use, and x what k says itself.

- `differing_labels`: a label of k of which several pairs contradict r means something else there.
- `Falls`: a verdict that r alone does not give rests on k; and how many clients must be left out
  before a verdict falls. `with_witnesses` leaves verdicts open that rest on too few.
- `opposed`: a probable answer whose opposite one client clearly says.
- `contested`: a verdict against which the clients that oppose it would decide among themselves.
- `sites_differ`: does one truth hold at all sites, or do some have an effect that others lack?

A client that lacks a common cause of two labels may see ancestry that is not there. Such pairs are
no contradiction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit, logsumexp

from jigsaw_crl.assembly.evidence import SPEAKS, Claims, Evidence
from jigsaw_crl.assembly.panel import DISAGREEMENT
from jigsaw_crl.assembly.posterior.model import cover_shares
from jigsaw_crl.assembly.verdict import (
    LEAST_AGAINST,
    NO,
    OPEN,
    SURE,
    YES,
    Decided,
    Why,
    decide,
    implied,
)
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.order import boolean_product, transitive_closure
from jigsaw_crl.evidence.pooled import Pooled
from jigsaw_crl.evidence.priors import PAIR_COST


def _lacks_common_cause(order: BoolArray, members: IntArray) -> BoolArray:
    """Pairs of a client's labels with a common ancestor that the client lacks, shape (p, p)."""
    lacking = np.ones(len(order), dtype=bool)
    lacking[members] = False
    above = order[np.ix_(np.flatnonzero(lacking), members)]
    return np.asarray(boolean_product(above.T, above))


# -- labels ---------------------------------------------------------------------------------------

# A label is left out if it has so many contradictions, this share of what was compared, and
# if they add up to this log Bayes factor. In 56 sound studies of seven families of graphs and in
# three that had raised an alarm, they add up to 11 at most (43 where one site had misread a label);
# of exchanged labels that others can contradict, to 5 to 50.
LEAST, SHARE, CONTRADICTED = 3, 0.1, 12.0


def differing_labels(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    """Client and label of every label that means something else there than at the others.

    Sound clients contradict the rest on few pairs, and seldom on several of one label. The label
    with the strongest contradictions goes first, then they are added up again. A label on which
    several sites stand against the rest has a hidden cause, or is hard to tell: it does not count.
    """
    found: list[tuple[str, str]] = []
    if len(evidence.claims) < 3:
        return ()
    everyone = _opinion(evidence.pooled) > SURE
    for k, claims in enumerate(evidence.claims):
        if claims.bayes is None:
            continue
        members, rest = evidence.beside(evidence.use.with_copies(k))
        opinion, above, own = _opinion(rest), everyone.copy(), np.isin(members, claims.members)
        above[np.ix_(members, members)] = opinion > SURE
        joined = _lacks_common_cause(above, claims.members)
        off = _most_contradicted(claims.opinion, opinion[np.ix_(own, own)], joined)
        # Clients with more differing labels than that are weighed as a whole instead.
        if len(off) <= DISAGREEMENT * len(claims.members):
            found += [(claims.client, evidence.labels[claims.members[i]]) for i in off]
    sites = Counter(label for _, label in found)
    return tuple((client, label) for client, label in found if sites[label] == 1)


def _opinion(pooled: Pooled) -> FloatArray:
    """Log factor of every pair against all else, of several clients together."""
    x = pooled.log_factor()
    return np.asarray(x - np.logaddexp(0.0, x.T))


def _most_contradicted(said: FloatArray, rest: FloatArray, joined: BoolArray) -> list[int]:
    """Labels whose pairs contradict the rest, one after the other."""
    own, theirs = (np.sign((x > SURE) * 1.0 - (x < -LEAST_AGAINST)) for x in (said, rest))
    sure, against = (own * theirs != 0) & ~joined, (own * theirs < 0) & ~joined
    strength = np.where(against, np.minimum(np.abs(said), np.abs(rest)), 0.0)
    out: list[int] = []
    while True:
        strong, wrong, compared = (x.sum(axis=0) + x.sum(axis=1) for x in (strength, against, sure))
        worst = int(np.argmax(strong))
        if strong[worst] < CONTRADICTED or wrong[worst] < max(LEAST, SHARE * compared[worst]):
            return out
        out.append(worst)
        for table in (strength, against, sure):
            table[worst], table[:, worst] = 0, 0


# -- verdicts -------------------------------------------------------------------------------------

# No single client: several, or nobody in particular.
NOBODY = -1
# Frequencies of sampled orders are not known better than this.
LEAST_CHANCE = 1e-3
# Numbers that are kept at once while the largest terms are looked for.
MOST_ENTRIES = 20_000_000


class Falls:
    """Which verdicts fall when part of the evidence is left out.

    Without client k the log Bayes factor of a pair changes by δ, and the log-odds of the pair by as
    much: those of its probability, or where that is too near to certainty to be known, those of its
    evidence. A pair that no other client saw has no evidence left: it stands only if decided pairs
    imply it. The same holds if no other client saw two directions of the descendant. The rule of a
    verdict is then applied again. Where witnesses are counted, a verdict is one claim with all that
    follows from it: what is left against pairs that would be decided otherwise without it counts
    against it (`_together`).

    Parameters
    ----------
    evidence : Evidence
        In the state in which it gave the probabilities.
    probability, log_factor : array, shape (p, p)
    verdicts : array of int8, shape (p, p)
    """

    def __init__(
        self,
        evidence: Evidence,
        probability: FloatArray,
        log_factor: FloatArray,
        verdicts: npt.NDArray[np.int8],
    ) -> None:
        self.odds = logit(np.clip(probability, LEAST_CHANCE, 1 - LEAST_CHANCE))
        self.evidence, self.log_factor, self.verdicts = evidence, log_factor, verdicts
        self.decided = (verdicts != OPEN) & ~np.eye(len(verdicts), dtype=bool)
        # Those of the log factors: what is left of one is then the factor of what is left.
        self.shares = cover_shares(evidence.n_scales)
        self.leans = evidence.missed.leans
        self.now = evidence.pooled.log_factor(self.shares, self.leans)
        self.speak = evidence.pooled.n_clients.astype(np.int64)
        # The verdicts from which all others follow.
        self.own = _own(self._judged(np.zeros_like(self.now), self.speak > 0))
        self.counting = np.flatnonzero(evidence.use.weights > 0).tolist()
        # Clients without which nothing follows about a label's ancestors, (n_clients, p);
        # statements need no other client.
        self.opens = evidence.opens.copy()
        for k in self.counting:
            if evidence.claims[k].bayes is None:
                self.opens[k, evidence.claims[k].members] = True
        self.n_opening = self.opens.sum(axis=0)

    def _judged(
        self, change: FloatArray, heard: BoolArray, at: Any = ..., *, jointly: bool = False
    ) -> Decided:
        """The verdicts if log factors change so; unheard pairs have none left.

        `at` are the places of some labels, if nothing outside them is to imply anything. `jointly`:
        what is left against pairs that follow from a verdict counts against it.
        """
        verdicts = self.verdicts[at]
        evidence = np.where(heard, self.log_factor[at] + change, 0.0)
        own = _together(evidence, verdicts) if jointly else evidence - PAIR_COST
        odds = self.odds[at] + np.where(heard, change, 0.0)
        odds = np.where(verdicts == YES, np.maximum(odds, own), odds)
        chance = expit(np.where(verdicts == NO, np.minimum(odds, own), odds))
        if jointly:
            evidence = np.where(own * evidence > 0, evidence, 0.0)
        # What is open implies nothing.
        is_open = verdicts == OPEN
        chance[is_open], evidence[is_open] = 0.5, 0.0
        return decide(chance, evidence, known=self.evidence.panel.known[at])

    def without(self, clients: Sequence[int]) -> tuple[BoolArray, FloatArray]:
        """The decided pairs that all others do not decide so, and the change of log factors."""
        members, rest = self.evidence.beside(clients)
        grid = np.ix_(members, members)
        change = np.zeros_like(self.now)
        change[grid] = rest.log_factor(self.shares, self.leans[grid]) - self.now[grid]
        opened = self.n_opening > self.opens[list(clients)].sum(axis=0)
        judged = self._judged(change[grid], (rest.n_clients > 0) & opened[members], grid)
        # Only pairs of these labels have other evidence; what follows from them may be elsewhere.
        own = self.own.copy()
        own[grid] = _own(judged)
        own[:, ~opened] = self.evidence.panel.known[:, ~opened]
        gone = self.decided & (implied(own) != self.verdicts)
        gone[grid] |= self.decided[grid] & (judged.why == Why.UNSURE)
        return gone, change

    def rests_on(self) -> npt.NDArray[np.int32]:
        """The number of a client without which a decided pair falls, else `NOBODY`, shape (p, p).

        Of several clients, the one that the pair needs most; a single client has no others. Pairs
        that a bound decides fall in any case.
        """
        out = np.full(self.verdicts.shape, NOBODY, dtype=np.int32)
        most = np.full(self.verdicts.shape, -np.inf)
        for k in self.counting if len(self.counting) > 1 else ():
            gone, change = self.without([k])
            take = gone & (np.abs(change) > most)
            out[take], most[take] = k, np.abs(change)[take]
        return out

    def witnesses(self, most: int | None = None) -> npt.NDArray[np.int32]:
        """How many clients a decided pair rests on, if these are few, shape (p, p).

        The smallest number of clients without which the others may not decide the pair; no smaller
        group changes the verdict (`worst`). Groups of up to `most` clients are tried, by default a
        fifth of them; 0 if none of them changes the verdict, and for open pairs.
        """
        changes = self.worst(-(-len(self.counting) // 5) if most is None else most)
        out = np.zeros(self.verdicts.shape, dtype=np.int32)
        for size, change in enumerate(changes):
            # Of other pairs nothing is left without some group of so many clients.
            heard = np.minimum(self.speak, self.n_opening) > size
            left = self._judged(change, heard, jointly=True).verdicts
            out[self.decided & (left != self.verdicts) & (out == 0)] = size
        return out

    def worst(self, most: int) -> FloatArray:
        """How far any group of 0 to `most` clients can move decided pairs, shape (most + 1, p, p).

        With the sums over clients A (`Pooled.ancestor`), L (`lean`) and B (`leaning` − `lean`), the
        log factor of a pair lies between that of A and that of B, the nearer to B the larger L is.
        It grows with A and B, and L moves it one way. From A and B at each scale the largest terms
        for the verdict are taken away, as many as the group has members, and from L the largest
        for one side or the other, whichever is worse: what a group takes away is no more, because
        it is a sum of as many terms.
        """
        p, pooled = len(self.verdicts), self.evidence.pooled
        # No pair has more clients to leave out than speak about it.
        most = min(most, int(pooled.n_clients.max(initial=0)))
        changes, n = np.zeros((most + 1, p, p)), len(pooled.ancestor)
        steps = -(-most * (2 * n + 2) * p * p // MOST_ENTRIES) or 1
        for rows in np.array_split(np.arange(p), steps):
            sign = np.where(self.verdicts[rows] == YES, 1.0, -1.0)
            largest = np.zeros((most, 2 * n + 2, len(rows), p))
            for k in self.counting:
                members, part = self.evidence.claims[k].members, self.evidence.claims[k].evidence
                own = np.flatnonzero((members >= rows[0]) & (members <= rows[-1]))
                a, d = np.ix_(members[own] - rows[0], members)
                lean, s = part.lean[None, own], sign[a, d]
                sums = s * part.ancestor[:, own], s * (part.leaning[:, own] - lean), lean, -lean
                terms = self.evidence.use.weights[k] * np.concatenate(sums)
                for held in largest:
                    before = held[:, a, d]
                    held[:, a, d] = np.maximum(before, terms)
                    terms = np.minimum(before, terms)
            here = pooled.at((rows, slice(None)))
            for size, gone in enumerate(np.cumsum(largest, axis=0), start=1):
                taken = sign * gone[:-2]
                ancestor, leaning = here.ancestor - taken[:n], here.leaning - taken[n:]
                after = [
                    replace(here, ancestor=ancestor, leaning=leaning + x, lean=here.lean + x)
                    for x in (-gone[-2], gone[-1])
                ]
                left = [sign * rest.log_factor(self.shares, self.leans[rows]) for rest in after]
                changes[size, rows] = sign * np.minimum(*left) - self.now[rows]
        return changes


def _together(log_factor: FloatArray, verdicts: npt.NDArray[np.int8]) -> FloatArray:
    """Log-odds of every decided pair with all that follows from it, by the evidence alone, (p, p).

    If a is an ancestor of d, so are the ancestors of a of the descendants of d; if it is not, no
    descendant of a is an ancestor of an ancestor of d. The strongest evidence against one such pair
    counts against the verdict. Evidence for them does not count: they may hold without it.
    """
    own, eye = log_factor - PAIR_COST, np.eye(len(verdicts), dtype=bool)
    path = (verdicts == YES) | eye
    against = np.where(verdicts == YES, np.minimum(own, 0.0), 0.0)
    against = np.array([against[above].min(axis=0) for above in path.T])
    against = np.array([against[:, below].min(axis=1) for below in path]).T
    # Pairs that the others would decide are steps of a chain too.
    path = transitive_closure(path | (own > SURE)) | eye
    counter = np.where(verdicts == YES, 0.0, np.maximum(own, 0.0))
    counter = np.array([counter[below].max(axis=0) for below in path])
    counter = np.array([counter[:, above].max(axis=1) for above in path.T]).T
    return np.asarray(own + np.where(verdicts == YES, against, counter))


def _own(decided: Decided) -> npt.NDArray[np.int8]:
    """The verdicts that follow from no others; open elsewhere, shape (p, p)."""
    base = (decided.why == Why.EVIDENCE) | (decided.why == Why.KNOWN)
    return np.where(base, decided.verdicts, np.int8(OPEN))


def with_witnesses(falls: Falls, decided: Decided, asked: int | Literal["fifth"]) -> Decided:
    """The verdicts that rest on as many clients as are asked for; the others are open.

    `asked` is a number, or more than a fifth of the clients that speak about the pair, at least
    two.
    """
    size = np.maximum(falls.speak // 5, 1) if asked == "fifth" else np.array(asked - 1)
    least = falls.witnesses(int(size.max(initial=0)))
    few = (least > 0) & (least <= size)
    return Decided(
        np.where(few, np.int8(OPEN), decided.verdicts),
        np.where(few, np.int8(Why.FEW), decided.why),
    )


# Log Bayes factor from which what one client says is clear. Of 1,302 right "yes" and 5,142 right
# "no" outside chains, one was opposed so clearly.
CLEAR = 4.0


def opposed(evidence: Evidence, probability: FloatArray) -> BoolArray:
    """Pairs on which a client that counts clearly says the opposite of what is probable, (p, p)."""
    found, likely = np.zeros(probability.shape, dtype=bool), probability > 0.5
    for claims, trusted in zip(evidence.claims, evidence.use.trusted.tolist(), strict=True):
        if trusted:
            grid = np.ix_(claims.members, claims.members)
            x = np.where(claims.says, claims.opinion, 0.0)
            hidden = _lacks_common_cause(likely, claims.members)
            found[grid] |= np.where(likely[grid], x < -CLEAR, (x > CLEAR) & ~hidden)
    return found


def contested(evidence: Evidence, verdicts: npt.NDArray[np.int8]) -> BoolArray:
    """Decided pairs against which the evidence of some clients is firm, shape (p, p).

    The weighted log Bayes factors of the clients that speak against the verdict add up to enough
    for the opposite one.
    """
    against = np.zeros(verdicts.shape)
    for claims, weight in zip(evidence.claims, evidence.use.weights.tolist(), strict=True):
        grid = np.ix_(claims.members, claims.members)
        x = np.where(claims.says, claims.log_factor, 0.0)
        x[(verdicts[grid] != YES) & _lacks_common_cause(verdicts == YES, claims.members)] = 0.0
        against[grid] += weight * np.maximum(np.where(verdicts[grid] == YES, -x, x), 0.0)
    found = (verdicts != OPEN) & (against > SURE)
    np.fill_diagonal(found, False)
    return np.asarray(found)


# -- one truth ------------------------------------------------------------------------------------

# Sites that must show an effect, and show none, before it is said that they differ.
EACH_SIDE = 3


def sites_differ(evidence: Evidence) -> FloatArray:
    """Log Bayes factors of "sites differ" against "one truth", shape (p, p).

    Let x_ks be what client k says of a pair: the log Bayes factor of an effect of scale s against
    none. The two accounts of what all sites say are

        one truth:      log ½ [1 + mean_s exp Σ_k x_ks] ,
        sites differ:   log mean_s ∫₀¹ Π_k [θ exp x_ks + 1 − θ] dθ ,

    where a share θ of the sites, which may be any, has the effect. NaN for pairs of fewer than two
    sites.
    """
    p, scales = len(evidence.labels), evidence.n_scales
    above = _probable(evidence)
    said = [(c.members, *_counted(c, above)) for c in evidence.claims if c.bayes is not None]
    heard, one = np.zeros((p, p), dtype=np.int64), np.zeros((scales, p, p))
    for members, x, says in said:
        one[:, members[:, None], members] += x
        heard[np.ix_(members, members)] += says
    most = int(heard.max(initial=0))
    if most < 2:
        return np.full((p, p), np.nan)
    # Enough that the integral, of a polynomial in θ with the degree of a pair's sites, is exact.
    nodes, weights = np.polynomial.legendre.leggauss(most // 2 + 1)
    apart = np.full((p, p), -np.inf)
    for share, weight in zip((1 + nodes) / 2, weights / 2, strict=True):
        differ = np.zeros((scales, p, p))
        for members, x, _ in said:
            both = np.logaddexp(np.log(share) + x, np.log1p(-share))
            differ[:, members[:, None], members] += both
        apart = np.logaddexp(apart, logsumexp(differ, axis=0) + np.log(weight / scales))
    together = np.logaddexp(logsumexp(one, axis=0) - np.log(scales), 0.0) - np.log(2)
    return np.asarray(np.where(heard > 1, apart - together, np.nan))


def pairs_apart(
    evidence: Evidence, factors: FloatArray
) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...], float]]:
    """The pairs on which sites differ, the clearest first; each pair of labels once.

    Ancestor, descendant, the sites that have the effect, those that lack it, and the Bayes factor.
    It is above 19, and both sides have `EACH_SIDE` sites or more: of the many sites of a sound
    study, one or two say of some pair what is not so.
    """
    found: dict[frozenset[int], tuple[str, str, tuple[str, ...], tuple[str, ...], float]] = {}
    a, d = np.nonzero(np.nan_to_num(factors) > SURE)
    above = _probable(evidence)
    for i in np.argsort(-factors[a, d], kind="stable").tolist():
        pair = int(a[i]), int(d[i])
        having, lacking = _sides(evidence, above, *pair)
        fewest = min(len(having), len(lacking))
        if fewest >= EACH_SIDE and frozenset(pair) not in found:
            names = evidence.labels[pair[0]], evidence.labels[pair[1]]
            found[frozenset(pair)] = *names, having, lacking, float(np.exp(factors[pair]))
    return list(found.values())


def _probable(evidence: Evidence) -> BoolArray:
    """Pairs that all clients together do not exclude clearly.

    Pairs that clients have and nobody speaks about are none: nothing makes them probable.
    """
    has = (evidence.panel.where >= 0).astype(np.float32)
    unsaid = (has.T @ has > 0) & (evidence.pooled.n_clients == 0)
    return np.asarray((_opinion(evidence.pooled) > -LEAST_AGAINST) & ~unsaid)


def _counted(c: Claims, above: BoolArray) -> tuple[FloatArray, BoolArray]:
    """What a client says at each visible scale, zero where it does not count; and where it does."""
    says = c.says & ~_lacks_common_cause(above, c.members)
    return np.where(says, c.evidence.ancestor[:-1], 0.0), np.asarray(says)


def _sides(
    evidence: Evidence, above: BoolArray, a: int, d: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The sites that have an effect, and those that lack it, at the scale on which most speak."""
    seen = [(evidence.claims[k], i, j) for k, i, j in evidence.panel.seen_by(a, d)]
    said = {c.client: _counted(c, above)[0][:, i, j] for c, i, j in seen if c.bayes is not None}
    scale = int(np.argmax(np.sum([np.abs(x) for x in said.values()], axis=0)))
    having = tuple(name for name, x in said.items() if x[scale] > SPEAKS)
    return having, tuple(name for name, x in said.items() if x[scale] < -SPEAKS)
