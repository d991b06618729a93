"""The workers of a Dask cluster: a connection to its scheduler, and results of its tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from jigsaw_crl.base.errors import InputError, import_optional

__all__ = ["completed", "connected"]

# Seconds to wait for the scheduler, and for a first worker.
PATIENCE = 10


@contextmanager
def connected(cluster: Any) -> Iterator[Any]:
    """A connection to the scheduler of a Dask cluster.

    `cluster` is its address, such as ``"tcp://10.0.0.1:8786"``, or a connected client, which stays
    open.
    """
    distributed = import_optional("distributed", "Dask", "cluster")
    if not isinstance(cluster, str):
        yield cluster
        return
    try:
        connection = distributed.Client(cluster, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"no Dask scheduler answers at {cluster} ({str(error)[:120]})",
            "Check the address, and that the scheduler is running.",
        ) from None
    with connection:
        try:
            connection.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise InputError(
                f"the cluster has had no worker for {PATIENCE} s",
                "Start workers, and look at the logs of the old ones.",
            ) from None
        yield connection


def completed(connection: Any, futures: Sequence[Any]) -> Iterator[Any]:
    """Yield the results of tasks as they finish; Dask repeats those of a worker that was lost.

    An `InputError` is raised if a task cannot be run, or ended every worker that tried it.
    """
    distributed = import_optional("distributed", "Dask", "cluster")
    for future in distributed.as_completed(futures, loop=connection.loop):
        try:
            yield future.result()
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
        future.release()
