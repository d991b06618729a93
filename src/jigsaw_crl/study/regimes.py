"""From chunks of rows to a client: the rules that every file format shares.

- The regime column says where a row belongs; a missing value in it is an error.
- Numeric columns are features. Text, dates and truth values are not, and are reported as ignored.
- A missing or infinite value in a feature is an error that names the column and the row.
- A column that is constant over all regimes says nothing and is dropped, with a note.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import did_you_mean, few
from jigsaw_crl.client.client import Client
from jigsaw_crl.moments.checks import LARGEST_VALUE
from jigsaw_crl.moments.regime import Moments
from jigsaw_crl.moments.stream import MomentStream

__all__ = [
    "TRUTHS",
    "Chunk",
    "Naming",
    "Source",
    "chunk_rows",
    "client_from_source",
    "feature_columns",
    "warn_of_truths",
]

# Why a column of truth values is ignored.
TRUTHS = "of truth values"
# A regime column with more values than a fragment may have labels is some other column.
MOST_REGIMES = 5_000
# What controls are called elsewhere; only ever to ask whether one of them was meant.
USUAL_CONTROLS = (
    "baseline", "ctrl", "dmso", "mock", "none", "non-targeting", "nontargeting", "obs",
    "observational", "untreated", "vehicle", "wildtype", "wt",
)  # fmt: skip
# Chunks of half a million numbers (4 MB) stay near the processor; pyarrow keeps several in flight.
_CHUNK_VALUES = 1 << 19


def chunk_rows(n_features: int) -> int:
    """Rows that a reader fetches at a time."""
    return max(256, _CHUNK_VALUES // max(n_features, 1))


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows and their regimes: row i is in regime `regimes[codes[i]]`, none if negative."""

    regimes: Sequence[str]
    codes: npt.NDArray[np.integer]
    rows: npt.NDArray[np.number]


class Source(Protocol):
    """A table that can be read once, chunk by chunk."""

    @property
    def features(self) -> tuple[str, ...]: ...
    @property
    def ignored(self) -> Mapping[str, str]: ...
    def chunks(self) -> Iterator[Chunk]: ...


