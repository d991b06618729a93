"""Moments of a folder of Parquet files, reduced by the workers of a Dask cluster.

Each worker turns whole files into moments, which are merged two by two in the order of the files,
also by workers; rows never travel. Every worker must see the folder under the same path, and have
this package. A file whose worker is lost is reduced again by another one. The directions of a wide
table are found before, by one read in this process.

Counts, means, covariances and higher moments are those of one process up to rounding. Stretches of
rows, by whose differences serial dependence is measured, are those of each file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from jigsaw_crl.base.errors import InputError, import_optional
from jigsaw_crl.study.collected import Collected
from jigsaw_crl.study.files import Part
from jigsaw_crl.study.regimes import collect
from jigsaw_crl.study.table import Table

# Seconds to wait for the scheduler, and for a first worker.
PATIENCE = 10


def collect_on_cluster(table: Table) -> Collected:
    """What the rows of a folder of Parquet files give, each file read by a worker.

    The cluster of its reading is the address of the scheduler, such as ``"tcp://10.0.0.1:8786"``,
    or a connected client. Every worker has the folder under the same path.
    """
    reading = table.reading
    asked = {"trim": reading.trim, "group": reading.group, "fill-missing": reading.missing == "em"}
    if option := next((option for option, given in asked.items() if given), ""):
        what = f"--{option} looks at all rows of a regime together, and a cluster at each file"
        raise reading.fail(what, f"Drop --{option} or --cluster.")
    if reading.path is None or not reading.path.is_dir():
        raise reading.fail("a cluster reduces a folder of Parquet files", "Name the folder.")
    with _connected(reading.cluster) as connection:
        shared: Any = replace(table, reading=reading.model_copy(update={"cluster": None}), parts=())
        if reading.reduction is not None:
            # Directions take megabytes: they are sent once to each worker, not with each file.
            (shared,) = connection.scatter([shared], broadcast=True, hash=False)
        left = [
            connection.submit(_part, part._replace(path=part.path.absolute()), shared, pure=False)
            for part in table.parts
        ]
        while len(left) > 1:
            pairs, odd = zip(left[::2], left[1::2], strict=False), left[len(left) // 2 * 2 :]
            left = [connection.submit(Collected.merge, *pair, pure=False) for pair in pairs] + odd
        found: Collected = left[0].result()
    found.reading = found.bad.reading = reading
    return found


def _part(part: Part, table: Table) -> Collected:
    """What one file of a folder gives; this runs at a worker."""
    reading = table.reading.model_copy(update={"path": part.path})
    found = collect(replace(table, parts=(part,), reading=reading))
    for problem in found.bad.problems():
        raise problem
    return found


@contextmanager
def _connected(cluster: Any) -> Iterator[Any]:
    """A connection to the scheduler of a Dask cluster; what fails there is an `InputError`."""
    distributed = import_optional("distributed", "Dask", "cluster")
    connection: Any = nullcontext(cluster)
    if isinstance(cluster, str):
        try:
            connection = distributed.Client(cluster, timeout=PATIENCE, set_as_default=False)
            connection.wait_for_workers(1, timeout=PATIENCE)
        except (OSError, ValueError, TimeoutError) as error:
            raise InputError(
                f"no Dask scheduler with workers answers at {cluster} ({str(error)[:120]})",
                "Check the address, and that the scheduler and its workers are running.",
            ) from None
    with connection as given:
        try:
            yield given
        except distributed.KilledWorker:
            raise InputError(
                "a task ended every worker that tried it",
                "Look at the workers' logs, for instance for memory.",
            ) from None
        except ImportError as error:
            raise InputError(
                f"a worker cannot run this ({str(error)[:120]})",
                "Install the same version of this package on every worker.",
            ) from None
