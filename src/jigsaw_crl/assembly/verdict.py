"""The possible answers about a pair, how arrays encode them, and the thresholds of a verdict."""

from __future__ import annotations

import math
from enum import Enum

from jigsaw_crl.fragment.fragment import CANNOT_SAY, NO, YES

__all__ = [
    "CERTAIN_NO",
    "CERTAIN_YES",
    "LEAST_AGAINST",
    "NO",
    "OPEN",
    "SAYS_NO",
    "SAYS_NOTHING",
    "SAYS_YES",
    "SILENT",
    "VERDICTS",
    "YES",
    "Verdict",
]

# Arrays of verdicts use the codes of a fragment's statements: YES, NO, and OPEN for undetermined.
OPEN = CANNOT_SAY
# Arrays of stances (what one client says of itself) are signed, so that they can be summed and
# correlated over clients.
SAYS_YES, SAYS_NO, SAYS_NOTHING = 1, -1, 0
# A pair is decided when its probability is above CERTAIN_YES or below CERTAIN_NO.
CERTAIN_YES, CERTAIN_NO = 0.95, 0.05
# Pooled log-odds nearer to zero than this count as no evidence: no client saw the pair, or all had
# it in one district. Such a pair is decided only if decided pairs imply the answer.
SILENT = math.log(2.0)
# The prior alone makes ancestry improbable; a verdict against it needs this much pooled log-odds.
LEAST_AGAINST = 1.0


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


VERDICTS = {YES: Verdict.ANCESTOR, NO: Verdict.NOT_ANCESTOR, OPEN: Verdict.UNDETERMINED}
