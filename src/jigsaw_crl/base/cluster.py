"""The workers of a Dask cluster: a connection to its scheduler, and results of its tasks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from jigsaw_crl.base.errors import InputError, JigsawError, import_optional

__all__ = ["completed", "connected"]

# Seconds to wait for the scheduler.
PATIENCE = 10
# Seconds that a cluster may be without any worker (a restart takes less), and between two looks.
WITHOUT_WORKERS, LOOK_EVERY = 60.0, 2.0


@contextmanager
def connected(cluster: Any) -> Iterator[Any]:
    """A connection to the scheduler of a Dask cluster.

    Parameters
    ----------
    cluster : str or distributed.Client
        Address of the scheduler, such as ``"tcp://10.0.0.1:8786"``, or a connected client, which
        stays open.
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
        yield connection


def completed(connection: Any, futures: Sequence[Any]) -> Iterator[Any]:
    """Yield the results of tasks as they finish; Dask repeats those of a worker that was lost.

    Raises
    ------
    InputError
        There is no worker, or a task cannot be run or ended every worker that tried it.
    """
    distributed = import_optional("distributed", "Dask", "cluster")
    waiting, seen = set(futures), time.monotonic()
    while waiting:
        try:
            with connection.as_current():
                ended = distributed.wait(
                    list(waiting), timeout=LOOK_EVERY, return_when="FIRST_COMPLETED"
                ).done
        except TimeoutError:
            ended = set()
        if ended or connection.nthreads():
            seen = time.monotonic()
        elif time.monotonic() - seen > WITHOUT_WORKERS:
            raise InputError(
                f"the cluster has had no worker for {WITHOUT_WORKERS:.0f} s",
                "Start workers, and look at the logs of the old ones.",
            )
        waiting -= ended
        for future in ended:
            yield _result(distributed, future)
            future.release()


def _result(distributed: Any, future: Any) -> Any:
    try:
        return future.result()
    except JigsawError:
        raise
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
