"""The evidence model: from statistics of a pair of labels to pooled log Bayes factors of ancestry.

==============  =============================================================================
`priors`        constants of the model, each with its reason
`hypotheses`    what may be true of a pair: a table of named rows
`mixture`       log densities of any such table
`factors`       `BayesFactors`: what one client says about its pairs
`effects`       what one client says about the size of effects
`pooled`        `Pooled`: what several clients say together; add clients with `+`
==============  =============================================================================

The derivation is in the docs, on the page "From samples to evidence to order". To change the
model, change the table in `hypotheses` or a constant in `priors`.
"""
