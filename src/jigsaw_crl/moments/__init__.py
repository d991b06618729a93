"""From rows to moments, one regime at a time.

==============  ====================================================================
`regime`        `Moments`: size, mean, covariance and higher moments of one regime
`stream`        `MomentStream`: moments of rows that arrive in chunks, in constant memory
`power_sums`    the compiled sums behind `stream`
`checks`        checks of rows and covariance matrices
==============  ====================================================================
"""

from __future__ import annotations

from jigsaw_crl.moments.regime import Moments

__all__ = ["Moments"]
