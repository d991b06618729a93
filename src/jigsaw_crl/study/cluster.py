"""Moments of a folder of Parquet files, reduced by the workers of a Dask cluster.

Each worker turns whole files into moments, which are merged two by two in the order of the files,
also by workers; rows never travel. Every worker must see the folder under the same path, and have
this package. A file whose worker is lost is reduced again by another one. The directions of a wide
table are found before, by one read in this process.

Counts, means, covariances and higher moments are those of one process up to rounding. Stretches of
rows, by whose differences serial dependence is measured, are those of each file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jigsaw_crl.base.cluster import completed, connected
from jigsaw_crl.study.arrow import parquet_source
from jigsaw_crl.study.collected import Collected
from jigsaw_crl.study.data_file import open_data, parquet_parts
from jigsaw_crl.study.regimes import collect
from jigsaw_crl.study.source import Reading, Source
from jigsaw_crl.study.wide import Along

__all__ = ["collect_on_cluster"]


def collect_on_cluster(
    cluster: Any, source: Source, reading: Reading, along: Along | None
) -> Collected:
    """What the rows of a folder of Parquet files give, each file read by a worker.

    Parameters
    ----------
    cluster : str or distributed.Client
        Address of the scheduler, such as ``"tcp://10.0.0.1:8786"``, or a connected client.
    source : Source
    reading : Reading
        Its path is a folder that every worker has under the same path.
    along : Along or None
    """
    del source
    path = reading.path
    asked = {"trim": reading.trim, "group": reading.group, "fill-missing": reading.missing == "em"}
    for option, given in asked.items():
        if given:
            raise reading.fail(
                f"--{option} looks at all rows of a regime together, and a cluster at each file",
                f"Drop --{option} or --cluster.",
            )
    if path is None or not path.is_dir():
        raise reading.fail("a cluster reduces a folder of Parquet files", "Name the folder.")
    own = reading.at(path.absolute())
    with connected(cluster) as connection:
        shared: Any = (own, along)
        if along is not None:
            # Directions take megabytes: they are sent once to each worker, not with each file.
            (shared,) = connection.scatter([shared], broadcast=True, hash=False)
        left = [
            connection.submit(_part, str(part), shared, pure=False)
            for part, _ in parquet_parts(path.absolute())
        ]
        while len(left) > 1:
            pairs = [left[i : i + 2] for i in range(0, len(left), 2)]
            left = [
                connection.submit(Collected.merge, *pair, pure=False) if len(pair) == 2 else pair[0]
                for pair in pairs
            ]
        found: Collected
        (found,) = completed(connection, left)
    return found


def _part(part: str, shared: tuple[Reading, Along | None]) -> Collected:
    """What one file of a folder gives; this runs at a worker."""
    reading, along = shared
    assert reading.path is not None
    with open_data(reading.path) as data:
        source = parquet_source(data, reading, only=Path(part)).without(reading.na)
        own = reading.at(Path(part))
        if reading.reduction is not None:
            source = source.choose(reading.reduction.columns, own)
        found = collect(source, own, along)
    for problem in found.bad.problems():
        raise problem
    found.reading = found.bad.reading = reading
    return found
