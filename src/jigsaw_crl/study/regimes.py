"""From chunks of rows to a client: the rules that all file formats share.

- The regime column gives the regime of each row; a missing value in it is an error. So do
  the batch and the group column, if they are named.
- Numeric columns are features. Text, dates and booleans are ignored, with a finding.
- A missing or infinite value in a feature is an error that names the column and the row; on request
  rows with missing values are left out, and so are the rows that lie farthest out.
- What is wrong is collected, as far as it can be told without what was wrong before.
- A column that is constant over all regimes is dropped, and one that rises from row to row ignored,
  with a finding.
- A regime with a single row, or whose rows are all the same, is left out, with a finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.client.checks import check_names
from jigsaw_crl.client.client import Client
from jigsaw_crl.moments.checks import rounding, varies
from jigsaw_crl.moments.groups import GroupedStream
from jigsaw_crl.moments.regime import Moments
from jigsaw_crl.moments.stream import MomentStream, few_parts
from jigsaw_crl.moments.summary import MOST_PARTS
from jigsaw_crl.moments.trimming import TrimmedStream
from jigsaw_crl.study.bad_rows import BadRows, ignoring
from jigsaw_crl.study.columns import quoted
from jigsaw_crl.study.ignored import ignored_columns
from jigsaw_crl.study.problems import Problems
from jigsaw_crl.study.row_order import RISING, RowOrder
from jigsaw_crl.study.source import Chunk, Codes, Naming, Source
from jigsaw_crl.study.too_small import large_enough, without_rows

__all__ = ["client_from_source", "read_source"]

# A column with more values than a fragment may have labels is probably not the regime column.
MOST_REGIMES = 5_000
# Each regime has its own sums in each batch, of up to a few MB.
MOST_CELLS = 20_000
# The part of each group is kept, some hundred bytes.
MOST_GROUPS = 500_000
# Common names of the control, used only for suggestions.
USUAL_CONTROLS = (
    "baseline", "ctrl", "dmso", "mock", "nominal", "none", "non-targeting", "nontargeting",
    "normal", "obs", "observational", "reference", "untreated", "vehicle", "wildtype", "wt",
)  # fmt: skip

T = TypeVar("T")


def client_from_source(
    source: Source, *, name: str, naming: Naming, n_latent: int | None, path: object | None = None
) -> tuple[Client, list[Finding]]:
    """Read a whole table; returns the client and the findings about its columns."""
    problems, read = Problems(), None
    with problems.noted():
        read = read_source(
            source, name=name, naming=naming, n_latent=n_latent, path=path, problems=problems
        )
    problems.raise_all(path=path, client=name)
    assert read is not None
    return read


def read_source(
    source: Source,
    *,
    name: str,
    naming: Naming,
    n_latent: int | None,
    path: object | None,
    problems: Problems,
) -> tuple[Client, list[Finding]] | None:
    """Read a whole table, and note its problems; None if they leave no client.

    With problems, the client is without the rows they are in, and serves to find further ones.
    """
    collected = _RegimeStreams(source.features, naming, name, path)
    for chunk in source.chunks():
        collected.add(chunk)
    spoilt = collected.bad.problems()
    for error in spoilt:
        problems.note(error)
    with problems.noted():
        collected.check_regimes()
        if spoilt and naming.control not in collected.streams:
            return None
        control, interventions = collected.moments()
        # First, so that a misspelt label is not left out for its few rows.
        _located(path, check_names, name, interventions, naming.control)
        try:
            return _client(source, collected, control, interventions, n_latent)
        except InputError:
            # Without the bad rows too little may be left.
            if not spoilt:
                raise
    return None


def _located(path: object | None, call: Callable[..., T], *given: Any, **named: Any) -> T:
    try:
        return call(*given, **named)
    except InputError as error:
        raise error.located(path=path) from None


def _client(
    source: Source,
    collected: _RegimeStreams,
    control: Moments,
    interventions: dict[str, list[Moments]],
    n_latent: int | None,
) -> tuple[Client, list[Finding]]:
    name, naming = collected.client, collected.naming
    interventions, too_small = large_enough(interventions, name)
    rising = collected.order.rising
    ignored = dict(source.ignored)
    ignored |= {f: RISING for f, is_time in zip(source.features, rising, strict=True) if is_time}
    findings = [
        *too_small,
        *without_rows(collected.gone(), name),
        *ignored_columns(ignored, name),
        *collected.left_out(),
    ]
    varying = _varying(control, interventions)
    kept = varying & ~rising
    features = [f for f, keep in zip(source.features, kept, strict=True) if keep]
    constant = [f for f, keep in zip(source.features, varying, strict=True) if not keep]
    if not features:
        raise collected.fail("every column is constant", "Check the file: it has no variation.")
    if constant:
        findings.append(
            Finding(
                "constant-column",
                "info",
                f"dropped {quoted(constant)}: constant over all regimes",
                "Nothing to do, unless it should vary; then check the sensor.",
                value=float(len(constant)),
                client=name,
            )
        )
    if not kept.all():
        control = control.select(kept)
        interventions = {k: [m.select(kept) for m in ms] for k, ms in interventions.items()}
    client = _located(
        collected.path,
        Client.from_moments,
        name,
        control=control,
        interventions=interventions,
        n_latent=n_latent,
        features=features,
        control_name=naming.control,
    )
    return client, findings


class _RegimeStreams:
    """One stream of moments per value of the regime column, or of the regime and batch columns."""

    def __init__(
        self, features: tuple[str, ...], naming: Naming, client: str, path: object | None
    ) -> None:
        self.features, self.naming, self.client, self.path = features, naming, client, path
        # By regime, then by batch; the batch is "" without a batch column.
        self.streams: dict[str, dict[str, MomentStream]] = {}
        self.n_cells = self.n_groups = 0
        # By regime.
        self.trimmed, self.groups = Counter[str](), Counter[str]()
        self.order = RowOrder(len(features))
        self.bad = BadRows(features, naming, self.fail, path)

    def fail(self, what: str, remedy: str, regime: str | None = None) -> InputError:
        return InputError(what, remedy, client=self.client, regime=regime, path=self.path)

    def add(self, chunk: Chunk) -> None:
        chunk = self.bad.without(chunk)
        codes, rows = chunk.codes, chunk.rows
        if not len(codes):
            return
        batches: Sequence[str] = ("",)
        if chunk.batches is not None:
            batches, own = chunk.batches
            codes = codes.astype(np.int64) * len(batches) + own
        names, groups = ((), None) if chunk.groups is None else chunk.groups
        if groups is not None and not all(map(str.strip, names)):
            raise self.fail("a row has an empty group", "Give every row its group.")
        lowest, highest = int(codes.min()), int(codes.max())

        def take(code: int, part: slice) -> None:
            i, j = divmod(code, len(batches))
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

    def left_out(self) -> list[Finding]:
        """Findings about the rows that were left out or grouped on request."""
        found = []
        for check, what, counts in (
            ("incomplete-rows", "with missing values", self.bad.incomplete),
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
        stream = self._new_stream(len(self.features), regime == self.naming.control)
        self.streams.setdefault(regime, {})[batch] = stream
        self.n_cells += 1
        return stream

    def _new_stream(self, d: int, is_control: bool) -> MomentStream:
        parts, trim = MOST_PARTS if is_control else few_parts(d), self.naming.trim
        if self.naming.group is not None:
            return GroupedStream(d, parts=parts, trim=trim)
        return TrimmedStream(d, parts=parts, trim=trim) if trim else MomentStream(d, parts=parts)

    def _moments(self, streams: Mapping[str, MomentStream]) -> Moments:
        """Moments of one regime."""
        if self.naming.batch is None:
            return Moments.from_stream(streams[""])
        return Moments.of_batches({b: Moments.from_stream(x) for b, x in streams.items()})

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

    def moments(self) -> tuple[Moments, dict[str, list[Moments]]]:
        """Moments of the control and of every label."""
        naming = self.naming
        if naming.control not in self.streams:
            raise self.fail(
                "every control row has a missing value, so none is left "
                f"({self.bad.most(self.bad.incomplete_columns)})",
                f"Leave such columns out with {ignoring(self.path)} instead.",
                naming.control,
            )
        found = {value: self._moments(own) for value, own in self.streams.items()}
        labels: dict[str, list[Moments]] = {}
        # Sorted, so that the order of rows in a file does not matter.
        others = sorted(value for value in found if value != naming.control)
        for value in others:
            labels.setdefault(naming.rename.get(value, value), []).append(found[value])
        for value in (naming.control, *others):
            own = self.streams[value].values()
            out = sum(x.left_out for x in own if isinstance(x, TrimmedStream | GroupedStream))
            self.trimmed += Counter({value: out})
            self.groups[value] = sum(x.groups or 0 for x in own)
        return found[naming.control], labels


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
