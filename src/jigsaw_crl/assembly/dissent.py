"""Where do clients stand against the others? One comparison, each client against all the rest.

For client k let r be what all others say together under the same use, and x what k says itself.

- `differing_labels`: a label of k of which several pairs contradict r means something else there.
- `influence`: a verdict that r alone does not give rests on k; and how many clients must be left
  out before a verdict falls.
- `opposed`: a probable answer whose opposite one client clearly says.
- `contested`: a verdict against which the clients that oppose it would decide among themselves.
- `agreement`: does one truth hold at all sites, or do some have an effect that others lack?

A client that lacks a common cause of two labels may see ancestry that is not there. Such pairs are
no contradiction.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit, logsumexp

from jigsaw_crl.assembly.decision import LEAST_AGAINST, decide
from jigsaw_crl.assembly.evidence import SPEAKS, Claims, Evidence
from jigsaw_crl.assembly.posterior.weights import lacks_common_cause
from jigsaw_crl.assembly.verdict import NO, OPEN, SURE, YES
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.evidence.pooled import Pooled
from jigsaw_crl.evidence.priors import PAIR_COST

__all__ = [
    "NOBODY",
    "Disagreement",
    "agreement",
    "contested",
    "differing_labels",
    "influence",
    "opposed",
    "pairs_apart",
    "sites_differ",
]

# -- labels ---------------------------------------------------------------------------------------

# Log Bayes factors from which a client, or the others together, count as sure: 20 to 1 for an
# ancestor, and what a "no" needs (an effect may be invisible, so that evidence against ends there).
FIRM_YES, FIRM_NO = float(np.log(20.0)), LEAST_AGAINST
# A label is left out if it has so many contradictions, this share of what was compared, and
# if they add up to this log Bayes factor. In 56 sound studies of seven families of graphs and in
# three that had raised an alarm, they add up to 11 at most (43 where one site had misread a label);
# of exchanged labels that others can contradict, to 5 to 50.
LEAST, SHARE, CONTRADICTED = 3, 0.1, 12.0
# Clients with more differing labels than this share of theirs are weighed as a whole instead.
WHOLE = 1 / 3


def differing_labels(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    """Client and label of every label that means something else there than at the others.

    Sound clients contradict the rest on few pairs, and seldom on several of one label. The label
    with the strongest contradictions goes first, then they are added up again. A label on which
    several sites stand against the rest has a hidden cause, or is hard to tell: it does not count.
    """
    if len(evidence.claims) < 3:
        return ()
    found: list[tuple[str, str]] = []
    for k, claims in enumerate(evidence.claims):
        if claims.bayes is None:
            continue
        rest = evidence.without(evidence.use.with_copies(k)).log_odds()
        rest = rest - np.logaddexp(0.0, rest.T)
        grid = np.ix_(claims.members, claims.members)
        joined = lacks_common_cause(rest > FIRM_YES, claims.members)
        off = _most_contradicted(claims.opinion, rest[grid], joined)
        if len(off) <= WHOLE * len(claims.members):
            found += [(claims.client, evidence.labels[claims.members[i]]) for i in off]
    sites = Counter(label for _, label in found)
    return tuple((client, label) for client, label in found if sites[label] == 1)


def _most_contradicted(said: FloatArray, rest: FloatArray, joined: BoolArray) -> list[int]:
    """Labels whose pairs contradict the rest, one after the other."""
    own, theirs = (
        (x > FIRM_YES).astype(np.int8) - (x < -FIRM_NO).astype(np.int8) for x in (said, rest)
    )
    sure = (own * theirs != 0) & ~joined
    against = sure & (own != theirs)
    strength = np.where(against, np.minimum(np.abs(said), np.abs(rest)), 0.0)
    out: list[int] = []
    while True:
        strong, wrong, compared = (x.sum(axis=0) + x.sum(axis=1) for x in (strength, against, sure))
        worst = int(np.argmax(strong))
        enough = max(LEAST, SHARE * compared[worst])
        if strong[worst] < CONTRADICTED or wrong[worst] < enough:
            return out
        out.append(worst)
        for table in (strength, against, sure):
            table[worst], table[:, worst] = 0, 0


# -- verdicts -------------------------------------------------------------------------------------

# No single client: several, or nobody in particular.
NOBODY = -1
# Frequencies of sampled orders are not known better than this.
LEAST_CHANCE = 1e-3
# Log Bayes factor from which what one client says is clear. Of 1,302 right "yes" and 5,142 right
# "no" outside chains, one was opposed so clearly.
CLEAR = 4.0
# Largest group of clients that is left out together.
MOST_GROUP = 10


def influence(
    evidence: Evidence,
    probability: FloatArray,
    log_factor: FloatArray,
    verdicts: npt.NDArray[np.int8],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """What decided pairs rest on: the number of a client, and how many clients, shape (p, p) each.

    Without client k (and its copies) the log Bayes factor of a pair changes by δ, and the log-odds
    of the pair by as much: those of its probability, or where that is too near to certainty to be
    known, those of its evidence. A pair that no other client saw has no evidence left: it stands
    only if decided pairs imply it. The rule of a verdict is then applied again. Of several clients
    that a pair would fall without, the one that it needs most is named; `NOBODY` if there is none.

    Parameters
    ----------
    evidence : Evidence
        In the state in which it gave the probabilities.
    probability, log_factor : array, shape (p, p)
    verdicts : array of int8, shape (p, p)
    """
    out = np.full(verdicts.shape, NOBODY, dtype=np.int32)
    most = np.full(verdicts.shape, -np.inf)
    falls = _Falls(evidence, probability, log_factor, verdicts)
    for k in np.flatnonzero(evidence.use.weights > 0).tolist():
        gone, change = falls.without(evidence.without(evidence.use.with_copies(k)))
        take = gone & (np.abs(change) > most)
        out[take], most[take] = k, np.abs(change)[take]
    return out, _witnesses(evidence, falls)


class _Falls:
    """Which verdicts fall when part of the evidence is left out; see `influence`."""

    def __init__(
        self,
        evidence: Evidence,
        probability: FloatArray,
        log_factor: FloatArray,
        verdicts: npt.NDArray[np.int8],
    ) -> None:
        odds = logit(np.clip(probability, LEAST_CHANCE, 1 - LEAST_CHANCE))
        by_evidence = log_factor - PAIR_COST
        odds = np.where(verdicts == YES, np.maximum(odds, by_evidence), odds)
        self.odds = np.where(verdicts == NO, np.minimum(odds, by_evidence), odds)
        self.log_factor, self.verdicts = log_factor, verdicts
        self.shares, self.leans = _shares(evidence), evidence.missed.leans
        self.known = evidence.panel.known
        self.now = evidence.pooled.log_odds(self.shares, self.leans)

    def without(self, rest: Pooled) -> tuple[BoolArray, FloatArray]:
        """The decided pairs that the rest does not decide so, and the change of log factors."""
        change = rest.log_odds(self.shares, self.leans) - self.now
        heard = rest.n_clients > 0
        chance = expit(self.odds + np.where(heard, change, 0.0))
        evidence = np.where(heard, self.log_factor + change, 0.0)
        left = decide(chance, evidence, known=self.known).verdicts
        gone = (self.verdicts != OPEN) & (left != self.verdicts)
        np.fill_diagonal(gone, False)
        return gone, change


def _witnesses(evidence: Evidence, falls: _Falls) -> npt.NDArray[np.int32]:
    """How many clients a decided pair rests on, if these are few, shape (p, p).

    It is the size of a group without which the others would not decide the pair, found by leaving
    out, of every pair, the client that says most for its verdict, then the next, and so on. At one
    effect scale log factors add up, and no smaller group changes the verdict; with several scales
    that is not proven. All pairs lose theirs together, so that a verdict that others imply stands
    only if they stand too. Groups up to a fifth of the clients (and `MOST_GROUP`) are tried; 0 if
    none of them changes the verdict, and for open pairs. Copies are one client.
    """
    verdicts, rest, parts = falls.verdicts, evidence.pooled.minus([]), _parts(evidence)
    left = [part.n_clients > 0 for _, part in parts]
    most = min(-(-len(parts) // 5), MOST_GROUP)
    out = np.zeros(verdicts.shape, dtype=np.int32)
    sign = np.where(verdicts == YES, 1.0, -1.0)
    for size in range(1, most + 1):
        now = rest.log_odds(falls.shares, falls.leans)
        loss, who = np.full(verdicts.shape, -np.inf), np.full(verdicts.shape, NOBODY)
        for k, ((members, part), counts) in enumerate(zip(parts, left, strict=True)):
            grid = np.ix_(members, members)
            others = rest.of(members).minus([(1.0, np.arange(len(members)), part)])
            lost = sign[grid] * (now[grid] - others.log_odds(falls.shares, falls.leans[grid]))
            lost = np.where(others.n_clients > 0, lost, np.inf)
            more = counts & (lost > loss[grid])
            loss[grid], who[grid] = np.where(more, lost, loss[grid]), np.where(more, k, who[grid])
        chosen = [who[np.ix_(members, members)] == k for k, (members, _) in enumerate(parts)]
        left = [counts & ~taken for counts, taken in zip(left, chosen, strict=True)]
        rest = rest.minus(
            (1.0, members, part.where(taken))
            for (members, part), taken in zip(parts, chosen, strict=True)
        )
        gone, _ = falls.without(rest)
        out[gone & (out == 0)] = size
    return out


def _parts(evidence: Evidence) -> list[tuple[IntArray, Pooled]]:
    """What every client brings, with its weight: positions of its labels, and its evidence."""
    use, found, done = evidence.use, [], set[int]()
    for k in np.flatnonzero(use.weights > 0).tolist():
        if k in done:
            continue
        group = use.with_copies(k)
        done |= set(group)
        members = np.unique(np.concatenate([evidence.claims[j].members for j in group]))
        own = (
            (float(use.weights[j]), np.searchsorted(members, c.members), c.evidence)
            for j, c in ((j, evidence.claims[j]) for j in group)
        )
        found.append((members, Pooled.sum(evidence.n_scales, len(members), own)))
    return found


def _shares(evidence: Evidence) -> list[float]:
    """Equal weights for the visible effect scales, next to none for an invisible one."""
    n = evidence.n_scales
    return [*((1.0 - LEAST_CHANCE) / n,) * n, LEAST_CHANCE]


def opposed(evidence: Evidence, probability: FloatArray) -> BoolArray:
    """Pairs on which a client that counts clearly says the opposite of what is probable, (p, p)."""
    found, likely = np.zeros(probability.shape, dtype=bool), probability > 0.5
    for claims, trusted in zip(evidence.claims, evidence.use.trusted.tolist(), strict=True):
        if trusted:
            grid = np.ix_(claims.members, claims.members)
            x = np.where(claims.says, claims.opinion, 0.0)
            hidden = lacks_common_cause(likely, claims.members)
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
        x[(verdicts[grid] != YES) & lacks_common_cause(verdicts == YES, claims.members)] = 0.0
        against[grid] += weight * np.maximum(np.where(verdicts[grid] == YES, -x, x), 0.0)
    found = (verdicts != OPEN) & (against > SURE)
    np.fill_diagonal(found, False)
    return np.asarray(found)


# -- one truth ------------------------------------------------------------------------------------

# Bayes factor from which sites are said to differ. In 100 simulated sound studies of 4 to 15
# sites, the largest of all pairs was 4.5.
DIFFER = 20.0
# Probability, before the data, that one truth holds at all sites.
ONE_TRUTH = 0.95
# Log Bayes factor above which a label counts as a cause that may be hidden from a client.
PROBABLE = -1.0
# The integral over the share of sites is exact for twice as many sites, less one.
NODES = 10


class Disagreement(NamedTuple):
    """A pair on which sites differ: those that have the effect, and those that lack it."""

    ancestor: str
    descendant: str
    having: tuple[str, ...]
    lacking: tuple[str, ...]
    bayes_factor: float


def agreement(log_factors: FloatArray) -> FloatArray:
    """Probability that one truth holds at all sites, from what `sites_differ` gives."""
    return np.asarray(expit(logit(ONE_TRUTH) - log_factors))


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
    weighing = [c for c in evidence.claims if c.bayes is not None]
    if len(weighing) < 2:
        return np.full((p, p), np.nan)
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    above = _probable(evidence)
    said = [(c.members, *_counted(c, above)) for c in weighing]
    heard, one = np.zeros((p, p), dtype=np.int64), np.zeros((scales, p, p))
    for members, x, says in said:
        one[:, members[:, None], members] += x
        heard[np.ix_(members, members)] += says
    apart = np.full((p, p), -np.inf)
    for share, weight in zip((1 + nodes) / 2, weights / 2, strict=True):
        differ = np.zeros((scales, p, p))
        for members, x, _ in said:
            both = np.logaddexp(np.log(share) + x, np.log1p(-share))
            differ[:, members[:, None], members] += both
        apart = np.logaddexp(apart, logsumexp(differ, axis=0) + np.log(weight / scales))
    together = np.logaddexp(logsumexp(one, axis=0) - np.log(scales), 0.0) - np.log(2)
    return np.asarray(np.where(heard > 1, apart - together, np.nan))


def pairs_apart(evidence: Evidence, factors: FloatArray) -> tuple[Disagreement, ...]:
    """The pairs on which sites differ, the clearest first; each pair of labels once."""
    found: dict[frozenset[int], Disagreement] = {}
    with np.errstate(invalid="ignore"):
        a, d = np.nonzero(factors > np.log(DIFFER))
    above = _probable(evidence) if len(a) else None
    for i in np.argsort(-factors[a, d], kind="stable").tolist():
        pair = int(a[i]), int(d[i])
        assert above is not None
        sides = _sides(evidence, above, *pair)
        if all(sides) and frozenset(pair) not in found:
            a_name, d_name = (evidence.labels[x] for x in pair)
            factor = float(np.exp(factors[pair]))
            found[frozenset(pair)] = Disagreement(a_name, d_name, *sides, factor)
    return tuple(found.values())


def _probable(evidence: Evidence) -> BoolArray:
    """Pairs that all clients together do not exclude clearly.

    Pairs that clients have and nobody speaks about are none: nothing makes them probable.
    """
    x, has = evidence.pooled.log_odds(), (evidence.panel.where >= 0).astype(np.int64)
    unsaid = (has.T @ has > 0) & (evidence.pooled.n_clients == 0)
    return np.asarray((x - np.logaddexp(0.0, x.T) > PROBABLE) & ~unsaid)


def _counted(c: Claims, above: BoolArray) -> tuple[FloatArray, BoolArray]:
    """What a client says at each visible scale, zero where it does not count; and where it does."""
    says = c.says & ~lacks_common_cause(above, c.members)
    return np.where(says, c.evidence.ancestor[:-1], 0.0), np.asarray(says)


def _sides(
    evidence: Evidence, above: BoolArray, a: int, d: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The sites that have an effect, and those that lack it, at the scale on which most speak."""
    said: dict[str, FloatArray] = {}
    for k, i, j in evidence.panel.seen_by(a, d):
        if evidence.claims[k].bayes is not None:
            x, says = _counted(evidence.claims[k], above)
            said |= {evidence.claims[k].client: x[:, i, j]} if says[i, j] else {}
    scale = int(np.argmax(np.sum([np.abs(x) for x in said.values()], axis=0)))
    having = tuple(name for name, x in said.items() if x[scale] > SPEAKS)
    return having, tuple(name for name, x in said.items() if x[scale] < -SPEAKS)
