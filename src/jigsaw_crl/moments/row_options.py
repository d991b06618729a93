"""What a user asks for when rows are read, and the stream of moments that does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.moments.groups import GroupedStream
from jigsaw_crl.moments.incomplete import filled
from jigsaw_crl.moments.stream import MomentStream
from jigsaw_crl.moments.summary import Summary
from jigsaw_crl.moments.trimming import HeldStream, TrimmedStream, check_trim

__all__ = ["FilledStream", "Missing", "RowOptions"]

Missing = Literal["refuse", "drop", "em"]
# Shorter stretches say nothing.
FEWEST_ROWS = 16


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
    def plain(self) -> bool:
        """Nothing is asked for that concerns complete rows."""
        return not (self.trim or self.grouped) and self.missing != "em"

    def stream(self, n_features: int, parts: int) -> MomentStream:
        """A stream for the rows of one regime, in at most this many parts."""
        fill = self.missing == "em"
        if self.grouped:
            return GroupedStream(n_features, parts=parts, trim=self.trim, fill=fill)
        if fill:
            return FilledStream(n_features, parts=parts)
        if self.trim:
            return TrimmedStream(n_features, parts=parts, trim=self.trim)
        return MomentStream(n_features, parts=parts)


class FilledStream(HeldStream):
    """A stream whose rows may have missing values, NaN; it holds them until it is asked."""

    def summaries(self) -> tuple[Summary, tuple[Summary, ...]]:
        """Summary of all rows, and of their stretches."""
        rows = self.held()
        if not np.isnan(rows).any():
            return MomentStream.over(rows, parts=self._wanted).summaries()
        n = len(rows)
        stretches = max(min(int(self._wanted), n // FEWEST_ROWS), 1)
        found = filled(rows, np.arange(n) * stretches // n, self.rank or self.n_features)
        self.incomplete = found.cost
        return found.whole, found.parts
