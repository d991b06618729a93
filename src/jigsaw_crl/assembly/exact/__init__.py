"""What follows with certainty from certain statements, and how.

===============  ==============================================================================
`deduction`      `deduce`: everything that follows
`entailment`     what follows from statements about ancestors alone
`hidden`         what follows from spouses, about paths through hidden nodes
`proof`          `Prover`: the steps that lead to a fact
`hidden_checks`  is a step about paths through hidden nodes right?
===============  ==============================================================================
"""

from __future__ import annotations

from jigsaw_crl.assembly.exact.deduction import Deduction, deduce
from jigsaw_crl.assembly.exact.entailment import Contradiction
from jigsaw_crl.assembly.exact.proof import Prover, TooLong

__all__ = ["Contradiction", "Deduction", "Prover", "TooLong", "deduce"]
