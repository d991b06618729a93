"""The moments of one regime, from rows that arrive in chunks, in one pass and constant memory.

Rows are summed in blocks whose size depends only on the number of features, so the result does not
depend on how the rows were cut into chunks: a CSV file, a Parquet file and an array with the same
rows give the same moments to the last bit. All rows are taken relative to a typical first one, so
a mean far from zero costs no precision.

The moments of consecutive stretches of the rows are kept, a few of about equal length: neighbours
are merged as rows arrive. Rows may also come in groups (a subject, a run), whose rows are alike.
Then sets of whole groups take the place of stretches: how much they differ shows how much the
moments vary with the groups that happened to be taken. Groups are dealt to the sets in turn, in the
order in which they first occur.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import ArrayLike, FloatArray, IntArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.moments.checks import check_values
from jigsaw_crl.moments.incomplete import filled
from jigsaw_crl.moments.lattice import steps_of
from jigsaw_crl.moments.preparing import RowOptions, inner_rows
from jigsaw_crl.moments.regime import MOST_PARTS, Moments, coarsened, together

# Names of groups, and the code of each row: row i is in the group `names[codes[i]]`.
Coded = tuple[Sequence[str], npt.NDArray[np.integer]]
# A block of 2**17 numbers (1 MB) stays in a core's cache. Of many features a block has as many rows
# as features, so that updating the d-by-d sums never costs more than the product.
_BLOCK_VALUES, MOST_BLOCK_ROWS = 1 << 17, 8192
# Shorter stretches say next to nothing.
FEWEST_STRETCH_ROWS = 16
# Of many features, fewer parts are kept where only their spread is asked for, because many entries
# of few matrices show it as well.
_PART_VALUES = MOST_PARTS * 128**2


class Accumulator:
    """Collects the rows of one regime; `moments` can be asked at any time.

    Moments of several accumulators are merged by `Moments.merge`, those of batches by
    `Moments.of_batches`. If rows are trimmed or have missing values to be filled in, all rows are
    held in memory. Other missing, infinite and too large values raise an `InputError`; afterwards
    the accumulator cannot be used.

    Parameters
    ----------
    n_features : int
    options : RowOptions
    most : int, optional
        Parts that are kept. Those of the control, all eight, show whether it drifts; by default
        fewer are kept of many features.

    Examples
    --------
    >>> import numpy as np
    >>> from jigsaw_crl.moments.accumulator import Accumulator
    >>> from jigsaw_crl.moments.preparing import RowOptions
    >>> rows = Accumulator(1, RowOptions(grouped=True))
    >>> rows.add(np.array([[0.0], [1.0], [2.0]]), (["a", "b"], np.array([0, 1, 0])))
    >>> m = rows.moments()
    >>> m.groups, m.mean.tolist(), [part.mean.tolist() for part in m.parts]
    (2, [1.0], [[1.0], [1.0]])
    """

    def __init__(
        self, n_features: int, options: RowOptions | None = None, *, most: int | None = None
    ) -> None:
        self.n_features, self.options, self.n = n_features, options or RowOptions(), 0
        self.most = most or min(max(_PART_VALUES // max(n_features, 1) ** 2, 2), MOST_PARTS)
        # Rows that were left out because they lie farthest out.
        self.left_out = 0
        # Number of groups, None if rows do not come in groups; the set of each, and its rows.
        self.groups = 0 if self.options.grouped else None
        self._set_of: dict[str, int] = {}
        self._sets: dict[int, Accumulator] = {}
        # Rows that are held, and their sets.
        self._held: list[tuple[FloatArray, IntArray]] = []
        # Number of rows in a block.
        self.block = max(min(MOST_BLOCK_ROWS, _BLOCK_VALUES // max(n_features, 1)), n_features)
        # Rows that do not fill a block yet, and moments of the stretches so far, less the origin.
        self._waiting: list[FloatArray] = []
        self._stretches: tuple[Moments, ...] = ()
        self._origin: FloatArray | None = None
        self._step: FloatArray | None = None

    def add(self, rows: ArrayLike, groups: Coded | None = None) -> None:
        """Add rows, shape (any, n_features), and their groups; sums are in float64."""
        x = np.asarray(rows)
        if x.ndim != 2 or x.shape[1] != self.n_features:
            raise InputError(
                f"rows of shape {x.shape} where there are {self.n_features} features",
                "Pass matrices with one column per feature.",
            )
        sets = np.zeros(len(x), dtype=np.intp)
        if self.options.grouped:
            names, codes = groups or ([""], sets)
            found, first = np.unique(codes, return_index=True)
            of = np.zeros(len(names), dtype=np.intp)
            for code in found[np.argsort(first)].tolist():
                of[code] = self._set_of.setdefault(names[code], len(self._set_of) % self.most)
            sets, self.groups = of[codes], len(self._set_of)
        if self.options.trim or self.options.missing == "em":
            self._held.append((np.array(x, dtype=np.float64), sets))
            return
        for one in np.unique(sets).tolist() if self.options.grouped else ():
            own = self._sets.setdefault(one, Accumulator(self.n_features, most=1))
            own.add(x[sets == one])
        start = len(x) if self.options.grouped else 0
        while start < len(x):
            taken = x[start : start + self.block - self.n % self.block]
            start, self.n = start + len(taken), self.n + len(taken)
            self._waiting.append(np.array(taken, dtype=np.float64, order="C"))
            if self.n % self.block == 0:
                self._sum()

    def _sum(self) -> None:
        """Sum the rows that wait, in stretches about as long as those before."""
        rows = np.concatenate(self._waiting)
        check_values(rows)
        if self._origin is None:
            # The median of three rows: two of them lie within √n deviations of the mean.
            self._origin = np.median(rows[[0, len(rows) // 2, -1]], axis=0)
            self._step = steps_of(rows)
        fitting = min(self.most * len(rows) // self.n, len(rows) // FEWEST_STRETCH_ROWS)
        stretches = list(self._stretches)
        for x in np.array_split(rows - self._origin, max(fitting, 1)):
            # A product with ones is faster than a sum, and loses fewer digits.
            n, ones = len(x), np.ones(len(x))
            mean = ones @ x / n
            x = x - mean
            mean += ones @ x / n  # what rounding left
            squares = x * x
            third, fourth = ones @ (squares * x) / n, ones @ (squares * squares) / n
            stretches.append(Moments(n, mean, x.T @ x / n, third, fourth))
        self._waiting = []
        self._stretches = coarsened(stretches, self.most)

    def moments(self, rank: int | None = None) -> Moments:
        """Moments of the rows so far, with those of their parts; more rows can be added.

        Parameters
        ----------
        rank : int, optional
            Number of latents, if known: what missing values cost is that of so many directions.
        """
        if self._held:
            rows, sets = (np.concatenate(x) for x in zip(*self._held, strict=True))
            if self.options.missing == "em" and np.isnan(rows).any():
                if not self.options.grouped:
                    n = len(rows)
                    sets = np.arange(n) * max(min(self.most, n // FEWEST_STRETCH_ROWS), 1) // n
                return replace(filled(rows, sets, rank or self.n_features), groups=self.groups)
            kept = inner_rows(rows, self.options.trim)
            self.left_out = len(rows) - int(np.count_nonzero(kept))
            # Each set is a group of its own: there are as many as parts.
            summed = RowOptions(grouped=self.options.grouped)
            plain = Accumulator(self.n_features, summed, most=self.most)
            plain.add(rows[kept], (list(map(str, range(self.most))), sets[kept]))
            return replace(plain.moments(), groups=self.groups, trimmed=self.left_out > 0)
        if self._sets:
            own = [self._sets[k].moments() for k in sorted(self._sets)]
            return replace(together(own), parts=tuple(own), groups=self.groups)
        if self.n == 0:
            raise InputError("there are no rows", "Add rows before asking for their moments.")
        twin = copy(self)
        if self._waiting:
            twin._sum()
        assert twin._origin is not None
        whole, *parts = (
            replace(m, mean=m.mean + twin._origin)
            for m in (together(twin._stretches), *twin._stretches)
        )
        return replace(whole, parts=tuple(parts) if self.most > 1 else (), step=twin._step)
