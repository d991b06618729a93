"""Moments of rows that come in groups (a subject, a run), whose rows are alike.

The parts of a regime are then sets of whole groups instead of consecutive stretches of rows: how
much they differ shows how much the moments vary with the groups that happened to be taken. Groups
are dealt to the parts in turn, in the order in which they first occur.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import ArrayLike, FloatArray, IntArray
from jigsaw_crl.moments.incomplete import filled
from jigsaw_crl.moments.stream import MomentStream
from jigsaw_crl.moments.summary import Summary
from jigsaw_crl.moments.trimming import trimmed

__all__ = ["GroupedStream"]


class GroupedStream(MomentStream):
    """A stream whose parts are sets of groups.

    Parameters
    ----------
    n_features : int
    parts : int
        The largest number of parts.
    trim : float
        Share of the rows to leave out; if there is one, all rows are held until moments are asked.
    fill : bool
        Rows may have missing values: see `incomplete`. They are held likewise.

    Examples
    --------
    >>> import numpy as np
    >>> from jigsaw_crl.moments.groups import GroupedStream
    >>> from jigsaw_crl.moments.regime import Moments
    >>> stream = GroupedStream(1, parts=2)
    >>> stream.add_grouped(np.array([[0.0], [1.0], [2.0]]), ["a", "b"], np.array([0, 1, 0]))
    >>> m = Moments.from_stream(stream)
    >>> m.groups, m.mean.tolist(), [part.mean.tolist() for part in m.parts]
    (2, [1.0], [[1.0], [1.0]])
    """

    def __init__(
        self, n_features: int, *, parts: int, trim: float = 0.0, fill: bool = False
    ) -> None:
        super().__init__(n_features)
        self._most, self.trim, self.fill = parts, trim, fill
        self.groups = 0
        self._part_of: dict[str, int] = {}
        self._streams: list[MomentStream] = []
        self._held: list[tuple[FloatArray, IntArray]] = []
        self.left_out = 0

    @property
    def n(self) -> int:
        """Number of rows so far, those that will be left out included."""
        return sum(x.n for x in self._streams) + sum(len(rows) for rows, _ in self._held)

    def add(self, rows: ArrayLike) -> None:
        """Add rows of one group more, shape (any, n_features)."""
        x = np.asarray(rows)
        self.add_grouped(x, [f"{len(self._part_of) + 1}"], np.zeros(len(x), dtype=np.intp))

    def add_grouped(
        self, rows: npt.NDArray[np.number], names: Sequence[str], codes: npt.NDArray[np.integer]
    ) -> None:
        """Add rows, shape (any, n_features); row i is in the group `names[codes[i]]`."""
        found, first = np.unique(codes, return_index=True)
        of = np.zeros(len(names), dtype=np.intp)
        for code in found[np.argsort(first)].tolist():
            of[code] = self._part_of.setdefault(names[code], len(self._part_of) % self._most)
        self.groups = len(self._part_of)
        parts = of[codes]
        if self.trim or self.fill:
            self._held.append((np.array(rows, dtype=np.float64), parts))
        else:
            self._share_out(rows, parts, self._streams)

    def _share_out(
        self, rows: npt.NDArray[np.number], parts: IntArray, streams: list[MomentStream]
    ) -> None:
        for part in np.unique(parts).tolist():
            while len(streams) <= part:
                streams.append(MomentStream(self.n_features))
            streams[part].add(rows[parts == part])

    def summaries(self) -> tuple[Summary, tuple[Summary, ...]]:
        """Summary of all rows that stay, and of the parts that have some."""
        streams = self._streams
        if self._held:
            streams = list[MomentStream]()
            rows, parts = (np.concatenate(x) for x in zip(*self._held, strict=True))
            if np.isnan(rows).any() and self.fill:
                filling = filled(rows, parts, self.rank or self.n_features)
                self.incomplete = filling.cost
                return filling.whole, filling.parts
            kept = trimmed(rows, self.trim)
            self.left_out = len(rows) - int(np.count_nonzero(kept))
            self._share_out(rows[kept], parts[kept], streams)
        found = tuple(x.summaries()[0] for x in streams if x.n)
        return (reduce(Summary.merge, found), found) if found else super().summaries()
