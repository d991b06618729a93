"""Probabilities of orders, given the clients' evidence.

=============  ============================================================================
`walk`         the log posterior of an order, and `Chain`, one order that moves through it
`moves`        the moves of a chain, compiled
`metropolis`   steps of a chain, compiled
`enumeration`  all orders of a few labels, with their probabilities
`search`       which single order scores best, and which one is the best guess
`starts`       orders of many labels that take over from each other what is worth more
`chains`       `sample_orders`: several chains, run until they agree
`posterior`    how probable each pair is, and orders drawn with these probabilities
`agreement`    whether the chains agree, and on which pairs they do not
`doubts`       invisible effects and hidden common causes, estimated from the study
`rounds`       the model of orders, whose doubts follow the probabilities
`weights`      how far each client is trusted
=============  ============================================================================
"""

from __future__ import annotations

from jigsaw_crl.assembly.posterior.agreement import Convergence
from jigsaw_crl.assembly.posterior.chains import entailed, sample_orders
from jigsaw_crl.assembly.posterior.posterior import Posterior
from jigsaw_crl.assembly.posterior.search import best_order, decode

__all__ = ["Convergence", "Posterior", "best_order", "decode", "entailed", "sample_orders"]