@dataclass(frozen=True)
class Naming:
    """What things are called in a client's file.

    Parameters
    ----------
    regime : str or None
        Column with the regime; None for the format's own default.
    control : str
        Its value on observational rows.
    rename : mapping of str to str
        From a regime's value to the label it stands for; several values of one label are its
        strengths.
    ignore : tuple of str
        Columns that are no features.
    strict_rename : bool
        Refuse a renamed value that does not occur (not so for the names a whole study shares).
    """

    regime: str | None = None
    control: str = "control"
    rename: Mapping[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    strict_rename: bool = False

    def column(self, default: str = "regime") -> str:
        return default if self.regime is None else self.regime


def feature_columns(
    columns: Sequence[str],
    not_numbers: Mapping[str, str],
    naming: Naming,
    regime: str,
    *,
    path: object | None,
    client: str,
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Which columns are features, and which are ignored and why."""
    seen: set[str] = set()
    for name in columns:
        if name in seen:
            raise InputError(
                f"the column {name!r} appears twice",
                "Name every column once.",
                client=client,
                path=path,
            )
        seen.add(name)
    if regime not in seen:
        raise InputError(
            f"there is no column {regime!r}; it has {_few(columns)}",
            "Name the column that holds the regime of each row with --regime or in study.toml. "
            f"{did_you_mean(regime, columns) or _only_words(not_numbers)}".strip(),
            client=client,
            path=path,
        )
    unknown = [name for name in naming.ignore if name not in seen]
    if unknown:
        raise InputError(
            f"there is no column {unknown[0]!r} to ignore",
            did_you_mean(unknown[0], columns) or "Check the spelling.",
            client=client,
            path=path,
        )
    ignored = {}
    for name in columns:
        if name == regime:
            continue
        if name in naming.ignore:
            ignored[name] = "as asked"
        elif name in not_numbers:
            ignored[name] = not_numbers[name]
        elif name.strip() == "" or name == "Unnamed: 0" or name.startswith("__index_level_"):
            ignored[name] = "a row index"
    features = tuple(n for n in columns if n != regime and n not in ignored)
    if not features:
        raise InputError(
            "there is no numeric column beside the regime",
            "Every feature is a numeric column of the table.",
            client=client,
            path=path,
        )
    return features, ignored


def warn_of_truths(findings: Sequence[Finding], *, stacklevel: int) -> None:
    """Warn of columns of truth values where the findings are not kept.

    Text and dates are plainly no measurements; a truth value may be one, or a flag of the row.
    """
    truths = [f for f in findings if f.check == "ignored-column" and f.message.endswith(TRUTHS)]
    if truths:
        more = f" (and {len(truths) - 1} more like it)" if len(truths) > 1 else ""
        warnings.warn(
            f"client {truths[0].client!r}: {truths[0].message}{more}. Convert it to 0 and 1 if it "
            "is a measurement; drop it if not.",
            stacklevel=stacklevel + 1,
        )


def client_from_source(
    source: Source,
    *,
    name: str,
    naming: Naming,
    n_latent: int | None,
    path: object | None = None,
) -> tuple[Client, list[Finding]]:
    """Read a table to its end; the client, and what was noticed on the way."""
    gather = _Gather(source.features, naming, name, path)
    for chunk in source.chunks():
        gather.add(chunk)
    control, interventions = gather.moments()
    findings = [
        Finding(
            "ignored-column",
            "info",
            f"the column {column!r} is no feature: it is {why}",
            "Nothing to do if that is so; otherwise encode it as numbers.",
            client=name,
        )
        for column, why in source.ignored.items()
        if why != "as asked"
    ]
    kept, constant = _varying(source.features, control, interventions)
    if not kept.any():
        raise InputError(
            "every column is constant",
            "Check the file: it shows no variation.",
            client=name,
            path=path,
        )
    if constant:
        findings.append(
            Finding(
                "constant-column",
                "info",
                f"dropped {_few(constant)}: constant over all regimes",
                "Nothing to do, unless a sensor was meant to move.",
                value=float(len(constant)),
                client=name,
            )
        )
        control = _select(control, kept)
        interventions = {k: [_select(m, kept) for m in ms] for k, ms in interventions.items()}
    features = [f for f, keep in zip(source.features, kept, strict=True) if keep]
    try:
        client = Client.from_moments(
            name,
            control=control,
            interventions=interventions,
            n_latent=n_latent,
            features=features,
            control_name=naming.control,
        )
    except InputError as error:
        # The same error, with the file beside the client.
        raise InputError(
            error.what, error.remedy, client=error.client, regime=error.regime, path=path
        ) from None
    return client, findings


class _Gather:
    """One stream of moments per value of the regime column."""

    def __init__(
        self, features: tuple[str, ...], naming: Naming, client: str, path: object | None
    ) -> None:
        self.features, self.naming, self.client, self.path = features, naming, client, path
        self.streams: dict[str, MomentStream] = {}
        self.seen = 0

    def fail(self, what: str, remedy: str, regime: str | None = None) -> InputError:
        return InputError(what, remedy, client=self.client, regime=regime, path=self.path)

    def add(self, chunk: Chunk) -> None:
        codes, rows = chunk.codes, chunk.rows
        if not len(codes):
            return
        lowest, highest = int(codes.min()), int(codes.max())
        if lowest < 0:
            row = self.seen + int(np.argmax(codes < 0)) + 1
            raise self.fail(
                f"row {row} has no regime", "Give every row its regime, or remove the row."
            )
        self._check_values(chunk)
        if lowest == highest:
            self._stream(chunk.regimes[lowest]).add(rows)
        else:
            # Narrow codes are sorted by counting, not by comparing.
            narrow = codes.astype(np.min_scalar_type(highest))
            sorted_rows = rows[np.argsort(narrow, kind="stable")]
            sizes = np.bincount(narrow)
            ends = np.cumsum(sizes)
            for code in np.flatnonzero(sizes):
                part = sorted_rows[ends[code] - sizes[code] : ends[code]]
                self._stream(chunk.regimes[int(code)]).add(part)
        self.seen += len(codes)

    def _stream(self, regime: str) -> MomentStream:
        known = self.streams.get(regime)
        if known is not None:
            return known
        if not regime.strip():
            raise self.fail("a row has an empty regime", "Give every row its regime.")
        if len(self.streams) >= MOST_REGIMES:
            raise self.fail(
                f"the regime column has more than {MOST_REGIMES} different values",
                "Name the right column with --regime, or merge labels.",
            )
        stream = MomentStream(len(self.features), parts=regime == self.naming.control)
        self.streams[regime] = stream
        return stream

    def _check_values(self, chunk: Chunk) -> None:
        rows = chunk.rows
        # Two passes that stay in fast code; nan makes both nan. The search follows only if needed.
        low, high = float(rows.min()), float(rows.max())
        if low >= -LARGEST_VALUE and high <= LARGEST_VALUE:
            return
        bad = ~(np.abs(rows) <= LARGEST_VALUE)
        row, column = (int(i) for i in np.argwhere(bad)[0])
        value = float(rows[row, column])
        where = f"column {self.features[column]!r}, row {self.seen + row + 1}"
        regime = chunk.regimes[int(chunk.codes[row])]
        count = int(np.count_nonzero(bad))
        more = f" (and {count - 1} more like it)" if count > 1 else ""
        if np.isnan(value):
            raise self.fail(
                f"a value is missing in {where}{more}",
                "Drop such rows, impute them, or leave the column out with --ignore.",
                regime,
            )
        if np.isinf(value):
            raise self.fail(
                f"a value is infinite in {where}{more}", "Drop such rows or mend them.", regime
            )
        raise self.fail(
            f"the value {value:.3g} in {where} is too large for moments{more}",
            "Rescale the column.",
            regime,
        )

    def moments(self) -> tuple[Moments, dict[str, list[Moments]]]:
        """Moments of the control and of every label."""
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
                f"{_few(values)})",
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
        labels: dict[str, list[Moments]] = {}
        # Sorted: the order of rows in a file must not matter.
        for value in sorted(self.streams):
            label = naming.rename.get(value, value)
            labels.setdefault(label, []).append(Moments.from_stream(self.streams[value]))
        return Moments.from_stream(control), labels


def _varying(
    features: tuple[str, ...], control: Moments, interventions: Mapping[str, Sequence[Moments]]
) -> tuple[npt.NDArray[np.bool_], list[str]]:
    regimes = [control, *(m for ms in interventions.values() for m in ms)]
    variance = np.max([np.diagonal(m.covariance) for m in regimes], axis=0)
    means = np.array([m.mean for m in regimes])
    # A constant c leaves a variance of about (eps·c)² by rounding.
    size = np.abs(means).max(axis=0)
    rounding = 4 * np.finfo(np.float64).eps * size
    kept = (variance > rounding**2) | (np.ptp(means, axis=0) > rounding)
    return kept, [f for f, keep in zip(features, kept, strict=True) if not keep]


def _select(moments: Moments, kept: npt.NDArray[np.bool_]) -> Moments:
    return Moments(
        moments.n,
        moments.mean[kept],
        moments.covariance[np.ix_(kept, kept)],
        None if moments.third is None else moments.third[kept],
        None if moments.fourth is None else moments.fourth[kept],
        tuple(_select(part, kept) for part in moments.parts),
    )


def _only_words(not_numbers: Mapping[str, str]) -> str:
    """A regime is text: where one column is, it is probably that."""
    return f"Is it {next(iter(not_numbers))!r}?" if len(not_numbers) == 1 else ""


def _usual_control(values: Sequence[str]) -> str:
    usual = [v for v in values if v.strip().casefold() in USUAL_CONTROLS]
    return f"Is it {usual[0]!r}?" if len(usual) == 1 else ""


def _few(names: Sequence[str], most: int = 6) -> str:
    return few((repr(name[:60]) for name in names), most)
