"""From rows to moments, one regime at a time.

==============  ====================================================================
`regime`        `Moments`: size, mean, covariance and higher moments of one regime; merging
`accumulator`   `Accumulator`: the moments of one regime, from rows that arrive in chunks
`preparing`     what a user asks of rows, and the rows that lie farthest out
`incomplete`    moments of rows with missing values, by EM
`lattice`       the step to which each column was rounded
`checks`        checks of rows and covariance matrices
==============  ====================================================================
"""

from __future__ import annotations

from jigsaw_crl.moments.regime import Moments

__all__ = ["Moments"]
