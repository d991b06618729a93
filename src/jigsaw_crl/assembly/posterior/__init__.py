"""Probabilities of orders, given the clients' evidence.

=========  =========================================================================
`walk`     the log posterior of an order, `Chains` that move through it, and the best guess
`moves`    the moves of a chain, compiled
`chains`   `sample_orders`: several chains, run until they agree
`model`    what makes an order probable; its doubts follow the probabilities
`weights`  how far each client is trusted
=========  =========================================================================
"""

from __future__ import annotations

from jigsaw_crl.assembly.posterior.chains import Convergence, Posterior, entailed, sample_orders
from jigsaw_crl.assembly.posterior.walk import best_order, decode

__all__ = ["Convergence", "Posterior", "best_order", "decode", "entailed", "sample_orders"]
