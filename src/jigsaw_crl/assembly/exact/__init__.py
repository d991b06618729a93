"""What follows with certainty from certain statements, and how.

============  =====================================================
`entailment`  `entail`: everything that follows
`proof`       `Prover`: the steps that lead to a fact
============  =====================================================
"""

from __future__ import annotations

from jigsaw_crl.assembly.exact.entailment import Contradiction, Knowledge, entail
from jigsaw_crl.assembly.exact.proof import Prover, TooLong

__all__ = ["Contradiction", "Knowledge", "Prover", "TooLong", "entail"]
