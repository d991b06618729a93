"""Tables in memory: pandas, polars, pyarrow and whatever else narwhals knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.client.client import CONTROL, Client
from jigsaw_crl.study.regimes import (
    TRUTHS,
    Chunk,
    Naming,
    chunk_rows,
    client_from_source,
    feature_columns,
    warn_of_truths,
)

__all__ = ["client_from_table"]


@dataclass(frozen=True, eq=False)
class _FrameSource:
    frame: Any
    features: tuple[str, ...]
    regime: str
    client: str
    ignored: Mapping[str, str] = field(default_factory=dict)

    def chunks(self) -> Iterator[Chunk]:
        import pandas as pd

        column = self.frame[self.regime]
        codes, values = pd.factorize(np.asarray(column.to_list(), dtype=object))
        step = chunk_rows(len(self.features))
        for start in range(0, len(codes), step):
            part = self.frame[start : start + step]
            rows = np.empty((len(part), len(self.features)), order="F")
            for i, name in enumerate(self.features):
                rows[:, i] = part[name].to_numpy()
            yield Chunk([str(v) for v in values], codes[start : start + step], rows)


def client_from_table(
    frame: Any,
    *,
    regime: str = "regime",
    control: str = CONTROL,
    name: str,
    n_latent: int | None = None,
) -> Client:
    """A client from a table in memory; see `Client.from_table`."""
    import narwhals as nw
    from narwhals.exceptions import NarwhalsError

    try:
        table = nw.from_native(frame)
    except (TypeError, NarwhalsError) as error:
        columns = _column_names(frame)
        if columns is not None and len(set(columns)) < len(columns):
            twice = next(c for c in columns if columns.count(c) > 1)
            raise InputError(
                f"the column {twice!r} appears twice", "Name every column once.", client=name
            ) from None
        raise InputError(
            f"a {type(frame).__name__} is no table ({' '.join(str(error).split())[:100]})",
            "Pass a pandas, polars or pyarrow table.",
            client=name,
        ) from None
    if isinstance(table, nw.LazyFrame):
        table = table.collect()
    if not all(isinstance(column, str) for column in table.columns):
        # pandas counts the columns of a bare array; features are named by text.
        table = table.rename({column: str(column) for column in table.columns})
    not_numbers = {}
    for column, kind in table.schema.items():
        if column != regime and not kind.is_numeric():
            values = table[column].to_list()
            _refuse_numbers_among_text(values, column, name)
            truths = any(isinstance(v, bool | np.bool_) for v in values)
            not_numbers[column] = TRUTHS if truths else f"of type {kind}"[:80]
    naming = Naming(regime=regime, control=str(control))
    features, ignored = feature_columns(
        list(table.columns), not_numbers, naming, regime, path=None, client=name
    )
    if table[regime].dtype.is_float():
        raise InputError(
            f"the regime column {regime!r} holds decimal numbers",
            "Store regimes as text.",
            client=name,
        )
    source = _FrameSource(table, features, regime, name, ignored)
    client, findings = client_from_source(source, name=name, naming=naming, n_latent=n_latent)
    warn_of_truths(findings, stacklevel=3)
    return client


def _column_names(frame: Any) -> list[Any] | None:
    for attribute in ("column_names", "columns"):
        names = getattr(frame, attribute, None)
        if names is not None:
            return list(names)
    return None


def _refuse_numbers_among_text(values: list[Any], name: str, client: str) -> None:
    """A column that mixes numbers and text is a spoilt feature, not a text column."""
    if any(isinstance(v, complex) for v in values):
        raise InputError(
            f"the column {name!r} holds complex numbers",
            "Store the real and the imaginary part as two columns, or drop the column.",
            client=client,
        )
    if not any(isinstance(v, int | float) and not isinstance(v, bool) and v == v for v in values):
        return
    strange = next((v for v in values if isinstance(v, str)), None)
    what = "objects" if strange is None else repr(strange[:60])
    raise InputError(
        f"the column {name!r} holds {what} among numbers",
        "Convert the column to numbers, or drop it.",
        client=client,
    )
