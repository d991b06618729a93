"""From rows to moments, one regime at a time.

==============  ====================================================================
`regime`        `Moments`: size, mean, covariance and fourth moments of one regime
`stream`        moments of rows that arrive in blocks, in constant memory
`power_sums`    the compiled sums behind `stream`
==============  ====================================================================
"""

from __future__ import annotations

from jigsaw_crl.moments.regime import Moments

__all__ = ["Moments"]
