"""From rows to moments, one regime at a time.

==============  ====================================================================
`regime`        `Moments`: size, mean, covariance and higher moments of one regime; merging
`accumulator`   `Accumulator`: the moments of one regime, from rows that arrive in chunks
`row_options`   what a user asks of rows: trimming, missing values, groups, batches
`sums`          sums of rows in blocks, in constant memory
`trimming`      the rows that lie farthest out
`incomplete`    moments of rows with missing values, by EM
`checks`        checks of rows and covariance matrices
==============  ====================================================================
"""

from __future__ import annotations

from jigsaw_crl.moments.regime import Moments

__all__ = ["Moments"]
