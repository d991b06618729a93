"""Tables in memory: pandas, polars, pyarrow and other data frames that narwhals supports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from jigsaw_crl.base.arrays import IntArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.client.checks import Kinds
from jigsaw_crl.client.client import CONTROL, Client
from jigsaw_crl.study.columns import BOOLEAN, feature_columns
from jigsaw_crl.study.ignored import warn_of_ignored
from jigsaw_crl.study.problems import Problems, passable, read_through
from jigsaw_crl.study.regimes import read_source
from jigsaw_crl.study.source import Chunk, Missing, Naming, Reading, Source, chunk_rows

__all__ = ["client_from_table"]


def client_from_table(
    frame: Any,
    *,
    regime: str = "regime",
    control: str = CONTROL,
    name: str,
    n_latent: int | None = None,
    ignore: Sequence[str] = (),
    batch: str | None = None,
    group: str | None = None,
    trim: float = 0.0,
    missing: Missing = "refuse",
    interventions: Kinds | None = None,
) -> Client:
    """A client from a table in memory; see `Client.from_table`."""
    naming = Naming(
        regime=regime, control=str(control), ignore=tuple(ignore), batch=batch, group=group,
        trim=trim, missing=missing,
    )  # fmt: skip
    table, problems = _narwhals_frame(frame, name), Problems()

    def read_as(naming: Naming, problems: Problems) -> tuple[Client, list[Finding]] | None:
        reading = Reading(name, naming, n_latent=n_latent)
        return read_source(_source(table, reading), reading, problems)

    read = read_through(read_as, naming, problems)
    problems.raise_all(client=name)
    assert read is not None
    client, findings = read
    warn_of_ignored(findings, stacklevel=3)
    return (
        client if interventions is None else client.with_interventions(interventions, strict=True)
    )


def _source(table: Any, reading: Reading) -> Source:
    """The rows of a table; problems of its columns are one error."""
    naming, problems = reading.naming, Problems()
    named = {"regime": naming.column(), **naming.beside}
    skipped = {*named.values(), *naming.ignore}
    not_numbers, spoilt = {}, naming.ignore
    for column, kind in table.schema.items():
        if column not in skipped and not kind.is_numeric():
            values = table[column].to_list()
            fault = _numbers_among_text(values, column, reading)
            if fault is not None:
                spoilt = (*spoilt, column)
                problems.note(passable(fault, ignore=spoilt))
            boolean = any(isinstance(v, bool | np.bool_) for v in values)
            not_numbers[column] = BOOLEAN if boolean else f"of type {kind}"[:80]
    for what, column in named.items():
        if column in table.columns and table[column].dtype.is_float():
            remedy = f"Store {what}{'es' if what == 'batch' else 's'} as text."
            said = f"the {what} column {column!r} holds decimal numbers"
            problems.note(reading.fail(said, remedy))
    with problems.noted():
        features, ignored = feature_columns(
            list(table.columns), not_numbers, naming.ignore, reading
        )
    problems.raise_all(client=reading.client)
    return Source(features, partial(_chunks, table, features, named), ignored)


def _narwhals_frame(frame: Any, client: str) -> Any:
    """The table as an eager narwhals frame whose columns are named by text."""
    # Imported here because narwhals takes a tenth of a second to load.
    import narwhals as nw
    from narwhals.exceptions import NarwhalsError

    try:
        table = nw.from_native(frame)
    except (TypeError, NarwhalsError) as error:
        raise InputError(
            f"the {type(frame).__name__} cannot be used as a table ({str(error)[:100]})",
            "Pass a pandas, polars or pyarrow table with one name per column.",
            client=client,
        ) from None
    if isinstance(table, nw.LazyFrame):
        table = table.collect()
    if not all(isinstance(column, str) for column in table.columns):
        # pandas numbers the columns of a plain array.
        table = table.rename({column: str(column) for column in table.columns})
    return table


def _coded(column: Any) -> tuple[list[str], IntArray]:
    """The values of a column as text, and the code of each row; -1 where it is missing."""
    # Imported here because pandas takes half a second to load.
    import pandas as pd

    codes, values = pd.factorize(np.asarray(column.to_list(), dtype=object))
    return [str(v) for v in values], codes


def _chunks(table: Any, features: tuple[str, ...], named: Mapping[str, str]) -> Iterator[Chunk]:
    coded = {what: _coded(table[column]) for what, column in named.items()}
    step = chunk_rows(len(features))
    for start in range(0, len(table), step):
        part = table[start : start + step]
        rows = np.empty((len(part), len(features)), order="F")
        for i, name in enumerate(features):
            rows[:, i] = part[name].to_numpy()
        own = {k: (names, codes[start : start + step]) for k, (names, codes) in coded.items()}
        yield Chunk(*own["regime"], rows, own.get("batch"), own.get("group"))


def _numbers_among_text(values: list[Any], name: str, reading: Reading) -> InputError | None:
    """The error of a column that mixes numbers and text: it is a spoilt feature."""
    fail = reading.fail
    if any(isinstance(v, complex) for v in values):
        return fail(
            f"the column {name!r} holds complex numbers",
            "Store the real and the imaginary part as two columns, or drop the column.",
        )
    if any(isinstance(v, int | float) and not isinstance(v, bool) and v == v for v in values):
        strange = next((v for v in values if isinstance(v, str)), None)
        what = "objects" if strange is None else repr(strange[:60])
        return fail(
            f"the column {name!r} holds {what} among numbers",
            "Convert the column to numbers, or drop it.",
        )
    return None
