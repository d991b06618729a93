"""Moments of a folder of Parquet files, reduced by the workers of a Dask cluster.

Each worker turns whole files into moments, which are merged two by two in the order of the files,
also by workers; rows never travel. Every worker must see the folder under the same path, and have
this package. A file whose worker is lost is reduced again by another one. The directions of a wide
table are found before, by one read in this process.

Counts, means, covariances and higher moments are those of one process up to rounding. Stretches of
rows, by whose differences serial dependence is measured, are those of each file.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from jigsaw_crl.base.cluster import completed, connected
from jigsaw_crl.study.arrow import parquet_table
from jigsaw_crl.study.collected import Along, Collected
from jigsaw_crl.study.data_file import open_data, parquet_parts
from jigsaw_crl.study.manifest import Reading
from jigsaw_crl.study.regimes import collect
from jigsaw_crl.study.table import Table


def collect_on_cluster(cluster: Any, table: Table, along: Along | None) -> Collected:
    """What the rows of a folder of Parquet files give, each file read by a worker.

    Parameters
    ----------
    cluster : str or distributed.Client
        Address of the scheduler, such as ``"tcp://10.0.0.1:8786"``, or a connected client.
    table : Table
        Its path is a folder that every worker has under the same path.
    along : Along or None
    """
    reading = table.reading
    asked = {"trim": reading.trim, "group": reading.group, "fill-missing": reading.missing == "em"}
    for option, given in asked.items():
        if given:
            raise reading.fail(
                f"--{option} looks at all rows of a regime together, and a cluster at each file",
                f"Drop --{option} or --cluster.",
            )
    if reading.path is None or not reading.path.is_dir():
        raise reading.fail("a cluster reduces a folder of Parquet files", "Name the folder.")
    path = reading.path.absolute()
    with connected(cluster) as connection:
        shared: Any = (reading.at(path), along)
        if along is not None:
            # Directions take megabytes: they are sent once to each worker, not with each file.
            (shared,) = connection.scatter([shared], broadcast=True, hash=False)
        files = [str(part) for part, _ in parquet_parts(path)]
        left = [connection.submit(_part, file, shared, pure=False) for file in files]
        while len(left) > 1:
            pairs = [left[i : i + 2] for i in range(0, len(left), 2)]
            left = [
                connection.submit(Collected.merge, *pair, pure=False) if len(pair) == 2 else pair[0]
                for pair in pairs
            ]
        found: Collected
        (found,) = completed(connection, left)
    found.reading = found.bad.reading = reading
    return found


def _part(part: str, shared: tuple[Reading, Along | None]) -> Collected:
    """What one file of a folder gives; this runs at a worker."""
    reading, along = shared
    assert reading.path is not None
    with open_data(reading.path) as data:
        table = parquet_table(data, reading, only=Path(part)).without_codes()
        table = replace(table, reading=table.reading.at(Path(part)))
        if reading.reduction is not None:
            table = table.choose(reading.reduction.columns)
        found = collect(table, along)
    for problem in found.bad.problems():
        raise problem
    return found
