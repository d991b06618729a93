"""From a posterior to verdicts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.posterior import Posterior
from jigsaw_crl.assembly.posterior.agreement import EACH_NO, EACH_YES
from jigsaw_crl.assembly.verdict import (
    CERTAIN_NO,
    CERTAIN_YES,
    LEAST_AGAINST,
    NO,
    OPEN,
    SILENT,
    YES,
)
from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.order import refuted, transitive_closure

__all__ = ["decide", "with_certainty"]


def decide(draws: Posterior, evidence: FloatArray) -> npt.NDArray[np.int8]:
    """Verdicts at 0.95 and 0.05, where every chain on its own nearly agrees.

    Chains that disagree decide nothing. A pair without evidence of its own must be entailed by
    decided ones, and "not an ancestor" needs evidence of `LEAST_AGAINST` against it or must be
    entailed: the prior alone does not decide.
    """
    probability, chains = draws.probability, draws.chains
    p = len(probability)
    eye = np.eye(p, dtype=bool)
    high = (probability > CERTAIN_YES) & (chains.min(axis=0) > EACH_YES) & ~eye
    low = (probability < CERTAIN_NO) & (chains.max(axis=0) < EACH_NO) | eye
    silent = np.abs(evidence) < SILENT
    against = low & (evidence < -LEAST_AGAINST)
    yes = transitive_closure(high & ~silent)
    no = refuted(yes, against)
    verdicts = np.full((p, p), OPEN, dtype=np.int8)
    verdicts[low & (against | no | eye)] = NO
    verdicts[high & (~silent | yes)] = YES
    return verdicts


def with_certainty(verdicts: npt.NDArray[np.int8], chance: float | FloatArray) -> FloatArray:
    """Probabilities of all pairs if verdicts are certain, and open pairs have this chance."""
    out = np.where(verdicts == OPEN, np.clip(chance, 0.0, 1.0), verdicts == YES)
    np.fill_diagonal(out, 0.0)
    out.flags.writeable = False
    return out
