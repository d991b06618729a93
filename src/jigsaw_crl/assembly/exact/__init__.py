"""What follows with certainty from certain statements, and how.

============  ====================================================================
`entailment`  `deduce`: everything that follows from statements about ancestors
`proof`       `Prover`: the steps that lead to a fact
============  ====================================================================
"""

from __future__ import annotations

from jigsaw_crl.assembly.exact.entailment import Contradiction, Facts, deduce
from jigsaw_crl.assembly.exact.proof import Prover, TooLong

__all__ = ["Contradiction", "Facts", "Prover", "TooLong", "deduce"]
