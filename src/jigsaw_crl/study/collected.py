"""What the rows of a table give: moments of each regime and batch, and what was noticed.

Rows arrive in chunks. What several parts of a table give is merged, so that the parts may be read
at different places.

A table of many columns is read twice. The first read sketches the directions that replace the
columns; the second is that of a table whose features are the directions. Sparse rows stay sparse in
both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from itertools import groupby
from typing import Self

import numpy as np

from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.problems import as_one
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.client.reduction import ColumnSketch
from jigsaw_crl.moments.accumulator import Accumulator
from jigsaw_crl.moments.preparing import RowOptions
from jigsaw_crl.moments.regime import MOST_PARTS, Moments
from jigsaw_crl.study.manifest import Reading
from jigsaw_crl.study.rows import BadRows, RowNumbers, most
from jigsaw_crl.study.table import NUMBER, ON_REQUEST, THEN, Chunk, quoted

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


class Collected:
    """Takes the rows of a table, or of a part of it, chunk by chunk.

    Parameters
    ----------
    features : tuple of str
        Columns of the table.
    reading : Reading
        Its `reduction` has the directions along which rows of a wide table are read.
    first : bool
        All rows are read for the directions only.
    """

    def __init__(self, features: tuple[str, ...], reading: Reading, *, first: bool = False) -> None:
        self.features, self.reading = features, reading
        self.sketch = ColumnSketch(len(features), wanted=reading.n_latent or FEW) if first else None
        self.options = RowOptions(
            reading.trim, reading.missing, "group" in reading.named, "batch" in reading.named
        )
        # Numbers that stand for a missing value.
        self.codes = [float(x) for x in reading.na if NUMBER.fullmatch(x)]
        self.numbers, self.bad = RowNumbers(features), BadRows(features, reading)
        # Regimes that have rows, and those of which all are left out for their values.
        self.regimes, self.gone = dict[str, None](), list[str]()
        # Rows of each regime and batch, and its number; the batch is "" without a batch column.
        self.cell_numbers: dict[tuple[str, str], int] = {}
        self.streams: dict[tuple[str, str], Accumulator] = {}
        # Their moments, and by regime the rows that were trimmed and the groups.
        self.cells: dict[tuple[str, str], Moments] = {}
        self.trimmed, self.groups = Counter[str](), Counter[str]()

    # -- rows arrive --------------------------------------------------------------------------

    def add(self, chunk: Chunk) -> None:
        """Take further rows."""
        if isinstance(chunk.rows, np.ndarray):
            dense = chunk.rows.astype(np.float64, copy=False)
            dense = np.where(np.isin(dense, self.codes), np.nan, dense) if self.codes else dense
            chunk = replace(chunk, rows=dense)
        chunk = self.bad.without(chunk)
        if self.reading.reduction is not None:
            chunk = replace(chunk, rows=self.reading.reduction.project(chunk.rows))
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
        order = np.argsort(narrow, kind="stable")
        numbers = np.empty(len(order), dtype=np.intp)
        for rows in np.split(order, np.flatnonzero(np.diff(narrow[order])) + 1):
            i, j = divmod(int(narrow[rows[0]]), len(batches))
            numbers[rows] = self._take((regimes[i], batches[j]), chunk.select(rows))
        if self.sketch is not None:
            self.sketch.add(chunk.rows, numbers)
        if sum(stream.groups or 0 for stream in self.streams.values()) > MOST_GROUPS:
            raise self.reading.fail(
                f"there are more than {MOST_GROUPS:,} groups",
                "Name the column that holds the group of each row with --group: many rows share "
                "one.",
            )

    def _take(self, cell: tuple[str, str], part: Chunk) -> int:
        """Take rows of one regime and batch, and return its number."""
        if self.reading.reduction is None and isinstance(part.rows, np.ndarray):
            self.numbers.add(cell, part.rows)
        if cell not in self.streams:
            self.regimes[cell[0]] = None
            if len(self.regimes) > MOST_REGIMES:
                raise self.reading.fail(
                    f"the regime column has more than {MOST_REGIMES} different values",
                    "Name the right column with --regime, or merge labels.",
                )
            if len(self.streams) >= MOST_CELLS:
                raise self.reading.fail(
                    f"there are more than {MOST_CELLS} combinations of regime and batch",
                    "Name the right column with --batch, or merge batches.",
                )
            most = MOST_PARTS if cell[0] == self.reading.control else None
            self.streams[cell] = Accumulator(part.rows.shape[1], self.options, most=most)
            self.cell_numbers[cell] = len(self.cell_numbers)
            if self.sketch is not None:
                self.sketch.want(len(self.regimes) - 1)
        if self.sketch is None:
            self.streams[cell].add(part.rows, part.beside.get("group"))
        return self.cell_numbers[cell]

    def finish(self) -> Self:
        """Compute the moments of each regime and batch; no rows can be added afterwards."""
        self.gone = sorted(self.bad.regimes - self.regimes.keys())
        if self.sketch is not None:
            return self
        labels = {self.reading.rename.get(x, x) for x in self.regimes if x != self.reading.control}
        rank = self.reading.n_latent or len(labels)
        for (regime, batch), stream in self.streams.items():
            try:
                self.cells[regime, batch] = stream.moments(rank)
            except InputError as error:
                raise error.located(client=self.reading.client, regime=regime) from None
            self.trimmed[regime] += stream.left_out
            self.groups[regime] += stream.groups or 0
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
        both.regimes = self.regimes | later.regimes
        return both.finish()

    # -- what they gave -----------------------------------------------------------------------

    def used(
        self, varying: BoolArray, ignored: Mapping[str, str]
    ) -> tuple[BoolArray, list[str], Mapping[str, str]]:
        """Which columns are features, names of constant ones, and which are ignored, and why."""
        # A covariate may rise with time.
        covariates = self.reading.covariates
        numbers = {f: why for f, why in self.numbers.found().items() if f not in covariates}
        kept = varying & ~np.isin(self.features, list(numbers))
        if not kept.any():
            raise self.reading.fail("every column is constant", "Check the file.")
        constant = [f for f, keep in zip(self.features, varying, strict=True) if not keep]
        return kept, constant, {**ignored, **numbers}

    def problems(self) -> list[InputError]:
        """What is wrong with single rows; notes or raises what is wrong with the regimes."""
        reading, control, values = self.reading, self.reading.control, [*self.regimes, *self.gone]
        found, fault, folded = self.bad.problems(), None, control.strip().casefold()
        twins = [v for v in values if v.strip().casefold() == folded and v != control]
        strangers = [v for v, x in reading.rename.items() if v not in values and x != control]
        if values and strangers and reading.strict_rename:
            near = did_you_mean(strangers[0], values) or "Check the spelling."
            reading.note(f"there is no regime {strangers[0]!r} to rename", near)
        if not values:
            fault = reading.fail("there are no rows", "Check that the file is complete.")
        elif twins:
            what = f"differs from the control {control!r} only by case or spaces"
            remedy = "Spell the control one way, or name it with --control."
            fault = reading.fail(f"the regime {twins[0]!r} {what}", remedy, twins[0])
        elif control not in values:
            usual = [v for v in values if v.strip().casefold() in USUAL_CONTROLS]
            hint = f"Is it {usual[0]!r}?" if len(usual) == 1 else ""
            fault = reading.fail(
                f"there are no control rows: no regime is {control!r} (found {quoted(values)})",
                "Name the value of observational rows with --control. "
                f"{did_you_mean(control, values) or hint}".strip(),
            )
        elif control not in self.regimes and not found:
            fault = reading.fail(
                "every control row has a missing value, so none is left "
                f"({most(self.bad.faults['dropped'].columns)})",
                "Leave such columns out with --ignore (in Python ignore=[…]) instead.",
                control,
            )
        if fault is not None or control not in self.regimes:
            raise as_one([*found, *([] if fault is None else [fault])])
        return found

    def moments(self) -> tuple[Moments, dict[str, list[Moments]]]:
        """Moments of the control and of every label."""
        labels, control = dict[str, list[Moments]](), self.reading.control
        # Sorted, so that the order of rows in a file does not matter.
        for regime, cells in groupby(sorted(self.cells), key=lambda cell: cell[0]):
            own = {batch: self.cells[regime, batch] for _, batch in cells}
            label = regime if regime == control else self.reading.rename.get(regime, regime)
            whole = Moments.of_batches(own) if self.options.batched else own[""]
            labels.setdefault(label, []).append(whole)
        (found,) = labels.pop(control)
        return found, labels

    def findings(self, ignored: Mapping[str, str]) -> list[Finding]:
        """Findings about columns that are no features, and rows that are left out or grouped."""
        reading, found, who = self.reading, list[Finding](), self.reading.client
        for column, why in ignored.items():
            if why != ON_REQUEST:
                what = f"the column {column!r} is {why}, so it is not used as a feature"
                then = THEN.get(why, "encode it as numbers")
                remedy = f"Nothing to do, unless it is a measurement; then {then}."
                found.append(Finding("ignored-column", "info", what, remedy, client=who))
        dropped = self.bad.faults.get("dropped")
        for check, what, counts in (
            ("incomplete-rows", "left out {0} with missing values", dropped and dropped.regimes),
            ("trimmed-rows", "left out {0} that lie farthest out", self.trimmed),
            ("grouped-rows", "rows are taken in groups by {1!r}", self.groups),
        ):
            if counts and counts.total():
                ordered = sorted(counts, key=lambda x: (x != reading.control, x))
                each = few(f"{counts[x]:,} of {x!r}" for x in ordered if counts[x])
                rows, group = pluralise(counts.total(), "row"), reading.named.get("group")
                message = f"{what.format(rows, group)}: {each}"
                remedy = "Nothing to do: this was asked for."
                found.append(Finding(check, "info", message, remedy, client=who))
        return found
