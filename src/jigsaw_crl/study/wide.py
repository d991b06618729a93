"""Tables of many columns: the first of two reads finds the directions that replace the columns.

The second read then is that of a table whose features are the directions. Sparse rows stay sparse
in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.client.reduction import (
    BLOCK_ROWS,
    WIDE,
    ColumnSketch,
    Reduction,
    reduce_columns,
)
from jigsaw_crl.study.source import Reading

__all__ = ["Along", "FirstRead", "is_wide"]

# Latents that are expected before the regimes are known.
FEW = 16


def is_wide(n_columns: int, reading: Reading) -> bool:
    """Is a table reduced? Filling in missing values and covariates need all columns."""
    return n_columns >= WIDE and reading.missing != "em" and not reading.covariates


class FirstRead:
    """Collects the sketch of a table, of rows that come regime by regime."""

    def __init__(self, columns: tuple[str, ...], reading: Reading) -> None:
        self._columns, self._reading, n_latent = columns, reading, reading.n_latent
        self._sketch = ColumnSketch(
            len(columns), wanted=FEW if n_latent is None else n_latent, grows=n_latent is None
        )
        # The number of each regime and batch, in the order in which they occur.
        self._cells: dict[tuple[str, str], int] = {}
        self._waiting: list[tuple[Any, int]] = []
        self._n = 0

    def take(self, cell: tuple[str, str], rows: Any) -> None:
        """Keep rows of one regime and batch until there are enough for fast products."""
        if cell not in self._cells:
            self._cells[cell] = len(self._cells)
            self._sketch.want(len({regime for regime, _ in self._cells}) - 1)
        self._waiting.append((rows, self._cells[cell]))
        self._n += rows.shape[0]
        if self._n >= BLOCK_ROWS:
            self._empty()

    def _empty(self) -> None:
        if not self._waiting:
            return
        rows = [rows for rows, _ in self._waiting]
        cells = np.repeat([cell for _, cell in self._waiting], [x.shape[0] for x in rows])
        self._waiting, self._n = [], 0
        self._sketch.add(_stacked(rows), cells)

    def constant(self) -> BoolArray:
        """Columns with one value in all rows."""
        self._empty()
        return self._sketch.constant()

    def reduction(self, kept: BoolArray) -> Reduction:
        """The directions of the columns that are kept."""
        self._empty()
        control, rename = self._reading.control, self._reading.rename
        return reduce_columns(
            self._sketch,
            self._columns,
            labels=len({rename.get(x, x) for x, _ in self._cells} - {control}),
            n_latent=self._reading.n_latent,
            control=[i for (regime, _), i in self._cells.items() if regime == control],
            kept=kept,
        )


def _stacked(rows: list[Any]) -> Any:
    if len(rows) == 1:
        return rows[0]
    if not hasattr(rows[0], "toarray"):
        # One order in memory, whatever that of the pieces: products round differently in another.
        whole = np.empty((sum(map(len, rows)), rows[0].shape[1]), np.result_type(*rows))
        return np.concatenate(rows, out=whole)
    # Imported here for start-up time.
    from scipy.sparse import vstack

    return vstack(rows, format="csr")


@dataclass(frozen=True, eq=False)
class Along:
    """How the rows of a wide table are read along the directions that replace its columns.

    `reduction` holds the directions of all columns, `own` those of the columns in use. Others are
    `ignored`, for the reason given, or `constant`.
    """

    reduction: Reduction
    own: Reduction
    ignored: Mapping[str, str]
    constant: list[str] = field(default_factory=list)
