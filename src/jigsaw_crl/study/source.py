"""A table that is read chunk by chunk, and what its columns and regimes are called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import few
from jigsaw_crl.client.reduction import Reduction
from jigsaw_crl.moments.row_options import Missing, RowOptions

__all__ = [
    "Chunk",
    "Codes",
    "Missing",
    "Naming",
    "Reading",
    "Source",
    "chunk_rows",
    "is_sparse",
]

# Chunks of half a million numbers (4 MB) fit the processor's cache; pyarrow reads several ahead.
_CHUNK_VALUES = 1 << 19

Codes = npt.NDArray[np.integer]


def chunk_rows(n_features: int) -> int:
    """Number of rows that a reader fetches at a time."""
    return max(256, _CHUNK_VALUES // max(n_features, 1))


def is_sparse(rows: object) -> bool:
    """Are these the rows of a scipy matrix? Only sources of wide tables have such rows."""
    return hasattr(rows, "toarray")


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows and their regimes: row i is in `regimes[codes[i]]`, in none if the code is -1.

    `batches` and `groups` hold the names and codes of their batches and groups likewise; None
    without such a column.
    """

    regimes: Sequence[str]
    codes: Codes
    rows: npt.NDArray[np.number]
    batches: tuple[Sequence[str], Codes] | None = None
    groups: tuple[Sequence[str], Codes] | None = None

    def select(self, rows: BoolArray | slice) -> Chunk:
        """Some of the rows."""

        def some(coded: tuple[Sequence[str], Codes] | None) -> tuple[Sequence[str], Codes] | None:
            return None if coded is None else (coded[0], coded[1][rows])

        own = some(self.batches), some(self.groups)
        return Chunk(self.regimes, self.codes[rows], self.rows[rows], *own)


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
        numbers = [number for text in na if (number := _as_number(text)) is not None]

        def chunks() -> Iterator[Chunk]:
            for chunk in self.chunks():
                if not is_sparse(chunk.rows):
                    missing = np.isin(chunk.rows, numbers)
                    chunk = replace(chunk, rows=np.where(missing, np.nan, chunk.rows))
                yield chunk

        return replace(self, chunks=chunks) if numbers else self


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@dataclass(frozen=True)
class Naming:
    """Names of columns and regimes in a client's file.

    Parameters
    ----------
    regime : str or None
        Column with the regime; None for the default of the file format.
    control : str
        Its value on observational rows.
    rename : mapping of str to str
        From values of the regime column to labels; several values of one label are its strengths.
    ignore : tuple of str
        Columns that are not features.
    strict_rename : bool
        Raise an error if a renamed value does not occur.
    batch : str or None
        Column with the batch of each row, if there is one.
    group : str or None
        Column with the group of each row (subject, run), if there is one.
    trim : float
        Share of the rows of each regime to leave out: those that lie farthest out.
    missing : {"refuse", "drop", "em"}
        Raise an error for a missing value, leave its row out, or use all values by EM.
    strict_ignore : bool
        Raise an error if a column to ignore does not occur.
    na : tuple of str
        Values that stand for a missing one, beside an empty cell.
    """

    regime: str | None = None
    control: str = "control"
    rename: Mapping[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    strict_rename: bool = False
    batch: str | None = None
    group: str | None = None
    trim: float = 0.0
    missing: Missing = "refuse"
    strict_ignore: bool = True
    na: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.asked  # noqa: B018 (it checks its values)

    @property
    def asked(self) -> RowOptions:
        """What is asked for when rows are read."""
        return RowOptions(self.trim, self.missing, self.group is not None, self.batch is not None)

    def ignored_among(self, names: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Columns to ignore, and those of them that the file lacks and may lack."""
        known = set(names)
        lacking = () if self.strict_ignore else tuple(n for n in self.ignore if n not in known)
        return tuple(n for n in self.ignore if n not in lacking), lacking

    @property
    def beside(self) -> dict[str, str]:
        """The columns "batch" and "group", where they are named."""
        both = {"batch": self.batch, "group": self.group}
        return {what: name for what, name in both.items() if name is not None}

    def column(self, default: str = "regime") -> str:
        """Name of the regime column."""
        return default if self.regime is None else self.regime


@dataclass(frozen=True, eq=False)
class Reading:
    """How the table of one client is read.

    Parameters
    ----------
    client : str
        The client's name.
    naming : Naming
    path : Path or None
        The file; None for a table in memory.
    n_latent : int or None
    reduction : Reduction or None
        Directions along which rows are read, if they are known before.
    """

    client: str
    naming: Naming
    path: Path | None = None
    n_latent: int | None = None
    reduction: Reduction | None = None

    def fail(self, what: str, remedy: str, regime: str | None = None) -> InputError:
        """The error about this table."""
        return InputError(what, remedy, client=self.client, regime=regime, path=self.path)
