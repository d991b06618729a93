"""One client: its moments in every regime, and the space of its latents.

==============  ====================================================================
`client`        `Client`: a control regime and labelled interventions
`checks`        checks of what a client is built from
`given`         what a user passes for each regime, and moments of rows and of covariances
`noise`         `NoiseModel`: number of latents, their space, the noise of each sensor
`relations`     sensors that do not respond linearly
`counting`      how many independent rows the rows of a regime count for
`covariates`    columns whose linear part is taken off the others
`reduction`     `Reduction`: the directions that replace the columns of a wide table
`batches`       means of regimes whose batches are offset, and their errors
`white`         `White`: all regimes in coordinates in which the control is white
==============  ====================================================================
"""

from __future__ import annotations

from jigsaw_crl.client.client import CONTROL, Client

__all__ = ["CONTROL", "Client"]
