"""Where do clients stand against the others? One comparison, each client against all the rest.

For client k let r be what all others say together under the same use, and x what k says itself.

- `differing_labels`: a label of k of which several pairs contradict r means something else there.
- `influence`: a verdict that r alone does not give rests on k; and how many clients must be left
  out before a verdict falls. `with_witnesses` leaves verdicts open that rest on too few.
- `opposed`: a probable answer whose opposite one client clearly says.
- `contested`: a verdict against which the clients that oppose it would decide among themselves.
- `agreement`: does one truth hold at all sites, or do some have an effect that others lack?

A client that lacks a common cause of two labels may see ancestry that is not there. Such pairs are
no contradiction.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit, logsumexp

from jigsaw_crl.assembly.decision import LEAST_AGAINST, Decided, Why, decide
from jigsaw_crl.assembly.evidence import SPEAKS, Claims, Evidence
from jigsaw_crl.assembly.posterior.weights import DISAGREEMENT, lacks_common_cause
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
    "with_witnesses",
]

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
    if len(evidence.claims) < 3:
        return ()
    found: list[tuple[str, str]] = []
    for k, claims in enumerate(evidence.claims):
        if claims.bayes is None:
            continue
        rest = evidence.without(evidence.use.with_copies(k)).log_odds()
        rest = rest - np.logaddexp(0.0, rest.T)
        grid = np.ix_(claims.members, claims.members)
        joined = lacks_common_cause(rest > SURE, claims.members)
        off = _most_contradicted(claims.opinion, rest[grid], joined)
        # Clients with more differing labels than that are weighed as a whole instead.
        if len(off) <= DISAGREEMENT * len(claims.members):
            found += [(claims.client, evidence.labels[claims.members[i]]) for i in off]
    sites = Counter(label for _, label in found)
    return tuple((client, label) for client, label in found if sites[label] == 1)


def _most_contradicted(said: FloatArray, rest: FloatArray, joined: BoolArray) -> list[int]:
    """Labels whose pairs contradict the rest, one after the other."""
    own, theirs = (
        (x > SURE).astype(np.int8) - (x < -LEAST_AGAINST).astype(np.int8) for x in (said, rest)
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
# Numbers that are kept at once while the largest terms are looked for.
MOST_ENTRIES = 20_000_000


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
        return self.by(change, rest.n_clients > 0), change

    def by(self, change: FloatArray, heard: BoolArray) -> BoolArray:
        """The decided pairs that fall if log factors change so; unheard pairs have none left."""
        chance = expit(self.odds + np.where(heard, change, 0.0))
        evidence = np.where(heard, self.log_factor + change, 0.0)
        # What is open implies nothing.
        is_open = self.verdicts == OPEN
        chance[is_open], evidence[is_open] = 0.5, 0.0
        left = decide(chance, evidence, known=self.known).verdicts
        gone = np.asarray(~is_open & (left != self.verdicts))
        np.fill_diagonal(gone, False)
        return gone


def _witnesses(evidence: Evidence, falls: _Falls) -> npt.NDArray[np.int32]:
    """How many clients a decided pair rests on, if these are few, shape (p, p).

    The smallest number of clients without which the others may not decide the pair; no smaller
    group changes the verdict (`_worst`). Groups up to a fifth of the clients (and `MOST_GROUP`) are
    tried; 0 if none of them changes the verdict, and for open pairs. Copies are one client.
    """
    parts = _parts(evidence)
    changes, speak = _worst(evidence, falls, parts, min(-(-len(parts) // 5), MOST_GROUP))
    out = np.zeros(falls.verdicts.shape, dtype=np.int32)
    for size, change in enumerate(changes):
        out[falls.by(change, speak > size) & (out == 0)] = size
    return out


def with_witnesses(
    evidence: Evidence,
    probability: FloatArray,
    log_factor: FloatArray,
    decided: Decided,
    asked: int | Literal["fifth"],
) -> Decided:
    """The verdicts that rest on as many clients as are asked for; the others are open.

    Parameters
    ----------
    evidence, probability, log_factor
        As for `influence`.
    decided : Decided
    asked : int or "fifth"
        A number, or more than a fifth of the clients that speak about the pair, at least two.
    """
    falls, parts = _Falls(evidence, probability, log_factor, decided.verdicts), _parts(evidence)
    most = min(max(len(parts) // 5, 1), MOST_GROUP) if asked == "fifth" else asked - 1
    changes, speak = _worst(evidence, falls, parts, most)
    size = np.clip(speak // 5, 1, most) if asked == "fifth" else np.full(speak.shape, most)
    change = np.take_along_axis(changes, size[None], axis=0)[0]
    few = falls.by(change, speak > size)
    return Decided(
        np.where(few, np.int8(OPEN), decided.verdicts),
        np.where(few, np.int8(Why.FEW), decided.why),
    )


def _worst(
    evidence: Evidence, falls: _Falls, parts: list[tuple[IntArray, Pooled]], most: int
) -> tuple[FloatArray, IntArray]:
    """How far any group of 0 to `most` clients can move decided pairs; how many clients speak.

    Shapes (most + 1, p, p) and (p, p). The log factor of a pair grows with the sums over clients in
    `Pooled.ancestor` and `leaning`, and falls with that in `lean`. From each sum at each scale its
    largest terms for the verdict are taken away, as many as the group has members: what a group
    takes away is no more, because at every scale it is a sum of as many terms.
    """
    p, pooled = len(falls.verdicts), evidence.pooled
    changes, speak = np.zeros((most + 1, p, p)), np.zeros((p, p), dtype=np.int64)
    for members, part in parts:
        speak[np.ix_(members, members)] += part.n_clients > 0
    n = len(pooled.ancestor)
    for rows in np.array_split(np.arange(p), -(-most * (2 * n + 1) * p * p // MOST_ENTRIES) or 1):
        sign = np.where(falls.verdicts[rows] == YES, 1.0, -1.0)
        largest = np.zeros((most, 2 * n + 1, len(rows), p))
        for members, part in parts:
            own = np.flatnonzero((members >= rows[0]) & (members <= rows[-1]))
            a, d = np.ix_(members[own] - rows[0], members)
            terms = np.concatenate([part.ancestor, part.leaning, -part.lean[None]])[:, own]
            terms *= sign[a, d]
            for held in largest:
                before = held[:, a, d]
                held[:, a, d] = np.maximum(before, terms)
                terms = np.minimum(before, terms)
        here = pooled.at((rows, slice(None)))
        for size, gone in enumerate(np.cumsum(largest, axis=0) * sign, start=1):
            rest = replace(
                here,
                ancestor=here.ancestor - gone[:n],
                leaning=here.leaning - gone[n:-1],
                lean=here.lean + gone[-1],
            )
            changes[size, rows] = rest.log_odds(falls.shares, falls.leans[rows]) - falls.now[rows]
    return changes, speak


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
    """Probability that one truth holds at all sites, from what `sites_differ` gives.

    Before the data it is that of a decided pair.
    """
    return np.asarray(expit(SURE - log_factors))


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
    """The pairs on which sites differ, the clearest first; each pair of labels once.

    The Bayes factor is above 19. In 100 simulated sound studies of 4 to 15 sites, the largest of
    all pairs was 4.5.
    """
    found: dict[frozenset[int], Disagreement] = {}
    with np.errstate(invalid="ignore"):
        a, d = np.nonzero(factors > SURE)
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
