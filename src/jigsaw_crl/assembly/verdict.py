"""The possible answers about a pair, how arrays encode them, and the thresholds of a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum

from jigsaw_crl.base.text import pluralise
from jigsaw_crl.fragment.fragment import CANNOT_SAY, NO, YES

__all__ = [
    "CERTAIN_NO",
    "CERTAIN_YES",
    "EACH_NO",
    "EACH_YES",
    "NO",
    "OPEN",
    "SURE",
    "VERDICTS",
    "YES",
    "Verdict",
    "tally",
]

# Arrays of verdicts use the codes of a fragment's statements: YES, NO, and OPEN for undetermined.
OPEN = CANNOT_SAY
# A pair is decided when its probability is above CERTAIN_YES or below CERTAIN_NO.
CERTAIN_YES, CERTAIN_NO = 0.95, 0.05
# The same as log-odds: 19 to 1.
SURE = math.log(CERTAIN_YES / CERTAIN_NO)
# Probability that every single chain must pass before all of them decide together.
EACH_YES, EACH_NO = 0.85, 0.15


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


def tally(counts: Mapping[str, int]) -> str:
    """The numbers of pairs with each verdict, as every repr and heading gives them.

    Examples
    --------
    >>> tally({"ancestor": 1, "not ancestor": 3, "undetermined": 2})
    '1 ancestor pair, 3 not ancestor, 2 undetermined'
    """
    yes, no, opened = (counts[str(VERDICTS[code])] for code in (YES, NO, OPEN))
    return f"{pluralise(yes, 'ancestor pair')}, {no} not ancestor, {opened} undetermined"
