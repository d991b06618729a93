"""Moments of a folder of Parquet files, reduced by the workers of a Dask cluster.

Each worker turns whole files into moments, which are merged two by two in the order of the files,
also by workers; rows never travel. Every worker must see the folder under the same path, and have
this package. A file whose worker is lost is reduced again by another one.

Counts, means, covariances and higher moments are those of one process up to rounding. Stretches of
rows, by whose differences serial dependence is measured, are those of each file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.cluster import completed, connected
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.client.checks import check_names
from jigsaw_crl.client.client import Client
from jigsaw_crl.moments.regime import Moments
from jigsaw_crl.study.arrow import parquet_source
from jigsaw_crl.study.columns import quoted
from jigsaw_crl.study.data_file import open_data
from jigsaw_crl.study.folder import client_name
from jigsaw_crl.study.limits import parquet_parts
from jigsaw_crl.study.regime_streams import RegimeStreams, rows_left_out
from jigsaw_crl.study.regimes import varying_columns
from jigsaw_crl.study.row_order import FEWEST_RISES
from jigsaw_crl.study.source import Naming
from jigsaw_crl.study.too_small import large_enough

__all__ = ["read_client_on_cluster"]

Cell = tuple[str, str]


def read_client_on_cluster(
    path: str | Path,
    cluster: Any,
    *,
    regime: str | None = None,
    control: str | None = None,
    name: str | None = None,
    n_latent: int | None = None,
    ignore: Sequence[str] = (),
    batch: str | None = None,
    missing: Any = None,
) -> tuple[Client, list[Finding]]:
    """One client from a folder of Parquet files, each reduced by a worker of a Dask cluster.

    Parameters
    ----------
    path : path
        The folder, under a path that every worker has.
    cluster : str or distributed.Client
        Address of the scheduler, such as ``"tcp://10.0.0.1:8786"``, or a connected client.
    regime, control, name, n_latent, ignore, batch : optional
        As for `read_client`.
    missing : {"refuse", "drop"}, optional

    Returns
    -------
    client : Client
    findings : list of Finding
        About regimes and columns that were left out.
    """
    folder = Path(path).absolute()
    client = client_name(folder) if name is None else name
    naming = Naming(
        regime, control or "control", ignore=tuple(ignore), batch=batch, missing=missing or "refuse"
    )
    if naming.missing == "em":
        raise InputError(
            "EM looks at all rows of a regime together, and a cluster at each file",
            'Leave incomplete rows out with missing="drop" (--drop-missing).',
        )
    if not folder.is_dir():
        raise InputError(
            "a cluster reduces a folder of Parquet files", "Name the folder.", path=folder
        )
    with open_data(folder) as data:
        source = parquet_source(data, naming, client)
    parts = [str(file) for file, _ in parquet_parts(folder)]
    with connected(cluster) as connection:
        merged = _tree(connection, parts, (str(folder), naming, client))
    return _client(merged, source.features, naming, client, n_latent, folder)


@dataclass(frozen=True, eq=False)
class _Reduced:
    """What some of the files hold.

    Parameters
    ----------
    cells : mapping of (regime, batch) to Moments
    level : array of bool, shape (n_features,)
        Columns that fall nowhere from row to row.
    rises : array of int, shape (n_features,)
        Most rises of such a column in one regime and file.
    first, last : mapping of (regime, batch) to array
        First and last row.
    incomplete : Counter
        Rows with missing values that were left out, by regime.
    """

    cells: Mapping[Cell, Moments]
    level: BoolArray
    rises: npt.NDArray[np.int64]
    first: Mapping[Cell, npt.NDArray[np.number]]
    last: Mapping[Cell, npt.NDArray[np.number]]
    incomplete: Counter[str]


def _reduced(part: str, folder: str, naming: Naming, client: str) -> _Reduced:
    """The moments of one file; this runs at a worker."""
    first: dict[Cell, npt.NDArray[np.number]] = {}
    with open_data(Path(folder)) as data:
        source = parquet_source(data, naming, client, only=Path(part))
        collected = RegimeStreams(source.features, naming, client, part)
        for chunk in source.chunks():
            collected.add(chunk)
            names, own = (("",), None) if chunk.batches is None else chunk.batches
            both = chunk.codes if own is None else chunk.codes.astype(np.int64) * len(names) + own
            for code, row in zip(*np.unique(both, return_index=True), strict=True):
                i, j = divmod(int(code), len(names))
                first.setdefault((chunk.regimes[i], names[j]), chunk.rows[row])
    for problem in collected.bad.problems():
        raise problem
    order = collected.order
    level = np.zeros(len(source.features), dtype=bool)
    level[order.left] = True
    cells = {
        (value, b): stream.moments()
        for value, streams in collected.streams.items()
        for b, stream in streams.items()
    }
    last: Mapping[Any, Any] = order.last
    return _Reduced(cells, level, order.rises, first, dict(last), collected.bad.incomplete)


def _merged(one: _Reduced, other: _Reduced) -> _Reduced:
    """Both together, the rows of `other` after those of `one`; this runs at a worker."""
    cells = dict(one.cells)
    level = one.level & other.level
    for cell, moments in other.cells.items():
        if cell not in cells:
            cells[cell] = moments
            continue
        cells[cell] = cells[cell].merge(moments)
        if cell in one.last and cell in other.first:
            level = level & np.asarray(one.last[cell] <= other.first[cell])
    return _Reduced(
        cells,
        level,
        np.maximum(one.rises, other.rises),
        {**other.first, **one.first},
        {**one.last, **other.last},
        one.incomplete + other.incomplete,
    )


def _tree(connection: Any, parts: list[str], about: tuple[str, Naming, str]) -> _Reduced:
    """Reduce all files, and merge neighbours until one is left."""
    left = [connection.submit(_reduced, part, *about, pure=False) for part in parts]
    while len(left) > 1:
        pairs = [left[i : i + 2] for i in range(0, len(left), 2)]
        left = [
            connection.submit(_merged, *pair, pure=False) if len(pair) == 2 else pair[0]
            for pair in pairs
        ]
    found: _Reduced
    (found,) = completed(connection, left)
    return found


def _client(
    merged: _Reduced,
    features: Sequence[str],
    naming: Naming,
    name: str,
    n_latent: int | None,
    path: Path,
) -> tuple[Client, list[Finding]]:
    """The client of merged moments, without columns that are constant or rise throughout."""
    regimes: dict[str, dict[str, Moments]] = {}
    for (value, batch), moments in sorted(merged.cells.items()):
        regimes.setdefault(value, {})[batch] = moments
    if naming.control not in regimes:
        raise InputError(
            f"there are no control rows: no regime is {naming.control!r} "
            f"(found {quoted(list(regimes))})",
            "Name the value of observational rows with --control.",
            client=name,
            path=path,
        )
    whole = {
        value: own[""] if naming.batch is None else Moments.of_batches(own)
        for value, own in regimes.items()
    }
    control = whole.pop(naming.control)
    interventions, findings = large_enough({k: [m] for k, m in whole.items()}, name)
    findings += rows_left_out("incomplete-rows", "with missing values", merged.incomplete, name)
    rising = merged.level & (merged.rises >= FEWEST_RISES)
    kept = varying_columns(control, interventions) & ~rising
    unused = [f for f, keep in zip(features, kept, strict=True) if not keep]
    if unused:
        findings.append(
            Finding(
                "constant-column",
                "info",
                f"dropped {quoted(unused)}: constant over all regimes, or rising from row to row",
                "Nothing to do, unless it is a measurement; then check the sensor.",
                value=float(len(unused)),
                client=name,
            )
        )
        control = control.select(kept)
        interventions = {k: [m.select(kept) for m in ms] for k, ms in interventions.items()}
    try:
        check_names(name, interventions, naming.control)
        client = Client.from_moments(
            name,
            control=control,
            interventions=interventions,
            n_latent=n_latent,
            features=[f for f, keep in zip(features, kept, strict=True) if keep],
            control_name=naming.control,
        )
    except InputError as error:
        raise error.located(path=path) from None
    return client, findings
