"""Probabilities of orders, given the clients' evidence.

=========  =========================================================================
`walk`     the log posterior of an order, `Chains` that move through it, and the best guess
`moves`    the moves of a chain, compiled
`chains`   `sample_orders`: several chains, run until they agree
`model`    what makes an order probable; its doubts follow the probabilities
`weights`  how far each client is trusted
=========  =========================================================================
"""
