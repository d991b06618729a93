"""From chunks of rows to a client: the rules that all file formats share.

- The regime column gives the regime of each row; a missing value in it is an error. So do
  the batch and the group column, if they are named.
- Numeric columns are features. Text, dates and booleans are ignored, with a finding.
- A missing or infinite value in a feature is an error that names the column and the row; on request
  rows with missing values are left out or used by EM, and the rows that lie farthest out are left
  out.
- A column that is constant over all regimes is dropped, and one that rises from row to row ignored,
  with a finding.
- A regime with a single row, or whose rows are all the same, is left out, with a finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.client.checks import check_names
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.reduction import Reduction
from jigsaw_crl.moments.checks import LARGEST_VALUE, rounding, varies
from jigsaw_crl.moments.groups import GroupedStream
from jigsaw_crl.moments.regime import Moments
from jigsaw_crl.moments.stream import MomentStream, few_parts
from jigsaw_crl.moments.summary import MOST_PARTS
from jigsaw_crl.moments.trimming import TrimmedStream
from jigsaw_crl.study.column_findings import constant_columns, ignored_columns
from jigsaw_crl.study.columns import quoted
from jigsaw_crl.study.row_order import RISING, RowOrder
from jigsaw_crl.study.source import Chunk, Codes, Naming, Source, complete_rows, is_sparse
from jigsaw_crl.study.too_small import large_enough
from jigsaw_crl.study.wide import FirstRead, along, is_wide

__all__ = ["client_from_source"]

# A column with more values than a fragment may have labels is probably not the regime column.
MOST_REGIMES = 5_000
# Each regime has its own sums in each batch, of up to a few MB.
MOST_CELLS = 20_000
# The part of each group is kept, some hundred bytes.
MOST_GROUPS = 500_000
# Incomplete rows are held in memory, 8 bytes a value.
MOST_HELD = 200_000_000
# Common names of the control, used only for suggestions.
USUAL_CONTROLS = (
    "baseline", "ctrl", "dmso", "mock", "none", "non-targeting", "nontargeting", "obs",
    "observational", "untreated", "vehicle", "wildtype", "wt",
)  # fmt: skip


def client_from_source(
    source: Source,
    *,
    name: str,
    naming: Naming,
    n_latent: int | None,
    path: object | None = None,
    reduction: Reduction | None = None,
) -> tuple[Client, list[Finding]]:
    """Read a whole table; the client and the findings about its columns.

    A wide table is read twice, unless the directions that replace its columns are given.
    """
    constant: list[str] = []
    if reduction is not None:
        source = along(reduction, source.choose(reduction.columns, name, path), source.ignored)
    elif is_wide(len(source.features), naming):
        source, reduction, constant = _first_read(source, name, naming, n_latent, path)
    collected = _RegimeStreams(source.features, naming, name, path)
    for chunk in source.chunks():
        collected.add(chunk)
    control, interventions = collected.moments(n_latent)
    try:
        # First, so that a misspelt label is not left out for its few rows.
        check_names(name, interventions, naming.control)
    except InputError as error:
        raise error.located(path=path) from None
    interventions, findings = large_enough(interventions, name)
    ignored = source.ignored
    if reduction is None:
        varying = _varying(control, interventions)
        kept, constant, ignored = collected.used(varying, ignored)
        if not kept.all():
            control = control.select(kept)
            interventions = {k: [m.select(kept) for m in ms] for k, ms in interventions.items()}
    findings += ignored_columns(ignored, name) + collected.left_out()
    findings += constant_columns(constant, name)
    unused = {*ignored, *constant}
    try:
        client = Client.from_moments(
            name,
            control=control,
            interventions=interventions,
            n_latent=n_latent,
            features=[f for f in source.features if f not in unused],
            control_name=naming.control,
            reduction=reduction,
        )
    except InputError as error:
        raise error.located(path=path) from None
    return client, findings


def _first_read(
    source: Source, name: str, naming: Naming, n_latent: int | None, path: object | None
) -> tuple[Source, Reduction, list[str]]:
    """Read a wide table for the directions that replace its columns.

    Returns the table along the directions, these for the columns in use, and constant columns.
    """
    read = FirstRead(len(source.features), n_latent)
    collected = _RegimeStreams(source.features, naming, name, path, read)
    for chunk in source.chunks():
        collected.add(chunk)
    collected.control()
    kept, constant, ignored = collected.used(~read.constant(), source.ignored)
    reduction = read.reduction(source.features, naming, n_latent, kept)
    return along(reduction, source, ignored), reduction.select(kept), constant


class _RegimeStreams:
    """One stream of moments per value of the regime column, or of the regime and batch columns."""

    def __init__(
        self,
        features: tuple[str, ...],
        naming: Naming,
        client: str,
        path: object | None,
        read: FirstRead | None = None,
    ) -> None:
        self.features, self.naming, self.client, self.path = features, naming, client, path
        self.read = read
        # By regime, then by batch; the batch is "" without a batch column.
        self.streams: dict[str, dict[str, MomentStream]] = {}
        self.n_rows = self.n_cells = self.n_groups = 0
        # By regime.
        self.incomplete, self.trimmed, self.groups = Counter[str](), Counter[str](), Counter[str]()
        self.order = RowOrder(len(features))

    def fail(self, what: str, remedy: str, regime: str | None = None) -> InputError:
        return InputError(what, remedy, client=self.client, regime=regime, path=self.path)

    def add(self, chunk: Chunk) -> None:
        codes, rows = chunk.codes, chunk.rows
        if not len(codes):
            return
        self._check_named(codes, "regime")
        if self.naming.missing == "drop":
            chunk, n_rows = self._complete(chunk), len(codes)
            if len(chunk.codes) < n_rows:
                self.add(chunk)
                self.n_rows += n_rows - len(chunk.codes)
                return
        batches: Sequence[str] = ("",)
        if chunk.batches is not None:
            batches, own = chunk.batches
            self._check_named(own, "batch")
            codes = codes.astype(np.int64) * len(batches) + own
        if self.naming.missing == "em" and self.n_rows * len(self.features) > MOST_HELD:
            raise self.fail(
                f"the table has more than {MOST_HELD:,} values, too many to be held for EM",
                "Leave incomplete rows out with --drop-missing, or read fewer rows.",
            )
        names, groups = ((), None) if chunk.groups is None else chunk.groups
        if groups is not None:
            self._check_named(groups, "group")
            if not all(map(str.strip, names)):
                raise self.fail("a row has an empty group", "Give every row its group.")
        self._check_values(chunk)
        lowest, highest = int(codes.min()), int(codes.max())

        def take(code: int, part: slice) -> None:
            i, j = divmod(code, len(batches))
            if not is_sparse(rows):
                self.order.add((chunk.regimes[i], batches[j]), rows[part])
            stream = self._stream(chunk.regimes[i], batches[j])
            if isinstance(stream, GroupedStream) and groups is not None:
                self._add_grouped(stream, rows[part], names, groups[part])
            else:
                stream.add(rows[part])

        if lowest == highest:
            take(lowest, slice(None))
        else:
            # numpy sorts integers of 16 bits or less by counting, which is fast.
            narrow = codes.astype(np.min_scalar_type(highest))
            order = np.argsort(narrow, kind="stable")
            rows, groups = rows[order], None if groups is None else groups[order]
            sizes = np.bincount(narrow)
            ends = np.cumsum(sizes)
            for code in np.flatnonzero(sizes).tolist():
                take(code, slice(ends[code] - sizes[code], ends[code]))
        self.n_rows += len(codes)

    def _add_grouped(
        self,
        stream: GroupedStream,
        rows: npt.NDArray[np.number],
        names: Sequence[str],
        codes: Codes,
    ) -> None:
        before = stream.groups or 0
        stream.add_grouped(rows, names, codes)
        self.n_groups += (stream.groups or 0) - before
        if self.n_groups > MOST_GROUPS:
            raise self.fail(
                f"there are more than {MOST_GROUPS:,} groups",
                "Name the column that holds the group of each row with --group: many rows share "
                "one.",
            )

    def _complete(self, chunk: Chunk) -> Chunk:
        """The rows of a chunk without missing values; the others are counted."""
        whole = complete_rows(chunk.rows)
        if whole.all():
            return chunk
        codes, counts = np.unique(chunk.codes[~whole], return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            self.incomplete[chunk.regimes[code]] += count
        return chunk.select(whole)

    def left_out(self) -> list[Finding]:
        """Findings about the rows that were left out or grouped on request."""
        found = []
        for check, what, counts in (
            ("incomplete-rows", "with missing values", self.incomplete),
            ("trimmed-rows", "that lie farthest out", self.trimmed),
        ):
            if counts.total():
                each = few(f"{count:,} of {regime!r}" for regime, count in counts.items())
                message = f"left out {pluralise(counts.total(), 'row')} {what}: {each}"
                found.append(self._asked(check, message))
        if self.naming.group is not None:
            each = few(f"{count:,} of {regime!r}" for regime, count in self.groups.items())
            message = f"rows are taken in groups by {self.naming.group!r}: {each}"
            found.append(self._asked("grouped-rows", message))
        return found

    def _asked(self, check: str, message: str) -> Finding:
        remedy = "Nothing to do: this was asked for."
        return Finding(check, "info", message, remedy, client=self.client)

    def _check_named(self, codes: Codes, what: str) -> None:
        if int(codes.min()) < 0:
            row = self.n_rows + int(np.argmax(codes < 0)) + 1
            raise self.fail(
                f"row {row} has no {what}", f"Give every row its {what}, or remove the row."
            )

    def _stream(self, regime: str, batch: str) -> MomentStream:
        streams = self.streams.get(regime, {})
        if batch in streams:
            return streams[batch]
        if not regime.strip():
            raise self.fail("a row has an empty regime", "Give every row its regime.")
        if self.naming.batch is not None and not batch.strip():
            raise self.fail("a row has an empty batch", "Give every row its batch.", regime)
        if len(self.streams) >= MOST_REGIMES and regime not in self.streams:
            raise self.fail(
                f"the regime column has more than {MOST_REGIMES} different values",
                "Name the right column with --regime, or merge labels.",
            )
        if self.n_cells >= MOST_CELLS:
            raise self.fail(
                f"there are more than {MOST_CELLS} combinations of regime and batch",
                "Name the right column with --batch, or merge batches.",
            )
        if self.read is None:
            stream = self._new_stream(len(self.features), regime == self.naming.control)
        else:
            stream = self.read.stream(regime)
        self.streams.setdefault(regime, {})[batch] = stream
        self.n_cells += 1
        return stream

    def _new_stream(self, d: int, is_control: bool) -> MomentStream:
        return self.naming.asked.stream(d, MOST_PARTS if is_control else few_parts(d))

    def _moments(self, regime: str, streams: Mapping[str, MomentStream]) -> Moments:
        """Moments of one regime."""
        if self.naming.batch is None:
            try:
                return Moments.from_stream(streams[""])
            except InputError as error:
                raise error.located(client=self.client, regime=regime, path=self.path) from None
        return Moments.of_batches({b: Moments.from_stream(x) for b, x in streams.items()})

    def _check_values(self, chunk: Chunk) -> None:
        rows: Any = chunk.rows
        if self.naming.missing == "em":
            rows = np.where(np.isnan(rows), 0.0, rows)
        # Two fast passes (NaN makes both NaN); the place is searched for only if needed.
        low, high = float(rows.min()), float(rows.max())
        if low >= -LARGEST_VALUE and high <= LARGEST_VALUE:
            return
        rows = rows.toarray() if is_sparse(rows) else rows
        bad = ~(np.abs(rows) <= LARGEST_VALUE)
        row, column = (int(i) for i in np.argwhere(bad)[0])
        value = float(rows[row, column])
        where = f"column {self.features[column]!r}, row {self.n_rows + row + 1}"
        regime = chunk.regimes[int(chunk.codes[row])]
        count = int(np.count_nonzero(bad))
        more = f" (and {count - 1} more like it)" if count > 1 else ""
        if np.isfinite(value):
            what, remedy = f"the value {value:.3g} in {where} is too large", "Rescale the column."
        else:
            what = f"a value is {'missing' if np.isnan(value) else 'infinite'} in {where}"
            remedy = "Leave such rows out with --drop-missing, or the column with --ignore."
            if np.isnan(value):
                remedy += " --fill-missing uses the values that are there."
        raise self.fail(what + more, remedy, regime)

    def used(
        self, varying: BoolArray, ignored: Mapping[str, str]
    ) -> tuple[BoolArray, list[str], dict[str, str]]:
        """Which columns are features, names of constant ones, and which are ignored, and why."""
        kept = varying & ~self.order.rising
        if not kept.any():
            raise self.fail("every column is constant", "Check the file: it has no variation.")
        constant = [f for f, keep in zip(self.features, varying, strict=True) if not keep]
        times = zip(self.features, self.order.rising, strict=True)
        return kept, constant, {**ignored, **{f: RISING for f, is_time in times if is_time}}

    def control(self) -> dict[str, MomentStream]:
        """The streams of the control, taken out; an `InputError` if the regimes do not fit."""
        naming, values = self.naming, list(self.streams)
        if not values:
            raise self.fail("there are no rows", "Check that the file is complete.")
        control = self.streams.pop(naming.control, None)
        folded = naming.control.strip().casefold()
        twins = [v for v in self.streams if v.strip().casefold() == folded]
        if twins:
            raise self.fail(
                f"the regime {twins[0]!r} differs from the control {naming.control!r} only by "
                "case or spaces",
                "Spell the control one way, or name it with --control.",
                twins[0],
            )
        if control is None:
            raise self.fail(
                f"there are no control rows: no regime is {naming.control!r} (found "
                f"{quoted(values)})",
                "Name the value of observational rows with --control. "
                f"{did_you_mean(naming.control, values) or _usual_control(values)}".strip(),
                naming.control,
            )
        strangers = [v for v in naming.rename if v not in values]
        if strangers and naming.strict_rename:
            raise self.fail(
                f"there is no regime {strangers[0]!r} to rename",
                did_you_mean(strangers[0], values) or "Check the spelling.",
            )
        return control

    def moments(self, n_latent: int | None) -> tuple[Moments, dict[str, list[Moments]]]:
        """Moments of the control and of every label."""
        naming, control = self.naming, self.control()
        rank = n_latent or len({naming.rename.get(v, v) for v in self.streams})
        for stream in (x for own in (control, *self.streams.values()) for x in own.values()):
            stream.rank = rank
        labels: dict[str, list[Moments]] = {}
        # Sorted, so that the order of rows in a file does not matter.
        for value in sorted(self.streams):
            label = naming.rename.get(value, value)
            labels.setdefault(label, []).append(self._moments(value, self.streams[value]))
        found = self._moments(naming.control, control)
        for value, streams in ((naming.control, control), *self.streams.items()):
            own = streams.values()
            out = sum(x.left_out for x in own if isinstance(x, TrimmedStream | GroupedStream))
            self.trimmed += Counter({value: out})
            self.groups[value] = sum(x.groups or 0 for x in own)
        return found, labels


def _varying(control: Moments, interventions: Mapping[str, Sequence[Moments]]) -> BoolArray:
    """Which features vary within a regime or between regimes."""
    regimes = [control, *(m for ms in interventions.values() for m in ms)]
    means = np.array([m.mean for m in regimes])
    within = np.any([varies(m.mean, m.covariance) for m in regimes], axis=0)
    return np.asarray(within | (np.ptp(means, axis=0) > rounding(means).max(axis=0)))


def _usual_control(values: Sequence[str]) -> str:
    """Suggest the only value that is a common name of a control."""
    usual = [v for v in values if v.strip().casefold() in USUAL_CONTROLS]
    return f"Is it {usual[0]!r}?" if len(usual) == 1 else ""
