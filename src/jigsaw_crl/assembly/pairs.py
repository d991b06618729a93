"""Everything that is known about every ordered pair, in one table.

CSV and JSON files, the page, data frames, certificates and designs are views of it: they compute
nothing about pairs themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from jigsaw_crl.assembly.bounds import Bounds
from jigsaw_crl.assembly.dissent import NOBODY, Falls, contested, sites_differ
from jigsaw_crl.assembly.effects import PooledEffects
from jigsaw_crl.assembly.evidence import Evidence
from jigsaw_crl.assembly.verdict import OPEN, SURE, YES, Decided, Why
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.frozen import ReadOnlyArrays

__all__ = ["PairTable"]


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
        """The size of effect that the data exclude; NaN where they exclude none."""
        return np.where(self.verdict == YES, np.nan, self.bounds.excluded)

    def resting(self, a: int, d: int) -> str:
        """The client that a verdict rests on; empty if there is none."""
        k = int(self.rests_on[a, d])
        return "" if k == NOBODY else self.clients[k]
