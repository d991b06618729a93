"""Rows of a table, chunk by chunk, to streams of moments: one per value of the regime column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.moments.accumulator import Accumulator
from jigsaw_crl.moments.regime import Moments
from jigsaw_crl.study.bad_rows import BadRows, ignoring
from jigsaw_crl.study.columns import quoted
from jigsaw_crl.study.problems import Problems
from jigsaw_crl.study.row_order import RISING, RowOrder
from jigsaw_crl.study.source import Chunk, Naming, is_sparse
from jigsaw_crl.study.wide import Along, FirstRead

__all__ = ["RegimeStreams", "rows_left_out"]

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
    "baseline", "ctrl", "dmso", "mock", "nominal", "none", "non-targeting", "nontargeting",
    "normal", "obs", "observational", "reference", "untreated", "vehicle", "wildtype", "wt",
)  # fmt: skip


class RegimeStreams:
    """One stream of moments per value of the regime column, or of the regime and batch columns."""

    def __init__(
        self,
        features: tuple[str, ...],
        naming: Naming,
        client: str,
        path: object | None,
        *,
        read: FirstRead | None = None,
        along: Along | None = None,
    ) -> None:
        self.features, self.naming, self.client, self.path = features, naming, client, path
        self.read, self.along = read, along
        # By regime, then by batch; the batch is "" without a batch column.
        self.streams: dict[str, dict[str, Accumulator]] = {}
        self.n_cells = self.n_groups = 0
        # By regime.
        self.trimmed, self.groups = Counter[str](), Counter[str]()
        self.width = len(features) if along is None else len(along.own.features)
        self.order = RowOrder(self.width)
        self.bad = BadRows(features, naming, self.fail, path)

    def fail(self, what: str, remedy: str, regime: str | None = None) -> InputError:
        return InputError(what, remedy, client=self.client, regime=regime, path=self.path)

    def add(self, chunk: Chunk) -> None:
        chunk = self.bad.without(chunk)
        if self.along is not None:
            chunk = self.along.rows_of(chunk)
        codes, rows = chunk.codes, chunk.rows
        if not len(codes):
            return
        batches: Sequence[str] = ("",)
        if chunk.batches is not None:
            batches, own = chunk.batches
            codes = codes.astype(np.int64) * len(batches) + own
        if self.naming.missing == "em" and self.bad.n_rows * len(self.features) > MOST_HELD:
            raise self.fail(
                f"the table has more than {MOST_HELD:,} values, too many to be held for EM",
                "Leave incomplete rows out with --drop-missing, or read fewer rows.",
            )
        names, groups = ((), None) if chunk.groups is None else chunk.groups
        if groups is not None and not all(map(str.strip, names)):
            raise self.fail("a row has an empty group", "Give every row its group.")
        lowest, highest = int(codes.min()), int(codes.max())

        def take(code: int, part: slice) -> None:
            i, j = divmod(code, len(batches))
            if not is_sparse(rows):
                self.order.add((chunk.regimes[i], batches[j]), rows[part])
            stream = self._stream(chunk.regimes[i], batches[j])
            before = stream.groups or 0
            stream.add(rows[part], None if groups is None else (names, groups[part]))
            self.n_groups += (stream.groups or 0) - before
            if self.n_groups > MOST_GROUPS:
                raise self.fail(
                    f"there are more than {MOST_GROUPS:,} groups",
                    "Name the column that holds the group of each row with --group: many rows "
                    "share one.",
                )

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

    def left_out(self) -> list[Finding]:
        """Findings about the rows that were left out or grouped on request."""
        found = []
        for check, what, counts in (
            ("incomplete-rows", "with missing values", self.bad.incomplete),
            ("trimmed-rows", "that lie farthest out", self.trimmed),
        ):
            found += rows_left_out(check, what, counts, self.client)
        if self.naming.group is not None:
            each = few(f"{count:,} of {regime!r}" for regime, count in self.groups.items())
            message = f"rows are taken in groups by {self.naming.group!r}: {each}"
            found.append(_asked("grouped-rows", message, self.client))
        return found

    def _stream(self, regime: str, batch: str) -> Accumulator:
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
            is_control = regime == self.naming.control
            stream = Accumulator(self.width, self.naming.asked, control=is_control)
        else:
            stream = self.read.stream(regime)
        self.streams.setdefault(regime, {})[batch] = stream
        self.n_cells += 1
        return stream

    def _moments(self, regime: str, streams: Mapping[str, Accumulator], rank: int) -> Moments:
        """Moments of one regime."""
        if self.naming.batch is None:
            try:
                return streams[""].moments(rank)
            except InputError as error:
                raise error.located(client=self.client, regime=regime, path=self.path) from None
        return Moments.of_batches({b: x.moments(rank) for b, x in streams.items()})

    def used(
        self, varying: BoolArray, ignored: Mapping[str, str]
    ) -> tuple[BoolArray, list[str], Mapping[str, str]]:
        """Which columns are features, names of constant ones, and which are ignored, and why."""
        rising = self.order.rising
        kept = varying & ~rising
        if not kept.any():
            raise self.fail("every column is constant", "Check the file: it has no variation.")
        constant = [f for f, keep in zip(self.features, varying, strict=True) if not keep]
        times = {f: RISING for f, is_time in zip(self.features, rising, strict=True) if is_time}
        return kept, constant, {**ignored, **times}

    def gone(self) -> list[str]:
        """Regimes whose rows are all left out for their values."""
        return sorted(self.bad.regimes - set(self.streams))

    def check_regimes(self) -> None:
        """Raise an `InputError` for what is wrong with the values of the regime column."""
        naming, values = self.naming, [*self.streams, *self.gone()]
        if not values:
            raise self.fail("there are no rows", "Check that the file is complete.")
        problems = Problems()
        folded = naming.control.strip().casefold()
        twins = [v for v in values if v.strip().casefold() == folded and v != naming.control]
        if twins:
            what = f"differs from the control {naming.control!r} only by case or spaces"
            remedy = "Spell the control one way, or name it with --control."
            problems.note(self.fail(f"the regime {twins[0]!r} {what}", remedy, twins[0]))
        elif naming.control not in values:
            problems.note(
                self.fail(
                    f"there are no control rows: no regime is {naming.control!r} (found "
                    f"{quoted(values)})",
                    "Name the value of observational rows with --control. "
                    f"{did_you_mean(naming.control, values) or _usual_control(values)}".strip(),
                )
            )
        strangers = [v for v in naming.rename if v not in values]
        if strangers and naming.strict_rename:
            near = did_you_mean(strangers[0], values) or "Check the spelling."
            problems.note(self.fail(f"there is no regime {strangers[0]!r} to rename", near))
        problems.raise_all(path=self.path, client=self.client)

    def check_control(self) -> None:
        """Raise an `InputError` if no row of the control is left."""
        if self.naming.control not in self.streams:
            raise self.fail(
                "every control row has a missing value, so none is left "
                f"({self.bad.most(self.bad.incomplete_columns)})",
                f"Leave such columns out with {ignoring(self.path)} instead.",
                self.naming.control,
            )

    def moments(self, n_latent: int | None) -> tuple[Moments, dict[str, list[Moments]]]:
        """Moments of the control and of every label."""
        self.check_control()
        naming = self.naming
        others = sorted(value for value in self.streams if value != naming.control)
        rank = n_latent or len({naming.rename.get(v, v) for v in others})
        found = {value: self._moments(value, own, rank) for value, own in self.streams.items()}
        labels: dict[str, list[Moments]] = {}
        # Sorted, so that the order of rows in a file does not matter.
        for value in others:
            labels.setdefault(naming.rename.get(value, value), []).append(found[value])
        for value in (naming.control, *others):
            own = self.streams[value].values()
            self.trimmed += Counter({value: sum(x.left_out for x in own)})
            self.groups[value] = sum(x.groups or 0 for x in own)
        return found[naming.control], labels


def _usual_control(values: Sequence[str]) -> str:
    """Suggest the only value that is a common name of a control."""
    usual = [v for v in values if v.strip().casefold() in USUAL_CONTROLS]
    return f"Is it {usual[0]!r}?" if len(usual) == 1 else ""


def rows_left_out(check: str, what: str, counts: Counter[str], client: str) -> list[Finding]:
    """The finding about rows that were left out on request, if there are any; counts by regime."""
    if not counts.total():
        return []
    each = few(f"{count:,} of {regime!r}" for regime, count in counts.items())
    message = f"left out {pluralise(counts.total(), 'row')} {what}: {each}"
    return [_asked(check, message, client)]


def _asked(check: str, message: str, client: str) -> Finding:
    return Finding(check, "info", message, "Nothing to do: this was asked for.", client=client)
