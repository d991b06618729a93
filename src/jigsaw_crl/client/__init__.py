"""One client: its moments in every regime, and the space of its latents.

==============  ====================================================================
`client`        `Client`: a control regime and labelled interventions
`checks`        checks of what a client is built from
`matrices`      moments from covariance and precision matrices
`latents`       the number of latents, estimated when it is not given
`sensors`       the noise of each sensor
`rows`          moments of rows in memory
`each`          moments of all regimes, in parallel where it pays
`counting`      how many independent rows the rows of a regime count for
`wide`          rows in memory along the directions of `reduction`
`reduction`     `Reduction`: the directions that replace the columns of a wide table
`sketch`        leading directions of many columns, in one pass
`scatter`       leading directions and noise of the columns, from a sketch
`spectrum`      eigenvalues, leading space and noise floor of a client
`batches`       means of regimes whose batches are offset, and their errors
`white`         `White`: all regimes in coordinates in which the control is white
`nulls`         null distributions of extreme eigenvalues
==============  ====================================================================
"""

from __future__ import annotations

from jigsaw_crl.client.client import CONTROL, Client

__all__ = ["CONTROL", "Client"]
