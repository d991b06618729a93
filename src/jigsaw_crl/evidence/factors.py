"""What one client says about its pairs: log Bayes factors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.frozen import ReadOnlyArrays
from jigsaw_crl.evidence.pooled import Pooled, unrelated
from jigsaw_crl.evidence.priors import (
    HIDDEN_SHARE,
    IN_DISTRICT,
    MISSED,
    MODEL_ERROR,
    ONE_WEAK,
    OPEN_PAIRS,
    OPEN_SHARE,
    PAIR_COST,
    WEAK_LABELS,
    WEAK_PAIRS,
)

# Evidence is kept to four decimals: far below any decision's margin. A fragment read from a file
# then equals the one in memory, and says no more about the data than it must.
DECIMALS = 4
# What decides is the difference of two log factors of a pair. Where it is small, so that it could
# go either way, its sampling error is about 1: a file may round all of them to a sixteenth.
STEP = 1 / 16
# Steps of EM for the districts of a client.
EM_STEPS = 30
# A weak hidden cause allows two statistics more to differ from zero than ancestry does.
WEAK_OCCAM = 0.5


@dataclass(frozen=True, eq=False)
class BayesFactors(ReadOnlyArrays):
    """Log Bayes factors of one client's pairs against "unrelated"; NaN where it cannot say."""

    # The effect scales τ, and `[s, a, d]`: "a is an ancestor of d, with an effect of scale τ_s".
    scales: tuple[float, ...]
    ancestor: FloatArray
    # "Same district", and "unrelated, but a line leans" (see `priors.MISSED`): symmetric, (p, p).
    district: FloatArray
    lean: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    # Labels whose intervention moved a single direction.
    single: tuple[bool, ...] = ()
    # Pairs whose column has a hard intervention, so that hidden causes leave nothing open, (p, p).
    settled: BoolArray = field(default_factory=lambda: np.empty((0, 0), dtype=bool))

    def __post_init__(self) -> None:
        shape = self.district.shape
        if not np.size(self.lean):
            object.__setattr__(self, "lean", np.zeros(shape))
        if not self.single:
            object.__setattr__(self, "single", (False,) * len(self.district))
        if not np.size(self.settled):
            object.__setattr__(self, "settled", np.zeros(shape, dtype=bool))
        for name in ("ancestor", "district", "lean"):
            value = np.asarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, np.round(value, DECIMALS))
        self._copy_read_only("ancestor", "district", "lean")
        self._copy_read_only("settled", dtype=bool)

    def _changed(self, change: Callable[[FloatArray], FloatArray]) -> BayesFactors:
        """The same with all log factors changed by a function."""
        ancestor, district, lean = map(change, (self.ancestor, self.district, self.lean))
        return replace(self, ancestor=ancestor, district=district, lean=lean)

    def at(self, index: IntArray) -> BayesFactors:
        """The factors of some labels, in that order."""
        rows, columns = np.ix_(index, index)
        single = tuple(np.array(self.single)[index].tolist())
        given = self._changed(lambda x: x[..., rows, columns])
        return replace(given, single=single, settled=self.settled[rows, columns])

    def where(self, chosen: BoolArray, other: BayesFactors) -> BayesFactors:
        """These factors for the chosen pairs (symmetric), the other ones elsewhere."""
        names = ("ancestor", "district", "lean", "settled")
        parts = {x: np.where(chosen, getattr(self, x), getattr(other, x)) for x in names}
        return replace(self, **parts)

    def without_ancestry(self) -> BayesFactors:
        """The factors with nothing said about ancestors."""
        return replace(self, ancestor=np.full_like(self.ancestor, np.nan))

    def bounded(self) -> BayesFactors:
        """The factors if the client is wrong about a pair with probability ε = `MODEL_ERROR`.

        With M that of the best hypothesis, each log factor l becomes `log[(1 − ε) e^{l − M} + ε]`,
        less the same of "unrelated" (l = 0): no two hypotheses differ by more than `log 1/ε`.
        """
        best = np.fmax(np.fmax(self.district, self.lean), 0.0)
        for scale in self.ancestor:
            best = np.fmax(best, np.fmax(scale, scale.T))

        def floor(x: FloatArray | float) -> FloatArray:
            with np.errstate(invalid="ignore"):  # NaN, "cannot say", stays NaN
                above = np.log1p(-MODEL_ERROR) + x - best
                return np.asarray(np.logaddexp(above, np.log(MODEL_ERROR)))

        return self._changed(lambda x: floor(x) - floor(0.0))

    def coarse(self) -> BayesFactors:
        """The factors rounded to `STEP`."""
        # Adding 0 turns -0 into 0, which has one spelling.
        return self._changed(lambda x: np.round(x / STEP) * STEP + 0.0)

    def own(self) -> Pooled:
        """The factors as evidence of one client, as they are; NaN where it cannot say."""
        says = np.asarray(~np.isnan(self.ancestor).any(axis=0))
        own = Pooled.of_client(self.ancestor, self.lean, np.array(self.single), says)
        own.ancestor[:, ~says] = own.leaning[:, ~says] = np.nan
        return own

    @property
    def log_factor(self) -> FloatArray:
        """ "Row is an ancestor of column" against "unrelated", shape (p, p)."""
        return self.own().log_factor()

    @property
    def district_log_factor(self) -> FloatArray:
        """ "Same district" against "unrelated", shape (p, p)."""
        single = np.array(self.single)
        leans = np.where(single[:, None] | single, MISSED, 0.0)
        return self.district - unrelated(np.nan_to_num(self.lean), leans)

    def summary(self) -> FloatArray:
        """Log-odds that the row is an ancestor of the column against all else, shape (p, p).

        Each relation (either direction, same district) starts `PAIR_COST` below "unrelated",
        effect scales are averaged, and a district leaves ancestry at its prior, except where a
        hard intervention settles it.
        """
        inside = np.where(self.settled, -np.inf, self.district_log_factor - PAIR_COST)
        yes = self.log_factor - PAIR_COST
        with np.errstate(divide="ignore", invalid="ignore"):  # NaN, "cannot say", stays NaN
            for_it = np.logaddexp(yes, inside + np.log(IN_DISTRICT))
            against = np.logaddexp(self._no_effect(), yes.T)
            against = np.logaddexp(against, inside + np.log1p(-IN_DISTRICT))
            return np.asarray(np.round(for_it - against, DECIMALS))

    def _no_effect(self) -> FloatArray:
        """ "Neither is an ancestor of the other" against "unrelated", shape (p, p).

        Where a hard intervention settles the pair, a hidden cause may join it all the same, as it
        may join an ancestor and its descendant.
        """
        joined = np.where(self.settled & ~np.isnan(self.district), self.district, 0.0)
        return np.asarray(np.logaddexp(np.log1p(-HIDDEN_SHARE), np.log(HIDDEN_SHARE) + joined))

    def joint(self, missed: float | FloatArray = MISSED) -> tuple[BayesFactors, FloatArray]:
        """What all pairs of the client say together about its districts.

        A hidden cause that reaches j weakly makes every other label of the district look like an
        ancestor of j. One pair cannot tell these, and many pairs of j can: "weak" is one property
        of the label, not one of each pair. So the share of pairs in one district and the
        probability that each label is weak are estimated from all pairs, by EM.

        `missed` is the probability that the second direction of a target with a spouse was missed.
        Returns the factors with those of "same district" that follow, and the log prior probability
        π that each pair lies in one district.
        """
        with np.errstate(invalid="ignore"):
            ancestor = np.logaddexp.reduce(self.ancestor, axis=0) - np.log(len(self.ancestor))
        known = ~np.isnan(ancestor) & ~np.isnan(self.district) & ~np.isnan(ancestor.T)
        i, j = np.nonzero(np.triu(known, 1))
        # A target with a spouse moves two directions (T1): was one of the pair's missed?
        own = np.log(missed) * np.array(self.single)
        log_missed = np.asarray(np.fmin(own[:, None], own))
        inside = (self.district + log_missed)[i, j]
        # "One district, and d is weak"; a hard intervention would tell.
        alike = np.where(self.settled, -np.inf, ancestor + np.log(WEAK_OCCAM) + log_missed)
        weak = [np.minimum(alike[at], inside - np.log(ONE_WEAK)) for at in ((i, j), (j, i))]
        logs = np.stack([np.zeros(len(i)), ancestor[i, j], ancestor[j, i], inside, *weak])
        each = np.exp(logs - logs.max(axis=0, initial=-np.inf))
        p = len(known)
        none, related, share, weaks = *(OPEN_SHARE,) * 3, np.full(p, WEAK_LABELS)
        for _ in range(EM_STEPS):
            relations = np.array([none, related, related, share, share, share])[:, None]
            belief = each * relations
            belief[4] *= weaks[j]
            belief[5] *= weaks[i]
            belief /= belief.sum(axis=0)
            sums, total = belief.sum(axis=1), OPEN_PAIRS + len(i)
            prior = OPEN_PAIRS * OPEN_SHARE
            none, related = (prior + sums[0]) / total, (prior + sums[1:3].mean()) / total
            share = (prior + sums[3:].sum()) / total
            joined = belief[3:].sum(axis=0)
            own = np.bincount(j, belief[4], p) + np.bincount(i, belief[5], p)
            pairs = np.bincount(j, joined, p) + np.bincount(i, joined, p)
            weaks = (WEAK_PAIRS * WEAK_LABELS + own) / (WEAK_PAIRS + pairs)
        logs[4] += np.log(weaks[j])
        logs[5] += np.log(weaks[i])
        district = self.district.copy()
        found = np.logaddexp.reduce(logs[3:], axis=0) - log_missed[i, j]
        district[i, j] = district[j, i] = found
        log_open = np.log(share) + log_missed
        return replace(self, district=district), np.asarray(log_open)

    def averaged(
        self, log_open: FloatArray | None = None, missed: BoolArray | None = None
    ) -> Pooled:
        """The client's evidence with districts averaged over.

        With π the probability that a pair lies in one district,

            x_τ = log[(1 − π) e^{l_τ} + π e^{l_D}] − log[(1 − π) + π e^{l_D}] ,

        and the same for leaning. A district is a property of the pair at this client, because it
        depends on what is hidden there, so it is averaged over before clients are added up. Where
        a hard intervention settles the pair, l_τ allows for hidden causes itself, with the
        probability h = `HIDDEN_SHARE`, and so must "no effect": `x_τ = l_τ − log[(1 − h) + h
        e^{l_D}]`. Another probability on one side would be evidence by itself, either way and at
        every client. By default log π is what the client alone knows: see `joint`.
        """
        if log_open is None:
            bayes, log_open = self.joint()
            return bayes.averaged(log_open, missed)
        says = np.asarray(~np.isnan(self.ancestor).any(axis=0))
        np.fill_diagonal(says, False)
        log_fixed = np.log1p(-np.exp(log_open))
        # A client that cannot speak of districts has none to allow for.
        open_ = log_open + np.where(np.isnan(self.district), -np.inf, self.district)

        def over(factor: FloatArray) -> FloatArray:
            fixed = log_fixed + np.nan_to_num(factor, nan=0.0)
            return np.asarray(np.logaddexp(fixed, open_) - np.logaddexp(log_fixed, open_))

        settled = self.ancestor - self._no_effect()
        ancestor = np.where(self.settled, settled, over(self.ancestor))
        return Pooled.of_client(ancestor, over(self.lean), np.array(self.single), says, missed)
