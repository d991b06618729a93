"""What a user asks for when rows are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.moments.trimming import check_trim

__all__ = ["Missing", "RowOptions"]

Missing = Literal["refuse", "drop", "em"]


@dataclass(frozen=True)
class RowOptions:
    """What is asked for, of all regimes of a client.

    Parameters
    ----------
    trim : float
        Share of the rows of each regime to leave out: those that lie farthest out.
    missing : {"refuse", "drop", "em"}
        Refuse missing values, leave their rows out, or use all values by EM.
    grouped, batched : bool
        Rows come in groups, or in batches.

    Raises
    ------
    InputError
        A value is unknown, or two of them do not go together.
    """

    trim: float = 0.0
    missing: Missing = "refuse"
    grouped: bool = False
    batched: bool = False

    def __post_init__(self) -> None:
        check_trim(self.trim)
        if self.missing not in ("refuse", "drop", "em"):
            raise InputError(f"missing is {self.missing!r}", 'Use "refuse", "drop" or "em".')
        for given, what in ((self.trim, "trim"), (self.batched, "batch")):
            if self.missing == "em" and given:
                raise InputError(
                    f'missing="em" (--fill-missing) cannot be combined with {what}, which needs '
                    "complete rows",
                    f'Leave incomplete rows out (missing="drop"), or drop {what}.',
                )

    @property
    def holds(self) -> bool:
        """Are all rows needed at once?"""
        return bool(self.trim) or self.missing == "em"
