"""A table that is read chunk by chunk, and how one client's table is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray, IntArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import few
from jigsaw_crl.client.checks import Kinds
from jigsaw_crl.client.client import CONTROL
from jigsaw_crl.client.reduction import Reduction
from jigsaw_crl.moments.accumulator import Coded
from jigsaw_crl.moments.preparing import Missing, RowOptions

__all__ = [
    "ENDINGS",
    "Chunk",
    "Missing",
    "Reading",
    "Source",
    "chunk_rows",
    "is_sparse",
    "plain_rows",
]

ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".npz", ".h5ad")
# Chunks of half a million numbers (4 MB) fit the processor's cache; pyarrow reads several ahead.
_CHUNK_VALUES = 1 << 19


def chunk_rows(n_features: int) -> int:
    """Number of rows that a reader fetches at a time."""
    return max(256, _CHUNK_VALUES // max(n_features, 1))


def is_sparse(rows: object) -> bool:
    """Are these the rows of a scipy matrix? Only sources of wide tables have such rows."""
    return hasattr(rows, "toarray")


def plain_rows(rows: npt.NDArray[np.number]) -> npt.NDArray[np.number]:
    """The rows as float32 if they are float32, otherwise as float64."""
    return rows if rows.dtype == np.float32 else rows.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows of a table.

    Parameters
    ----------
    rows : array, shape (n, features)
    beside : mapping of str to (names, codes)
        The "regime" of each row, and the "batch" and "group" if such columns are named: that of
        row i is `names[codes[i]]`, and missing if the code is -1.
    """

    rows: npt.NDArray[np.number]
    beside: Mapping[str, Coded]

    def select(self, rows: BoolArray | IntArray | slice) -> Chunk:
        """Some of the rows."""
        own = {what: (names, codes[rows]) for what, (names, codes) in self.beside.items()}
        return Chunk(self.rows[rows], own)

    def regimes(self, rows: BoolArray) -> list[str]:
        """The regimes of some rows, one for each."""
        names, codes = self.beside["regime"]
        return [names[code] for code in codes[rows].tolist()]


@dataclass(frozen=True, eq=False)
class Source:
    """A table that is read chunk by chunk.

    Parameters
    ----------
    features : tuple of str
    chunks : callable
        Returns an iterator over the rows.
    ignored : mapping of str to str
        Columns that are not features, and why.
    lacking : tuple of str
        Columns to ignore that the table does not have.
    """

    features: tuple[str, ...]
    chunks: Callable[[], Iterator[Chunk]]
    ignored: Mapping[str, str] = field(default_factory=dict)
    lacking: tuple[str, ...] = ()

    def choose(self, features: Sequence[str], reading: Reading) -> Source:
        """The same with these features only, in this order."""
        if tuple(features) == self.features:
            return self
        position = {name: i for i, name in enumerate(self.features)}
        missing = [name for name in features if name not in position]
        if missing:
            raise reading.fail(
                f"columns are missing: {few(missing)}",
                "Pass a table with the columns of the earlier rows.",
            )
        chosen = [position[name] for name in features]

        def chunks() -> Iterator[Chunk]:
            for chunk in self.chunks():
                yield replace(chunk, rows=chunk.rows[:, chosen])

        return replace(self, features=tuple(features), chunks=chunks)

    def without(self, na: Sequence[str]) -> Source:
        """The same, with NaN for the numbers among the values that stand for a missing one."""
        numbers = []
        for text in na:
            try:
                numbers.append(float(text))
            except ValueError:
                continue

        def chunks() -> Iterator[Chunk]:
            for chunk in self.chunks():
                if not is_sparse(chunk.rows):
                    missing = np.isin(chunk.rows, numbers)
                    chunk = replace(chunk, rows=np.where(missing, np.nan, chunk.rows))
                yield chunk

        return replace(self, chunks=chunks) if numbers else self


@dataclass(frozen=True, eq=False)
class Reading:
    """How the table of one client is read.

    Parameters
    ----------
    path : Path or None
        The file; None for a table in memory.
    name : str or None
        The client's name; None for that of its file.
    regime : str or None
        Column with the regime; None for the default of the file format.
    control : str
        Its value on observational rows.
    rename : mapping of str to str
        From values of the regime column to labels; several values of one label are its strengths.
    ignore : tuple of str
        Columns that are not features.
    batch, group : str or None
        Columns with the batch and the group (subject, run) of each row, if there are such.
    trim : float
        Share of the rows of each regime to leave out: those that lie farthest out.
    missing : {"refuse", "drop", "em"}
        Raise an error for a missing value, leave its row out, or use all values by EM.
    na : tuple of str
        Values that stand for a missing one, beside an empty cell.
    covariates : tuple of str
        Columns whose linear part is taken off the features.
    up, units : mapping of str to str
        The column that a label should raise, and units of columns; others are ignored.
    n_latent : int or None
    interventions : Kinds or None
        Which interventions are hard, of this client alone.
    strict_rename, strict_ignore : bool
        Raise an error if a renamed value, or a column to ignore, does not occur.
    reduction : Reduction or None
        Directions along which rows are read, if they are known before.
    """

    path: Path | None
    name: str | None = None
    regime: str | None = None
    control: str = CONTROL
    rename: Mapping[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    batch: str | None = None
    group: str | None = None
    trim: float = 0.0
    missing: Missing = "refuse"
    na: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()
    up: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    n_latent: int | None = None
    interventions: Kinds | None = None
    strict_rename: bool = False
    strict_ignore: bool = True
    reduction: Reduction | None = None

    def __post_init__(self) -> None:
        self.asked  # noqa: B018 (it checks its values)

    @property
    def asked(self) -> RowOptions:
        """What is asked for when rows are read."""
        return RowOptions(self.trim, self.missing, self.group is not None, self.batch is not None)

    @property
    def client(self) -> str:
        """The client's name: by default that of its file, without the ending."""
        if self.name is not None or self.path is None:
            return self.name or ""
        name = self.path.name
        if not self.path.is_dir():
            folded = name.casefold()
            ending = max((e for e in ENDINGS if folded.endswith(e)), key=len, default="")
            name = name[: len(name) - len(ending)]
        return name.removesuffix(".moments") or name

    def columns(self, default: str = "regime") -> dict[str, str]:
        """The columns of the "regime", "batch" and "group", where there are such."""
        own = {"regime": self.regime or default, "batch": self.batch, "group": self.group}
        return {what: name for what, name in own.items() if name is not None}

    def at(self, path: Path) -> Reading:
        """The same client, read from another file."""
        return replace(self, path=path, name=self.client)

    def fail(self, what: str, remedy: str, regime: str | None = None) -> InputError:
        """The error about this table."""
        return InputError(what, remedy, client=self.client, regime=regime, path=self.path)
