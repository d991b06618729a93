"""The result of a recovery, its file and its exports.

==============  ====================================================================
`result`        `Result`
`file`          the schema of `result.json`
`document`      order and proposal as JSON values
`folder`        the result folder, written in one step
`left_out`      labels and clients that were excluded, and why
`exports`       GraphML, JSON and networkx
==============  ====================================================================
"""

from __future__ import annotations

from jigsaw_crl.result.loading import load_result
from jigsaw_crl.result.result import Result

__all__ = ["Result", "load_result"]
