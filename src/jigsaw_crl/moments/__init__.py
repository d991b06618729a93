"""From rows to moments, one regime at a time.

==============  ====================================================================
`regime`        `Moments`: size, mean, covariance and higher moments of one regime
`summary`       moments of some rows as plain numbers, and how those of two sets are merged
`stream`        `MomentStream`: moments of rows that arrive in chunks, in constant memory
`groups`        the same for rows that come in groups
`trimming`      the same without the rows that lie farthest out
`incomplete`    moments of rows with missing values, by EM
`row_options`   what a user asks of rows: trimming, missing values, groups, batches
`checks`        checks of rows and covariance matrices
==============  ====================================================================
"""

from __future__ import annotations

from jigsaw_crl.moments.regime import Moments

__all__ = ["Moments"]
