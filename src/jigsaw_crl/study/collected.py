"""What the rows of a table give: moments of each regime and batch, and what was noticed.

Rows arrive in chunks. What several parts of a table give is merged, so that the parts may be read
at different places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Self

import numpy as np

from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.labels import label_key, normal_label
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.moments.accumulator import Accumulator
from jigsaw_crl.moments.checks import varies
from jigsaw_crl.moments.regime import Moments
from jigsaw_crl.study.bad_rows import BadRows, ignoring
from jigsaw_crl.study.columns import RISING, quoted
from jigsaw_crl.study.problems import Problems
from jigsaw_crl.study.row_order import RowOrder
from jigsaw_crl.study.source import Chunk, Reading, is_sparse
from jigsaw_crl.study.wide import Along, FirstRead

__all__ = ["Collected", "large_enough"]

# A column with more values than a fragment may have labels is probably not the regime column.
MOST_REGIMES = 5_000
# Each regime has its own sums in each batch, of up to a few MB.
MOST_CELLS = 20_000
# The part of each group is kept, some hundred bytes.
MOST_GROUPS = 500_000
# Incomplete rows are held in memory, 8 bytes a value.
MOST_HELD = 200_000_000
# A covariance needs two rows.
FEWEST_ROWS = 2
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
        self.width = len(features) if along is None else len(along.own.features)
        self.order = RowOrder(self.width)
        self.bad = BadRows(features, reading)
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
        self._check_held()
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

    def _check_held(self) -> None:
        if self.reading.missing == "em" and self.bad.n_rows * len(self.features) > MOST_HELD:
            raise self.reading.fail(
                f"the table has more than {MOST_HELD:,} values, too many to be held for EM",
                "Leave incomplete rows out with --drop-missing, or read fewer rows.",
            )

    def _take(self, cell: tuple[str, str], part: Chunk) -> None:
        """Take rows of one regime and batch."""
        if not is_sparse(part.rows):
            self.order.add(cell, part.rows)
        if cell not in self.streams:
            self._check_new(*cell)
            is_control = cell[0] == self.reading.control
            self.streams[cell] = Accumulator(self.width, self.reading.asked, control=is_control)
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
        if self.reading.batch is not None and not batch.strip():
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
        both.order, both.bad = self.order.merge(later.order), self.bad.merge(later.bad)
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
        rising = self.order.rising & ~np.isin(self.features, self.reading.covariates)
        kept = varying & ~rising
        if not kept.any():
            raise self.reading.fail(
                "every column is constant", "Check the file: it has no variation."
            )
        constant = [f for f, keep in zip(self.features, varying, strict=True) if not keep]
        times = {f: RISING for f, is_time in zip(self.features, rising, strict=True) if is_time}
        return kept, constant, {**ignored, **times}

    def check_regimes(self) -> None:
        """Raise an `InputError` for what is wrong with the values of the regime column."""
        fail, reading, values = self.reading.fail, self.reading, [*self.regimes, *self.gone()]
        if not values:
            raise fail("there are no rows", "Check that the file is complete.")
        problems, control = Problems(), reading.control
        folded = control.strip().casefold()
        twins = [v for v in values if v.strip().casefold() == folded and v != control]
        if twins:
            what = f"differs from the control {control!r} only by case or spaces"
            remedy = "Spell the control one way, or name it with --control."
            problems.note(fail(f"the regime {twins[0]!r} {what}", remedy, twins[0]))
        elif control not in values:
            usual = [v for v in values if v.strip().casefold() in USUAL_CONTROLS]
            hint = f"Is it {usual[0]!r}?" if len(usual) == 1 else ""
            problems.note(
                fail(
                    f"there are no control rows: no regime is {control!r} (found {quoted(values)})",
                    "Name the value of observational rows with --control. "
                    f"{did_you_mean(control, values) or hint}".strip(),
                )
            )
        strangers = [v for v, x in reading.rename.items() if v not in values and x != control]
        if strangers and reading.strict_rename:
            near = did_you_mean(strangers[0], values) or "Check the spelling."
            problems.note(fail(f"there is no regime {strangers[0]!r} to rename", near))
        problems.raise_all(path=reading.path, client=reading.client)

    def check_control(self) -> None:
        """Raise an `InputError` if no row of the control is left."""
        control = self.reading.control
        if control not in self.regimes:
            raise self.reading.fail(
                "every control row has a missing value, so none is left "
                f"({self.bad.most(self.bad.incomplete_columns)})",
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
            regime: own[""] if self.reading.batch is None else Moments.of_batches(own)
            for regime, own in regimes.items()
        }
        control, labels = found.pop(self.reading.control), dict[str, list[Moments]]()
        for regime, whole in found.items():
            labels.setdefault(self.reading.rename.get(regime, regime), []).append(whole)
        return control, labels

    def findings(self) -> list[Finding]:
        """Findings about the rows that were left out, or grouped on request."""
        reading = self.reading

        def each(counts: Counter[str]) -> str:
            ordered = sorted(counts.items(), key=lambda item: (item[0] != reading.control, item[0]))
            return few(f"{count:,} of {regime!r}" for regime, count in ordered if count)

        said = []
        for check, what, counts in (
            ("incomplete-rows", "with missing values", self.bad.incomplete),
            ("trimmed-rows", "that lie farthest out", self.trimmed),
        ):
            if counts.total():
                rows = pluralise(counts.total(), "row")
                said.append((check, f"left out {rows} {what}: {each(counts)}"))
        if reading.group is not None:
            by = f"rows are taken in groups by {reading.group!r}: {each(self.groups)}"
            said.append(("grouped-rows", by))
        remedy = "Nothing to do: this was asked for."
        return [Finding(c, "info", what, remedy, client=reading.client) for c, what in said]


# -- regimes without a covariance -----------------------------------------------------------------


def large_enough(
    interventions: Mapping[str, Sequence[Moments]], gone: Sequence[str], client: str
) -> tuple[dict[str, list[Moments]], list[Finding]]:
    """The regimes that have a covariance, and a finding for each of the others.

    All are kept if none has one: the client as a whole is then refused, with the reason. `gone`
    are the regimes of which no row is left.
    """
    kept: dict[str, list[Moments]] = {}
    findings = []
    keys = {label_key(label) for label in interventions}
    for label, regimes in interventions.items():
        parts = [label_key(part) for part in label.split("+")]
        if len(parts) > 1 and set(parts) <= keys - {label_key(label)}:
            # One label stands for one target.
            what = f"its rows have {len(parts)} perturbations, and are not used"
            remedy = "Nothing to do: the regimes of each alone are used."
            together = _unusable(label, what, remedy, client)
            findings.append(replace(together, severity="warning"))
            continue
        faults = [_fault(m) for m in regimes]
        good = [m for m, fault in zip(regimes, faults, strict=True) if not fault]
        if good:
            kept[label] = good
        if any(faults):
            subject = "a strength of the label" if good else "the regime"
            what = f"{subject} has {next(fault for fault in reversed(faults) if fault)}"
            findings.append(_unusable(label, what, "Take more rows, or remove these.", client))
            if good:
                findings[-1] = replace(findings[-1], severity="warning")
    if not kept:
        kept, findings = {k: list(v) for k, v in interventions.items()}, []
    remedy = "Take more rows, or leave out the columns in which they are missing."
    every = "every row of the regime has a missing value"
    return kept, [*findings, *(_unusable(regime, every, remedy, client) for regime in gone)]


def _unusable(regime: str, what: str, remedy: str, client: str) -> Finding:
    label = normal_label(regime)
    return Finding("unusable-regime", "error", what, remedy, client=client, regime=label)


def _fault(m: Moments) -> str:
    if m.n is not None and m.n < FEWEST_ROWS:
        within = f" in {len(m.batches)} batches" if len(m.batches) > 1 else ""
        return f"{pluralise(m.rows or 0, 'row')}{within}, too few for a covariance"
    return "" if varies(m.mean, m.covariance).any() else "the same values in all rows"
