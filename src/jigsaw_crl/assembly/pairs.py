"""Everything that is known about every ordered pair, and what a "no" excludes.

CSV and JSON files, the page, data frames, certificates and designs are views of the table: they
compute nothing about pairs themselves.

Below some size no effect can be seen, so that "not an ancestor" always means "no effect above x".
For every pair, x is the bound that all clients together leave at 95 %:

- under a hard intervention on the descendant, of the total effect in standard deviations:
  `|Ê| + 1.645 · error`; in a system that is not linear, of the effect at its dose;
- otherwise of the *share*: of what the intervention on d changed in how d depends on the
  rest, the part that goes with a. 0 is nothing, 1 all of it. A share depends on what else a client
  sees and does, so that clients differ by about `UNLIKE` of it. With their estimates s ± e, and
  `v = e² + (UNLIKE · x)²`, the likelihood of a share x is
  `Π [(1 − ε) (N(s; x, v) + N(s; −x, v)) / 2 + ε / 4]`, and the bound is the 95 % point of the
  posterior over x ≥ 0 with equal prior weight everywhere. A client is wrong with probability
  ε = `MODEL_ERROR`, and then s may be anything between −2 and 2: no client outweighs all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from jigsaw_crl.assembly.dissent import NOBODY, Falls, contested, sites_differ
from jigsaw_crl.assembly.effects import ONE_SIDED, PooledEffects
from jigsaw_crl.assembly.evidence import Evidence
from jigsaw_crl.assembly.verdict import OPEN, SURE, YES, Decided, Why
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.frozen import ReadOnlyArrays
from jigsaw_crl.evidence.priors import MODEL_ERROR

SHARE, SD = "share of the change", "standard deviations"
UNITS = (SHARE, SD, f"{SD} at this dose")
LEVEL = 0.95
# Spread of a pair's share between clients, relative to it.
UNLIKE = 0.25
# Shares at which the likelihood is evaluated: dense near zero, up to more than all.
GRID = np.concatenate([[0.0], np.geomspace(1e-4, 2.0, 120)])
# Log density of a share that is right, beside the exponent and the deviation; and of a wrong one.
OF_BOTH = float(np.log1p(-MODEL_ERROR) - np.log(2.0) - 0.5 * np.log(2.0 * np.pi))
ANYTHING = float(np.log(MODEL_ERROR / (2.0 * GRID[-1])))
# A share of all that changed, or of more, excludes nothing. The page rounds up to two digits too.
WHOLE = 0.99
# "Not ancestor" excludes effects above this many standard deviations, unless the user says which
# size matters. Larger ones are seen wherever the rows suffice to see anything.
LARGEST_NO = 0.5
# Pairs that are worked on together, which bounds the memory.
TOGETHER = 20_000


@dataclass(frozen=True, eq=False)
class Bounds:
    """Upper bounds of effects, rows the ancestor, columns the descendant, shape (p, p)."""

    # NaN where no client measured the pair.
    value: FloatArray
    # Which of `UNITS`.
    units: IntArray
    # Some client states from exact moments that there is no effect.
    stated: BoolArray

    def room(self, smallest: float | None) -> FloatArray:
        """The bounds over the size that "not ancestor" must exclude; NaN as in `value`.

        That is the smallest effect that matters, if the user named one. Statements leave none.
        """
        limit = np.where(self.units > 0, LARGEST_NO, WHOLE) if smallest is None else smallest
        return np.where(np.isnan(self.value) & self.stated, 0.0, self.value / limit)


def size_in_words(size: float, unit: str, descendant: str) -> str:
    """A size of effect for people, rounded up to two digits, as in the report.

    Examples
    --------
    >>> size_in_words(0.0807, SD, "tank"), size_in_words(0.12, SHARE, "tank")
    ('0.081 standard deviations', 'a share of 0.12 of what the intervention on tank changed')
    """
    step = 10.0 ** (np.floor(np.log10(max(size, 1e-12))) - 1.0)
    # Not up for the last bits, which differ between the report and here.
    number = f"{np.ceil(size / step - 1e-4) * step:.2g}"
    if unit != SHARE:
        return f"{number} {unit}"
    return f"a share of {number} of what the intervention on {descendant} changed"


def effect_bounds(
    evidence: Evidence, effects: PooledEffects | None, applied: PooledEffects | None
) -> Bounds:
    """Bounds of every pair that some client measured.

    `effects` are the total effects of hard interventions, `applied` what these did at their doses.
    """
    value = _of_shares(evidence)
    units = np.zeros(value.shape, dtype=np.intp)
    for unit, known in ((2, applied), (1, effects)):
        if known is not None:
            units[known.known] = unit
            value[known.known] = (np.abs(known.estimate) + ONE_SIDED * known.error)[known.known]
    np.fill_diagonal(value, np.nan)
    stated = np.zeros(value.shape, dtype=bool)
    for claims, weight in zip(evidence.claims, evidence.use.weights, strict=True):
        if claims.certain is not None and weight > 0:
            stated[np.ix_(claims.members, claims.members)] |= claims.stance < 0
    return Bounds(value, units, stated)


def _of_shares(evidence: Evidence) -> FloatArray:
    """Bounds of the shares of all pairs, shape (p, p); NaN where no client that counts has one."""
    p = len(evidence.labels)
    out, parts = np.full(p * p, np.nan), []
    clients = zip(evidence.panel.rows, evidence.claims, evidence.use.weights, strict=True)
    for rows, claims, weight in clients:
        if rows.shares is not None and weight > 0:
            share, error = rows.shares
            known = ~np.isnan(share) & claims.says
            a, d = np.nonzero(known)
            cell = rows.members[a] * p + rows.members[d]
            parts.append(
                (cell, share[known], np.maximum(error[known], 1e-9), np.full(len(a), weight))
            )
    if not parts:
        return out.reshape(p, p)
    cell, *others = (np.concatenate(x) for x in zip(*parts, strict=True))
    order = np.argsort(cell, kind="stable")
    s, e, w = (x[order, None] for x in others)
    pairs, start = np.unique(cell[order], return_index=True)
    stop = np.append(start[1:], len(cell))
    for first in range(0, len(pairs), TOGETHER):
        chosen = slice(first, first + TOGETHER)
        span = slice(start[chosen][0], stop[chosen][-1])
        sd = np.sqrt(e[span] ** 2 + (UNLIKE * GRID) ** 2)
        near, far = (-0.5 * ((s[span] - side * GRID) / sd) ** 2 for side in (1, -1))
        fits = np.logaddexp(near, far) - np.log(sd) + OF_BOTH
        each = np.logaddexp(fits, ANYTHING) * w[span]
        out[pairs[chosen]] = _quantile(np.add.reduceat(each, start[chosen] - span.start, axis=0))
    return out.reshape(p, p)


def _quantile(log_likelihood: FloatArray) -> FloatArray:
    """The `LEVEL` point of the posterior over the grid, equal prior weight, shape (k,)."""
    density = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    steps = np.diff(GRID) * (density[:, 1:] + density[:, :-1]) / 2
    below = np.insert(np.cumsum(steps, axis=1), 0, 0.0, axis=1) / steps.sum(axis=1)[:, None]
    at, row = (below < LEVEL).sum(axis=1), np.arange(len(below))
    before, here = below[row, at - 1], below[row, at]
    part = (LEVEL - before) / (here - before)
    return np.asarray(GRID[at - 1] + part * (GRID[at] - GRID[at - 1]))


@dataclass(frozen=True, eq=False)
class PairTable(ReadOnlyArrays):
    """One entry for every ordered pair, rows the ancestor, columns the descendant, shape (p, p)."""

    clients: tuple[str, ...]
    # 1 ancestor, 0 not ancestor, -1 undetermined; and a `verdict.Why`.
    verdict: npt.NDArray[np.int8]
    why: npt.NDArray[np.int8]
    probability: FloatArray
    # Pooled log Bayes factor of "ancestor" against "unrelated"; ±inf for exact facts.
    evidence: FloatArray
    # Number of clients that say yes, and no.
    yes: npt.NDArray[np.int32]
    no: npt.NDArray[np.int32]
    # The effect that the data exclude.
    bounds: Bounds
    # Log Bayes factor of "sites differ" against "one truth"; NaN for fewer than two sites.
    differ: FloatArray
    # Client without which the others would not decide the pair, by number; and how many clients the
    # verdict rests on, if these are few: see `dissent.Falls`.
    rests_on: npt.NDArray[np.int32]
    witnesses: npt.NDArray[np.int32]
    # Clients that speak against the verdict would decide the opposite among themselves.
    contested: BoolArray

    @classmethod
    def of(
        cls,
        evidence: Evidence,
        effects: PooledEffects | None,
        probability: FloatArray,
        decided: Decided,
        log_factor: FloatArray | None = None,
        bounds: Bounds | None = None,
    ) -> PairTable:
        """The table of verdicts; without evidence and bounds they follow from statements."""
        verdicts, (yes, no) = decided.verdicts, evidence.counts
        differ, against = np.full(verdicts.shape, np.nan), np.zeros(verdicts.shape, dtype=bool)
        resting, witnesses = (np.full(verdicts.shape, x, dtype=np.int32) for x in (NOBODY, 0))
        if log_factor is None or bounds is None:
            log_factor = np.where(verdicts == YES, np.inf, np.where(verdicts == OPEN, 0.0, -np.inf))
            in_sd = against if effects is None else effects.known
            bounds = Bounds(differ, in_sd.astype(np.intp), no > 0)
        else:
            falls = Falls(evidence, probability, log_factor, verdicts)
            # What a bound decides rests on nobody's evidence.
            small = decided.why == Why.SMALL
            resting = np.where(small, np.int32(NOBODY), falls.rests_on())
            witnesses = falls.witnesses()
            differ, against = sites_differ(evidence), contested(evidence, verdicts)
        return cls(
            clients=evidence.panel.clients,
            verdict=verdicts,
            why=decided.why,
            probability=probability,
            evidence=log_factor,
            yes=yes,
            no=no,
            bounds=bounds,
            differ=differ,
            rests_on=resting,
            witnesses=witnesses,
            contested=against,
        )

    @property
    def agreement(self) -> FloatArray:
        """Probability that one truth holds at all sites; NaN for fewer than two.

        Before the data it is that of a decided pair.
        """
        return np.asarray(expit(SURE - self.differ))

    @cached_property
    def excluded(self) -> FloatArray:
        """The size of effect that the data exclude; NaN for ancestors, and a share of all."""
        with np.errstate(invalid="ignore"):
            all_of_it = (self.bounds.units == 0) & (self.bounds.value > WHOLE)
        return np.where((self.verdict == YES) | all_of_it, np.nan, self.bounds.value)

    def resting(self, a: int, d: int) -> str:
        """The client that a verdict rests on; empty if there is none."""
        k = int(self.rests_on[a, d])
        return "" if k == NOBODY else self.clients[k]
