"""The moments of one regime, from rows that arrive in chunks and with what a user asks of them.

Rows may come in groups (a subject, a run), whose rows are alike. The parts of a regime are then
sets of whole groups instead of consecutive stretches of rows: how much they differ shows how much
the moments vary with the groups that happened to be taken. Groups are dealt to the parts in turn,
in the order in which they first occur.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import ArrayLike, FloatArray, IntArray
from jigsaw_crl.moments.incomplete import filled
from jigsaw_crl.moments.regime import MOST_PARTS, Moments
from jigsaw_crl.moments.row_options import RowOptions
from jigsaw_crl.moments.sums import FEWEST_STRETCH_ROWS, Sums, few_parts
from jigsaw_crl.moments.trimming import inner_rows

__all__ = ["Accumulator", "Coded"]

# Names of groups, and the code of each row: row i is in the group `names[codes[i]]`.
Coded = tuple[Sequence[str], npt.NDArray[np.integer]]


class Accumulator:
    """Collects the rows of one regime; `moments` can be asked at any time.

    Moments of several accumulators are merged by `Moments.merge`, those of batches by
    `Moments.of_batches`. If rows are trimmed or have missing values to be filled in, all rows are
    held in memory.

    Parameters
    ----------
    n_features : int
    options : RowOptions
    control : bool
        The rows are the control's, which keeps more parts: they show whether it drifts.

    Examples
    --------
    >>> import numpy as np
    >>> from jigsaw_crl.moments.accumulator import Accumulator
    >>> from jigsaw_crl.moments.row_options import RowOptions
    >>> rows = Accumulator(1, RowOptions(grouped=True))
    >>> rows.add(np.array([[0.0], [1.0], [2.0]]), (["a", "b"], np.array([0, 1, 0])))
    >>> m = rows.moments()
    >>> m.groups, m.mean.tolist(), [part.mean.tolist() for part in m.parts]
    (2, [1.0], [[1.0], [1.0]])
    """

    def __init__(
        self, n_features: int, options: RowOptions | None = None, *, control: bool = False
    ) -> None:
        self.n_features, self.options = n_features, options or RowOptions()
        self.parts = MOST_PARTS if control else few_parts(n_features)
        # Rows that were left out because they lie farthest out.
        self.left_out = 0
        self._part_of: dict[str, int] = {}
        self._sums = self._new_sums()
        self._held: list[tuple[FloatArray, IntArray]] = []

    def _new_sums(self) -> list[Sums]:
        """One for all rows, in stretches; or one for each set of groups."""
        if self.options.grouped:
            return [Sums(self.n_features) for _ in range(self.parts)]
        return [Sums(self.n_features, self.parts)]

    @property
    def groups(self) -> int | None:
        """Number of groups so far; None if rows do not come in groups."""
        return len(self._part_of) if self.options.grouped else None

    def add(self, rows: ArrayLike, groups: Coded | None = None) -> None:
        """Add rows, shape (any, n_features), and their groups."""
        x = np.asarray(rows)
        sets = np.zeros(len(x), dtype=np.intp)
        if self.options.grouped:
            names, codes = groups or ([""], sets)
            found, first = np.unique(codes, return_index=True)
            of = np.zeros(len(names), dtype=np.intp)
            for code in found[np.argsort(first)].tolist():
                of[code] = self._part_of.setdefault(names[code], len(self._part_of) % self.parts)
            sets = of[codes]
        if self.options.holds:
            self._held.append((np.array(x, dtype=np.float64), sets))
        else:
            _share_out(x, sets, self._sums)

    def moments(self, rank: int | None = None) -> Moments:
        """Moments of the rows so far; more can be added.

        Parameters
        ----------
        rank : int, optional
            Number of latents, if known: what missing values cost is that of so many directions.
        """
        sums = self._sums
        if self._held:
            rows, sets = (np.concatenate(x) for x in zip(*self._held, strict=True))
            if self.options.missing == "em" and np.isnan(rows).any():
                if not self.options.grouped:
                    n = len(rows)
                    sets = np.arange(n) * max(min(self.parts, n // FEWEST_STRETCH_ROWS), 1) // n
                found = filled(rows, sets, rank or self.n_features)
                return replace(found, groups=self.groups)
            kept = inner_rows(rows, self.options.trim)
            self.left_out = len(rows) - int(np.count_nonzero(kept))
            sums = self._new_sums()
            _share_out(rows[kept], sets[kept], sums)
        if self.options.grouped and any(x.n for x in sums):
            parts = tuple(x.moments() for x in sums if x.n)
            found = replace(reduce(Moments.merge, parts), parts=parts)
        else:
            found = sums[0].moments()
        return replace(found, groups=self.groups, trimmed=self.left_out > 0)


def _share_out(rows: npt.NDArray[np.generic], sets: IntArray, sums: Sequence[Sums]) -> None:
    """Add rows to the sums of their sets."""
    if len(sums) == 1:
        sums[0].add(rows)
        return
    for one in np.unique(sets).tolist():
        sums[one].add(rows[sets == one])
