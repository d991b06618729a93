"""Which columns are a time or a row number: those that rise from row to row in every regime.

Rows are draws of one distribution per regime, in any order. A measurement of n rows rises from each
row to the next with probability 1/n!, so a column that does so throughout is no measurement; used
as a feature, it would have more variance than all others.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray

__all__ = ["RowOrder"]

# Rises that a column needs in some regime: by chance, one column in 10! (3.6 million) has them.
FEWEST_RISES = 10


class RowOrder:
    """Looks for columns that never fall within a regime, chunk by chunk.

    Parameters
    ----------
    n_features : int

    Examples
    --------
    >>> import numpy as np
    >>> from jigsaw_crl.study.row_order import RowOrder
    >>> order = RowOrder(2)
    >>> order.add("control", np.column_stack([np.sin(np.arange(40)), np.arange(40)]))
    >>> order.rising
    array([False,  True])
    """

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features
        # Columns that have not fallen so far, and the most rises of each in one regime.
        self.left = np.arange(n_features)
        self.rises = np.zeros(n_features, dtype=np.int64)
        self.first: dict[Hashable, npt.NDArray[np.number]] = {}
        self.last: dict[Hashable, npt.NDArray[np.number]] = {}
        self.of_regime: dict[Hashable, npt.NDArray[np.int64]] = {}

    def add(self, regime: Hashable, rows: npt.NDArray[np.number]) -> None:
        """Look at further rows of a regime (or of a batch of it), in the order of the file."""
        if not len(self.left):
            return
        # Most columns fall within a few rows.
        self._keep(_never_falls(rows[:16, self.left]))
        own = rows[:, self.left]
        if regime in self.last:
            own = np.vstack([self.last[regime][self.left], own])
        self._keep(falls_nowhere := _never_falls(own))
        own = own[:, falls_nowhere]
        counts = self.of_regime.setdefault(regime, np.zeros(self.n_features, dtype=np.int64))
        counts[self.left] += np.count_nonzero(np.diff(own, axis=0) > 0, axis=0)
        np.maximum(self.rises, counts, out=self.rises)
        self.first.setdefault(regime, rows[0].copy())
        self.last[regime] = rows[-1].copy()

    def merge(self, later: RowOrder) -> RowOrder:
        """With the rows that `later` has seen, which come after these."""
        both = RowOrder(self.n_features)
        both.left = np.intersect1d(self.left, later.left)
        both.first = {**later.first, **self.first}
        both.last = {**self.last, **later.last}
        both.of_regime = {**self.of_regime, **later.of_regime}
        for regime in self.last.keys() & later.first.keys():
            before, after = self.last[regime], later.first[regime]
            both._keep(before[both.left] <= after[both.left])
            both.of_regime[regime] = self.of_regime[regime] + later.of_regime[regime]
            both.of_regime[regime] += before < after
        both.rises = np.max([both.rises, *both.of_regime.values()], axis=0)
        return both

    @property
    def rising(self) -> BoolArray:
        """Columns that rise from row to row in every regime."""
        found = np.zeros(self.n_features, dtype=np.bool_)
        found[self.left] = self.rises[self.left] >= FEWEST_RISES
        return found

    def _keep(self, these: BoolArray) -> None:
        self.left = self.left[these]


def _never_falls(rows: npt.NDArray[Any]) -> BoolArray:
    return np.asarray((np.diff(rows, axis=0) >= 0).all(axis=0), dtype=np.bool_)
