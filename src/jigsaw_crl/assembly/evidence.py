"""What the clients of a panel say under a use: one client's evidence on each pair, and the sum.

Some unknowns are the same at all clients, so a client's evidence depends on the others a little:
how often is a second direction missed, and which labels may have ancestors all the same? That is
estimated once per label, not per client or pair (`Missed`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import betaln

from jigsaw_crl.assembly.panel import Panel, Rows, Use
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.evidence.pooled import Pooled
from jigsaw_crl.fragment.fragment import CANNOT_SAY, NO, YES

# A client "says" yes or no when what it brings passes three to one.
SPEAKS = float(np.log(3.0))
# A label that moved two directions somewhere and has no labelled ancestor: one in five (an
# unlabelled cause, or a spouse).
TWO_DIRECTIONS = float(np.log(5.0))
# What is tried for the share of misses, how alike labels are in it, and the share of labels that
# have ancestors: few values, because a study has few labels to tell them apart.
MEANS = (0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65)
SIZES, WITH_ANCESTORS = (1.0, 2.0, 4.0, 8.0), (0.3, 0.5, 0.7, 0.85, 0.95)
# A line leans with at most this probability: beyond it, the clients that saw one say nothing. In 52
# studies, 6 of 2,821 "yes" were wrong if each client averaged over every lean itself, and 0 so.
MOST_LEAN, LEAST_LEAN = 0.5, 0.01
# A label that moved a single direction at every client is a root, or its interventions changed
# noise alone: even odds that a hidden cause which joins it to others did not show. As rare as
# elsewhere, 5 of 710 "yes" were wrong in two stars with 1,000 rows, with E1 .953; so, 0 of 697, and
# .966.
ALIKE = 0.5


@dataclass(frozen=True, eq=False)
class Missed:
    """What the number of directions says about a label's having ancestors.

    Parameters
    ----------
    ancestry : array, shape (p,)
        Log factor of "has an ancestor".
    chance : array, shape (p,)
        Probability that a label has ancestors although a client saw one direction only; 0 where no
        client did.
    """

    ancestry: FloatArray
    chance: FloatArray

    @property
    def certain(self) -> BoolArray:
        """Labels of which some clients saw one direction and others two, shape (p,)."""
        return np.asarray(self.chance == 1.0)

    @property
    def leans(self) -> FloatArray:
        """Probability that a line of the pair leans at all clients, shape (p, p).

        Where some clients saw two directions, those that saw one average over a lean themselves.
        """
        unsure = (self.chance > 0) & ~self.certain
        one = np.where(unsure, np.clip(self.chance, LEAST_LEAN, MOST_LEAN), 0.0)
        both = 1.0 - (1.0 - one[:, None]) * (1.0 - one)
        return np.asarray(np.clip(both, LEAST_LEAN, MOST_LEAN))


@dataclass(frozen=True, eq=False)
class Claims:
    """What one client says under a use.

    Parameters
    ----------
    client : str
    members : array of int, shape (p,)
    certain : array of int8, shape (p, p), or None
        Its statements, if it states.
    bayes : BayesFactors or None
        Its factors, if it weighs, with districts from all its pairs together.
    log_open : array, shape (p, p), or None
        Log probability that each pair lies in one district there, if it weighs.
    evidence : Pooled
        What it brings to the pool, districts averaged over; zero where it does not say.
    says : array of bool, shape (p, p)
        Pairs about which it says something.
    """

    client: str
    members: IntArray
    certain: npt.NDArray[np.int8] | None
    bayes: BayesFactors | None
    log_open: FloatArray | None
    evidence: Pooled
    says: BoolArray

    @cached_property
    def log_factor(self) -> FloatArray:
        """Log Bayes factor of every pair against "unrelated"."""
        return self.evidence.log_factor()

    @cached_property
    def opinion(self) -> FloatArray:
        """Log factor of every pair against all else: only one direction can hold.

        Statements say no to the other direction themselves.
        """
        x = np.where(self.says, self.log_factor, 0.0)
        return x if self.bayes is None else np.asarray(x - np.logaddexp(0.0, x.T))

    @cached_property
    def stance(self) -> npt.NDArray[np.int8]:
        """1 where the client says yes, -1 where it says no, 0 where it does not say."""
        if self.certain is not None:
            out = np.where(self.certain == YES, 1, np.where(self.certain == NO, -1, 0))
        else:
            x = np.where(self.says, self.log_factor, 0.0)
            out = np.where(x > SPEAKS, 1, np.where(x < -SPEAKS, -1, 0))
        np.fill_diagonal(out, 0)
        return out.astype(np.int8)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The clients' claims under a use, and what they say together.

    Parameters
    ----------
    panel : Panel
    use : Use
    claims : tuple of Claims
        By client.
    missed : Missed
        What the numbers of directions say, from all clients that count.
    """

    panel: Panel
    use: Use
    claims: tuple[Claims, ...]
    missed: Missed

    @classmethod
    def heard(cls, panel: Panel, use: Use) -> Evidence:
        """All that the clients say; used to compare the clients with each other.

        It includes what single directions say about ancestors. The order does not use that, but a
        client that contradicts the others there is not to be trusted elsewhere.
        """
        factors = [_factors(panel, use, k) for k in range(len(panel.rows))]
        missed = _missed(panel, use, factors)
        claims = tuple(
            _claims(rows, bayes, panel, use, missed)
            for rows, bayes in zip(panel.rows, factors, strict=True)
        )
        return cls(panel, use, claims, missed)

    def without_single_directions(self) -> Evidence:
        """The evidence without ancestors of labels that moved a single direction at every client.

        Such a label has no ancestors, or its interventions changed noise alone.
        """
        alike = self.alike
        if not alike.any():
            return self
        # Nor do they tell whether a hidden cause joins such a label to others.
        chance = np.where(alike, np.fmax(self.missed.chance, ALIKE), self.missed.chance)
        missed = replace(self.missed, chance=chance)
        claims = list(self.claims)
        for k, (rows, one) in enumerate(zip(self.panel.rows, claims, strict=True)):
            # Statements stay: what a single direction means is decided where they are made.
            if one.bayes is not None:
                factors = _factors(self.panel, self.use, k)
                one = _claims(rows, factors, self.panel, self.use, missed)
                own = alike[one.members]
                kept = one.says & ~own
                # What would speak as much for its ancestors does not speak for its descendants.
                back = np.where(own[:, None] & one.says.T, np.fmax(one.log_factor.T, 0.0), 0.0)
                claims[k] = replace(one, evidence=one.evidence.where(kept).less(back), says=kept)
        missed = replace(self.missed, ancestry=self.missed.ancestry * ~alike)
        return replace(self, claims=tuple(claims), missed=missed)

    @property
    def alike(self) -> BoolArray:
        """Labels that moved a single direction at every client, shape (p,).

        Without those whose interventions change weights by what the clients that count say.
        """
        return np.asarray(~self.opens.any(axis=0))

    @cached_property
    def opens(self) -> BoolArray:
        """Clients by whose word a label's ancestors are told apart, shape (n_clients, p).

        It moved two directions there, or is said to change weights. Without such a client, nothing
        follows from what others say about its ancestors.
        """
        out = np.zeros((len(self.claims), len(self.labels)), dtype=bool)
        for k, (rows, claims) in enumerate(zip(self.panel.rows, self.claims, strict=True)):
            if self.use.weights[k] > 0:
                not_hard = self.use.not_hard(self.panel, k)
                out[k, rows.members] = rows.declared & ~not_hard
                if claims.bayes is not None:
                    out[k, rows.members] |= _counted(claims.bayes) & ~np.array(claims.bayes.single)
        return out

    @property
    def labels(self) -> tuple[str, ...]:
        return self.panel.labels

    @property
    def n_scales(self) -> int:
        return len(self.panel.scales)

    @cached_property
    def pooled(self) -> Pooled:
        """The weighted sum over all clients."""
        parts = zip(self.use.weights.tolist(), self.claims, strict=True)
        return Pooled.sum(
            self.n_scales, len(self.labels), ((w, c.members, c.evidence) for w, c in parts)
        )

    def without(self, clients: Iterable[int]) -> Pooled:
        """The weighted sum over all other clients."""
        parts = ((self.use.weights[k], self.claims[k]) for k in clients)
        return self.pooled.minus((float(w), c.members, c.evidence) for w, c in parts)

    def beside(self, clients: Sequence[int]) -> tuple[IntArray, Pooled]:
        """The labels of some clients, and what all others say together about these.

        About other labels they say what all clients say together.
        """
        own = [self.claims[k] for k in clients]
        members = np.unique(np.concatenate([c.members for c in own]))
        parts = [
            (float(self.use.weights[k]), np.searchsorted(members, c.members), c.evidence)
            for k, c in zip(clients, own, strict=True)
        ]
        return members, self.pooled.at(np.ix_(members, members)).minus(parts)

    @cached_property
    def counts(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """How many clients say yes, and how many no, for every ordered pair, shape (p, p) each."""
        p = len(self.labels)
        yes, no = np.zeros((2, p, p), dtype=np.int32)
        for c in self.claims:
            grid = np.ix_(c.members, c.members)
            yes[grid] += c.stance > 0
            no[grid] += c.stance < 0
        return yes, no

    def sides(self, a: int, d: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The clients that say that a is an ancestor of d, and those that say it is not."""
        said = [
            (self.claims[k].client, int(self.claims[k].stance[i, j]))
            for k, i, j in self.panel.seen_by(a, d)
        ]
        yes, no = (tuple(name for name, s in said if s == side) for side in (1, -1))
        return yes, no


def _factors(panel: Panel, use: Use, k: int) -> BayesFactors | None:
    """The factors of one client, without what the use sets aside."""
    rows = panel.rows[k]
    if rows.bayes is None:
        return None
    not_hard = use.not_hard(panel, k)
    bayes = rows.bayes
    if rows.soft is not None and not_hard.any():
        bayes = bayes.where(~(not_hard[:, None] | not_hard), rows.soft)
    if rows.client in use.withheld:
        bayes = bayes.without_ancestry()
    return bayes


def _missed(panel: Panel, use: Use, factors: list[BayesFactors | None]) -> Missed:
    """Estimate how often a second direction is missed, by marginal likelihood.

    A label without ancestors is single at every client. One with ancestors is missed at a share of
    its clients that is Beta(a, b) over labels. a, b and the share f of labels with ancestors
    maximise the likelihood of the counts, with one imagined label missed at 1 of 10 clients.
    """
    single, seen = np.zeros((2, len(panel.labels)))
    for rows, bayes, weight in zip(panel.rows, factors, use.weights, strict=True):
        if bayes is not None:
            counted = _counted(bayes)
            single[rows.members] += weight * (np.array(bayes.single) & counted)
            seen[rows.members] += weight * counted
    both = seen - single > 1e-9
    # Axes: the mean a / (a + b) and the size a + b of the Beta distribution, f, and the labels.
    mean, size, f = (np.array(x) for x in (MEANS, SIZES, WITH_ANCESTORS))
    a, b = ((x[:, None] * size)[..., None, None] for x in (mean, 1.0 - mean))
    likely = betaln(a + single, b + seen - single) - betaln(a, b)
    imagined = (betaln(a + 1, b + 9) - betaln(a, b))[..., 0]
    with_ancestors = likely + np.log(f)[:, None]
    each = np.logaddexp(with_ancestors, np.log1p(-f)[:, None])
    total = imagined + np.where(both, with_ancestors, each).sum(axis=-1)
    best = np.unravel_index(int(total.argmax()), total.shape)
    chosen, counts = f[best[2]], likely[best[0], best[1], 0]
    has = chosen * np.exp(counts)
    chance = np.where(both, 1.0, has / (has + 1.0 - chosen))
    ancestry = np.where(both, TWO_DIRECTIONS, counts)
    return Missed(ancestry * (seen > 0), np.where(single > 0, chance, 0.0))


def _counted(bayes: BayesFactors) -> BoolArray:
    """Labels whose directions a client has counted: it says something about their ancestors."""
    return np.asarray(~np.isnan(bayes.ancestor).any(axis=0).all(axis=0))


def _claims(
    rows: Rows, bayes: BayesFactors | None, panel: Panel, use: Use, missed: Missed
) -> Claims:
    if bayes is not None:
        bayes, log_open = bayes.joint(np.clip(missed.chance[rows.members], LEAST_LEAN, 1.0))
        here = np.array(bayes.single) & missed.certain[rows.members]
        evidence = bayes.averaged(log_open, here)
        if bayes.scales != panel.scales:
            evidence = evidence.at_scales(len(panel.scales))
        says = np.asarray(evidence.n_clients > 0)
        return Claims(rows.client, rows.members, None, bayes, log_open, evidence, says)
    assert rows.certain is not None
    # Statements that rest on interventions that were not hard are not believed.
    doubted = np.array([panel.labels[i] in use.soft for i in rows.members])
    certain = np.where(doubted[:, None] | doubted, np.int8(CANNOT_SAY), rows.certain)
    says = np.asarray(certain != CANNOT_SAY)
    np.fill_diagonal(says, False)
    strength = np.log((1.0 - use.rate) / use.rate)
    stated = np.where(certain == YES, strength, -strength)
    scales = np.broadcast_to(stated, (len(panel.scales), *stated.shape))
    evidence = Pooled.of_client(scales, np.zeros_like(stated), np.zeros_like(doubted), says)
    return Claims(rows.client, rows.members, certain, None, None, evidence, says)
