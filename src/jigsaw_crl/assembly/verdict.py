"""The three answers."""

from __future__ import annotations

import math
from enum import Enum

__all__ = ["CERTAIN_NO", "CERTAIN_YES", "SILENT", "Verdict"]

# A pair is decided when its probability passes one of these.
CERTAIN_YES, CERTAIN_NO = 0.95, 0.05
# Pooled log-odds nearer to zero than this say nothing of themselves: nobody saw the pair, or
# always in one district. Such a pair is decided only by what the others imply.
SILENT = math.log(2.0)


class Verdict(Enum):
    """Is one label an ancestor of another?

    Examples
    --------
    >>> from jigsaw_crl import Verdict
    >>> str(Verdict.NOT_ANCESTOR)
    'not ancestor'
    """

    ANCESTOR = "ancestor"
    NOT_ANCESTOR = "not ancestor"
    UNDETERMINED = "undetermined"

    def __str__(self) -> str:
        return self.value
