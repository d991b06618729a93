"""What follows from certain statements, and how any fact follows from others.

============  ====================================================================
`entailment`  `deduce`: everything that follows from statements about ancestors
`proof`       `Prover`: the steps that lead to a fact
============  ====================================================================
"""

from __future__ import annotations

from jigsaw_crl.assembly.exact.entailment import Contradiction, Facts, deduce
from jigsaw_crl.assembly.exact.proof import NoProof, Prover

__all__ = ["Contradiction", "Facts", "NoProof", "Prover", "deduce"]
