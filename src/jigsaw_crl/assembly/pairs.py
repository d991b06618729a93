"""Everything that is known about every ordered pair, in one table.

CSV and JSON files, the page, data frames, certificates and designs are views of it: they compute
nothing about pairs themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.bounds import SD, SHARE, WHOLE, Bounds, effect_bounds
from jigsaw_crl.assembly.decision import Decided, Why
from jigsaw_crl.assembly.dissent import (
    NOBODY,
    agreement,
    contested,
    influence,
    sites_differ,
)
from jigsaw_crl.assembly.effects import PooledEffects
from jigsaw_crl.assembly.evidence import Evidence
from jigsaw_crl.assembly.verdict import OPEN, VERDICTS, YES
from jigsaw_crl.base.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PairTable", "why_stated"]


@dataclass(frozen=True, eq=False)
class PairTable:
    """One entry for every ordered pair, rows the ancestor, columns the descendant, shape (p, p).

    Parameters
    ----------
    labels, clients : tuple of str
    verdict : array of int8
        1 ancestor, 0 not ancestor, -1 undetermined.
    why : array of int8
        What the verdict rests on, or why there is none: a `decision.Why`.
    probability : array
    evidence : array
        Pooled log Bayes factor of "ancestor" against "unrelated".
    yes, no : array of int32
        Number of clients that say yes, and no.
    bounds : Bounds
        The effect that the data exclude.
    differ : array
        Log Bayes factor of "sites differ" against "one truth"; NaN for fewer than two sites.
    rests_on : array of int32
        Client without which the others would not decide the pair, by number; -1 for none.
    witnesses : array of int32
        Number of clients that the verdict rests on, if these are few: see `dissent.influence`.
    contested : array of bool
        Clients that speak against the verdict would decide the opposite among themselves.
    effects : PooledEffects or None
        Total effects, from hard interventions.
    """

    labels: tuple[str, ...]
    clients: tuple[str, ...]
    verdict: npt.NDArray[np.int8]
    why: npt.NDArray[np.int8]
    probability: FloatArray
    evidence: FloatArray
    yes: npt.NDArray[np.int32]
    no: npt.NDArray[np.int32]
    bounds: Bounds
    differ: FloatArray
    rests_on: npt.NDArray[np.int32]
    witnesses: npt.NDArray[np.int32]
    contested: BoolArray
    effects: PooledEffects | None

    def __post_init__(self) -> None:
        for name, value in self.__dict__.items():
            if isinstance(value, np.ndarray):
                own = value.copy() if value.base is not None or value.flags.writeable else value
                own.flags.writeable = False
                object.__setattr__(self, name, own)

    @classmethod
    def of(
        cls,
        evidence: Evidence,
        effects: PooledEffects | None,
        probability: FloatArray,
        log_factor: FloatArray,
        decided: Decided,
        bounds: Bounds | None = None,
    ) -> PairTable:
        """The table of verdicts that a posterior gave."""
        verdicts = decided.verdicts
        yes, no = evidence.counts
        resting, witnesses = influence(evidence, probability, log_factor, verdicts)
        return cls(
            labels=evidence.labels,
            clients=evidence.panel.clients,
            verdict=verdicts,
            why=decided.why,
            probability=probability,
            evidence=log_factor,
            yes=yes,
            no=no,
            bounds=effect_bounds(evidence, effects) if bounds is None else bounds,
            differ=sites_differ(evidence),
            rests_on=resting,
            witnesses=witnesses,
            contested=contested(evidence, verdicts),
            effects=effects,
        )

    @classmethod
    def stated(
        cls,
        evidence: Evidence,
        effects: PooledEffects | None,
        verdicts: npt.NDArray[np.int8],
        probability: FloatArray,
    ) -> PairTable:
        """The table of verdicts that follow from statements: exact mode, and Algorithm 3."""
        p = len(evidence.labels)
        shape, nothing = (p, p), np.full((p, p), np.nan)
        yes, no = evidence.counts
        in_sd = np.zeros(shape, dtype=bool) if effects is None else effects.known
        return cls(
            labels=evidence.labels,
            clients=evidence.panel.clients,
            verdict=verdicts,
            why=why_stated(verdicts),
            probability=probability,
            evidence=np.where(verdicts == OPEN, 0.0, np.where(verdicts == YES, np.inf, -np.inf)),
            yes=yes,
            no=no,
            bounds=Bounds(nothing, in_sd),
            differ=nothing,
            rests_on=np.full(shape, NOBODY, dtype=np.int32),
            witnesses=np.zeros(shape, dtype=np.int32),
            contested=np.zeros(shape, dtype=bool),
            effects=effects,
        )

    @property
    def agreement(self) -> FloatArray:
        """Probability that one truth holds at all sites; NaN for fewer than two."""
        return agreement(self.differ)

    @cached_property
    def excluded(self) -> FloatArray:
        """The size of effect that the data exclude, where it says something.

        NaN for ancestors, where nobody measured the pair, and for a share of all that changed.
        """
        value, in_sd = self.bounds.value, self.bounds.in_sd
        with np.errstate(invalid="ignore"):
            hidden = (self.verdict == YES) | (~in_sd & (value > WHOLE))
        return np.where(hidden, np.nan, value)

    def resting(self, a: int, d: int) -> str:
        """The client that a verdict rests on; empty if there is none."""
        k = int(self.rests_on[a, d])
        return "" if k == NOBODY else self.clients[k]

    def to_frame(self) -> pd.DataFrame:
        """One row per ordered pair: see `GlobalOrder.to_frame`."""
        import pandas as pd  # here for start-up time

        a, d = np.nonzero(~np.eye(len(self.labels), dtype=bool))
        names = np.array(self.labels, dtype=object)
        clients = np.array([*self.clients, ""], dtype=object)
        bound, in_sd = self.excluded[a, d], self.bounds.in_sd[a, d]
        return pd.DataFrame(
            {
                "ancestor": names[a],
                "descendant": names[d],
                "verdict": [str(VERDICTS[int(code)]) for code in self.verdict[a, d]],
                "probability": self.probability[a, d],
                "supporting": self.yes[a, d],
                "contradicting": self.no[a, d],
                "excludes_above": bound,
                "excludes_unit": np.where(np.isnan(bound), "", np.where(in_sd, SD, SHARE)),
                "agreement": self.agreement[a, d],
                "rests_on": clients[self.rests_on[a, d]],
                "witnesses": self.witnesses[a, d],
                "contested": self.contested[a, d],
            }
        )


def why_stated(verdicts: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """A `Why` for verdicts that follow from statements."""
    return np.where(verdicts == OPEN, Why.UNSURE, Why.IMPLIED).astype(np.int8)
