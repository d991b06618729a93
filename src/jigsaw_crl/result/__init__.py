"""The result of a recovery, its file and its exports.

==============  ====================================================================
`result`        `Result`
`left_out`      the labels and clients that it leaves out
`summary`       the sentence that says which clients can say something about ancestors
`document`      `result.json`: schema, writer and reader
`folder`        the result folder, read and written in one step
`exports`       GraphML, DOT, JSON and CSV
==============  ====================================================================
"""

from __future__ import annotations

from jigsaw_crl.result.folder import load_result
from jigsaw_crl.result.result import Result

__all__ = ["Result", "load_result"]
