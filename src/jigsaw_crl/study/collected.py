"""What the rows of a table give: moments of each regime and batch, and what was noticed.

Rows arrive in chunks. What several parts of a table give is merged, so that the parts may be read
at different places.

A table of many columns is read twice. The first read finds the directions that replace the columns
(`FirstRead`); the second is that of a table whose features are the directions (`Along`). Sparse
rows stay sparse in both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.client.reduction import (
    BLOCK_ROWS,
    ColumnSketch,
    Reduction,
    reduce_columns,
)
from jigsaw_crl.moments.accumulator import Accumulator
from jigsaw_crl.moments.regime import Moments
from jigsaw_crl.study.manifest import Reading
from jigsaw_crl.study.problems import raise_all
from jigsaw_crl.study.rows import BadRows, RowNumbers, ignoring, most
from jigsaw_crl.study.table import Chunk, is_sparse, quoted

# A column with more values than a fragment may have labels is probably not the regime column.
MOST_REGIMES = 5_000
# Each regime has its own sums in each batch, of up to a few MB.
MOST_CELLS = 20_000
# The part of each group is kept, some hundred bytes.
MOST_GROUPS = 500_000
# Incomplete rows are held in memory, 8 bytes a value.
MOST_HELD = 200_000_000
# Latents that are expected before the regimes are known.
FEW = 16
# Common names of the control, used only for suggestions.
USUAL_CONTROLS = (
    "baseline", "ctrl", "dmso", "mock", "nominal", "none", "non-targeting", "nontargeting",
    "normal", "obs", "observational", "reference", "untreated", "vehicle", "wildtype", "wt",
)  # fmt: skip


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


class FirstRead:
    """Collects the sketch of a table, of rows that come regime by regime."""

    def __init__(self, columns: tuple[str, ...], reading: Reading) -> None:
        self._columns, self._reading, n_latent = columns, reading, reading.n_latent
        self._sketch = ColumnSketch(len(columns), wanted=FEW if n_latent is None else n_latent)
        # The number of each regime and batch, in the order in which they occur.
        self._cells: dict[tuple[str, str], int] = {}
        self._waiting: list[tuple[Any, int]] = []

    def take(self, cell: tuple[str, str], rows: Any) -> None:
        """Keep rows of one regime and batch until there are enough for fast products."""
        if cell not in self._cells:
            self._cells[cell] = len(self._cells)
            self._sketch.want(len({regime for regime, _ in self._cells}) - 1)
        self._waiting.append((rows, self._cells[cell]))
        if sum(rows.shape[0] for rows, _ in self._waiting) >= BLOCK_ROWS:
            self._empty()

    def _empty(self) -> None:
        if not self._waiting:
            return
        rows, cells = zip(*self._waiting, strict=True)
        self._waiting, sizes = [], [x.shape[0] for x in rows]
        if not is_sparse(rows[0]):
            # One order in memory, whatever that of the pieces: products round differently.
            whole = np.empty((sum(sizes), rows[0].shape[1]), np.result_type(*rows))
            stacked: Any = np.concatenate(rows, out=whole)
        else:
            from scipy.sparse import vstack  # here for start-up time

            stacked = vstack(rows, format="csr")
        self._sketch.add(stacked, np.repeat(cells, sizes))

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


class Collected:
    """Takes the rows of a table, or of a part of it, chunk by chunk.

    Parameters
    ----------
    features : tuple of str
        Columns of the table.
    reading : Reading
    along : Along, optional
        Directions along which rows of a wide table are read.
    first : FirstRead, optional
        Takes all rows instead: they are read for directions only.
    """

    def __init__(
        self,
        features: tuple[str, ...],
        reading: Reading,
        *,
        along: Along | None = None,
        first: FirstRead | None = None,
    ) -> None:
        self.features, self.reading, self.along, self.first = features, reading, along, first
        self.numbers, self.bad = RowNumbers(features), BadRows(features, reading)
        # Rows of each regime and batch; the batch is "" without a batch column.
        self.streams: dict[tuple[str, str], Accumulator] = {}
        # Their moments, and by regime the rows that were trimmed and the groups.
        self.cells: dict[tuple[str, str], Moments] = {}
        self.trimmed, self.groups = Counter[str](), Counter[str]()

    # -- rows arrive --------------------------------------------------------------------------

    def add(self, chunk: Chunk) -> None:
        """Take further rows."""
        chunk = self.bad.without(chunk)
        if self.along is not None:
            chunk = replace(chunk, rows=self.along.reduction.project(chunk.rows))
        if not chunk.rows.shape[0]:
            return
        if self.reading.missing == "em" and self.bad.n_rows * len(self.features) > MOST_HELD:
            raise self.reading.fail(
                f"the table has more than {MOST_HELD:,} values, too many to be held for EM",
                "Leave incomplete rows out with --drop-missing, or read fewer rows.",
            )
        names, codes = chunk.beside["regime"]
        control, rename = self.reading.control, self.reading.rename
        # Another spelling of the control is the control; labels are renamed later, as strengths.
        regimes = [control if rename.get(x) == control else x for x in names]
        batches, of_batch = chunk.beside.get("batch", ([""], np.zeros(len(codes), np.int64)))
        codes = codes.astype(np.int64) * len(batches) + of_batch
        # numpy sorts integers of 16 bits or less by counting, which is fast.
        narrow = codes.astype(np.min_scalar_type(int(codes.max())))
        sizes = np.bincount(narrow)
        if len(found := np.flatnonzero(sizes)) > 1:
            chunk = chunk.select(np.argsort(narrow, kind="stable"))
        start = 0
        for code in found.tolist():
            i, j = divmod(code, len(batches))
            part = chunk.select(slice(start, start + sizes[code]))
            start += sizes[code]
            self._take((regimes[i], batches[j]), part)

    def _take(self, cell: tuple[str, str], part: Chunk) -> None:
        """Take rows of one regime and batch."""
        if self.along is None and not is_sparse(part.rows):
            self.numbers.add(cell, part.rows)
        if cell not in self.streams:
            self._check_new(*cell)
            is_control, width = cell[0] == self.reading.control, part.rows.shape[1]
            self.streams[cell] = Accumulator(width, self.reading.asked, control=is_control)
        if self.first is not None:
            self.first.take(cell, part.rows)
            return
        stream, groups = self.streams[cell], part.beside.get("group")
        before = stream.groups or 0
        stream.add(part.rows, groups)
        if groups is None:
            return
        self.groups[cell[0]] += (stream.groups or 0) - before
        if not all(map(str.strip, groups[0])):
            raise self.reading.fail("a row has an empty group", "Give every row its group.")
        if self.groups.total() > MOST_GROUPS:
            raise self.reading.fail(
                f"there are more than {MOST_GROUPS:,} groups",
                "Name the column that holds the group of each row with --group: many rows share "
                "one.",
            )

    def _check_new(self, regime: str, batch: str) -> None:
        fail = self.reading.fail
        if not regime.strip():
            raise fail("a row has an empty regime", "Give every row its regime.")
        if self.reading.batch and not batch.strip():
            raise fail("a row has an empty batch", "Give every row its batch.", regime)
        if len(self.streams) >= MOST_REGIMES and len({*self.regimes, regime}) > MOST_REGIMES:
            raise fail(
                f"the regime column has more than {MOST_REGIMES} different values",
                "Name the right column with --regime, or merge labels.",
            )
        if len(self.streams) >= MOST_CELLS:
            raise fail(
                f"there are more than {MOST_CELLS} combinations of regime and batch",
                "Name the right column with --batch, or merge batches.",
            )

    def finish(self) -> Self:
        """Compute the moments of each regime and batch; no rows can be added afterwards."""
        if self.first is not None:
            return self
        labels = {self.reading.rename.get(x, x) for x in self.regimes if x != self.reading.control}
        rank = self.reading.n_latent or len(labels)
        for (regime, batch), stream in self.streams.items():
            try:
                self.cells[regime, batch] = stream.moments(rank)
            except InputError as error:
                client, path = self.reading.client, self.reading.path
                raise error.located(client=client, regime=regime, path=path) from None
            self.trimmed[regime] += stream.left_out
        self.streams = {}
        return self

    def merge(self, later: Self) -> Self:
        """Both, of two finished parts of the same table; the rows of `later` come after these."""
        both = copy(self)
        both.cells = {**self.cells, **later.cells}
        for cell in self.cells.keys() & later.cells.keys():
            both.cells[cell] = self.cells[cell].merge(later.cells[cell])
        both.numbers, both.bad = self.numbers.merge(later.numbers), self.bad.merge(later.bad)
        both.trimmed, both.groups = self.trimmed + later.trimmed, self.groups + later.groups
        return both

    # -- what they gave -----------------------------------------------------------------------

    @property
    def regimes(self) -> list[str]:
        """Values of the regime column that have rows."""
        return list(dict.fromkeys(regime for regime, _ in (*self.streams, *self.cells)))

    def gone(self) -> list[str]:
        """Regimes whose rows are all left out for their values."""
        return sorted(self.bad.regimes - set(self.regimes))

    def used(
        self, varying: BoolArray, ignored: Mapping[str, str]
    ) -> tuple[BoolArray, list[str], Mapping[str, str]]:
        """Which columns are features, names of constant ones, and which are ignored, and why."""
        # A covariate may rise with time.
        covariates = self.reading.covariates
        numbers = {f: why for f, why in self.numbers.found().items() if f not in covariates}
        kept = varying & ~np.isin(self.features, list(numbers))
        if not kept.any():
            raise self.reading.fail(
                "every column is constant", "Check the file: it has no variation."
            )
        constant = [f for f, keep in zip(self.features, varying, strict=True) if not keep]
        return kept, constant, {**ignored, **numbers}

    def problems(self) -> list[InputError]:
        """What is wrong with single rows; notes or raises what is wrong with the regimes."""
        found, reading, values = self.bad.problems(), self.reading, [*self.regimes, *self.gone()]
        control, fault = reading.control, None
        folded = control.strip().casefold()
        twins = [v for v in values if v.strip().casefold() == folded and v != control]
        strangers = [v for v, x in reading.rename.items() if v not in values and x != control]
        if not values:
            fault = reading.fail("there are no rows", "Check that the file is complete.")
        elif strangers and reading.strict_rename:
            near = did_you_mean(strangers[0], values) or "Check the spelling."
            reading.note(f"there is no regime {strangers[0]!r} to rename", near)
        if twins:
            what = f"differs from the control {control!r} only by case or spaces"
            remedy = "Spell the control one way, or name it with --control."
            fault = reading.fail(f"the regime {twins[0]!r} {what}", remedy, twins[0])
        elif values and control not in values:
            usual = [v for v in values if v.strip().casefold() in USUAL_CONTROLS]
            hint = f"Is it {usual[0]!r}?" if len(usual) == 1 else ""
            fault = reading.fail(
                f"there are no control rows: no regime is {control!r} (found {quoted(values)})",
                "Name the value of observational rows with --control. "
                f"{did_you_mean(control, values) or hint}".strip(),
            )
        if fault is not None:
            raise_all([*found, fault])
        return found

    def check_control(self) -> None:
        """Raise an `InputError` if no row of the control is left."""
        control, dropped = self.reading.control, self.bad.dropped
        if control not in self.regimes:
            raise self.reading.fail(
                "every control row has a missing value, so none is left "
                f"({most(dropped.columns) if dropped else ''})",
                f"Leave such columns out with {ignoring(self.reading.path)} instead.",
                control,
            )

    def moments(self) -> tuple[Moments, dict[str, list[Moments]]]:
        """Moments of the control and of every label."""
        self.check_control()
        regimes: dict[str, dict[str, Moments]] = {}
        # Sorted, so that the order of rows in a file does not matter.
        for (regime, batch), moments in sorted(self.cells.items(), key=lambda item: item[0]):
            regimes.setdefault(regime, {})[batch] = moments
        found = {
            regime: Moments.of_batches(own) if self.reading.batch else own[""]
            for regime, own in regimes.items()
        }
        control, labels = found.pop(self.reading.control), dict[str, list[Moments]]()
        for regime, whole in found.items():
            labels.setdefault(self.reading.rename.get(regime, regime), []).append(whole)
        return control, labels

    def findings(self) -> list[Finding]:
        """Findings about the rows that were left out, or grouped on request."""
        reading, said = self.reading, list[tuple[str, str]]()

        def each(counts: Counter[str]) -> str:
            ordered = sorted(counts.items(), key=lambda item: (item[0] != reading.control, item[0]))
            return few(f"{count:,} of {regime!r}" for regime, count in ordered if count)

        dropped = Counter[str]() if self.bad.dropped is None else self.bad.dropped.regimes
        for check, what, counts in (
            ("incomplete-rows", "with missing values", dropped),
            ("trimmed-rows", "that lie farthest out", self.trimmed),
        ):
            if counts.total():
                rows = pluralise(counts.total(), "row")
                said.append((check, f"left out {rows} {what}: {each(counts)}"))
        if reading.group:
            by = f"rows are taken in groups by {reading.group!r}: {each(self.groups)}"
            said.append(("grouped-rows", by))
        remedy = "Nothing to do: this was asked for."
        return [Finding(c, "info", what, remedy, client=reading.client) for c, what in said]
