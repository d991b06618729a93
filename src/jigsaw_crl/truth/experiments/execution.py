"""Run many independent calls: on processes of this machine, or on a Dask cluster."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from jigsaw_crl.base.errors import InputError, import_optional
from jigsaw_crl.base.text import few

__all__ = ["Call", "progress_bar", "results_of"]

Call = tuple[Callable[..., Any], tuple[Any, ...]]
Advance = Callable[[int, int], None]

# Time-out for the connection to a scheduler.
PATIENCE = "10s"
# Seconds that a cluster may be without any worker; a restart takes less.
WITHOUT_WORKERS = 60.0
# Seconds without a finished call; the longest takes minutes.
WITHOUT_RESULT = 6 * 3600.0
# Seconds between two looks at a cluster.
LOOK_EVERY = 2.0


def results_of(
    calls: Sequence[Call], *, workers: int = 1, cluster: str | None = None
) -> Iterator[Any]:
    """Yield the results of independent calls as they finish, in any order.

    Parameters
    ----------
    calls : sequence of (function, arguments)
    workers : int
        Processes on this machine; with 1 the calls run in this process.
    cluster : str, optional
        Address of a Dask scheduler; if given, the calls run on its workers instead.
    """
    if cluster is not None:
        yield from _on_cluster(calls, cluster)
    elif workers <= 1:
        for function, arguments in calls:
            yield function(*arguments)
    else:
        # Batches of one: calls differ a thousandfold in cost, and each result is kept at once.
        parallel = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
        try:
            yield from parallel(delayed(function)(*arguments) for function, arguments in calls)
        except TerminatedWorkerError as error:
            raise InputError(
                f"a worker process was killed ({str(error)[:200]})",
                "Check that memory suffices; run the same command again to resume.",
            ) from None


def _on_cluster(calls: Sequence[Call], address: str) -> Iterator[Any]:
    distributed = import_optional("distributed", "Dask", "cluster")
    try:
        client = distributed.Client(address, timeout=PATIENCE)
    except OSError as error:
        raise InputError(
            f"there is no Dask scheduler at {address} ({error})",
            "Pass the address that the scheduler prints, such as tcp://10.0.0.1:8786.",
        ) from None
    with client:
        suspects = []
        for number, result in _completed(distributed, client, list(enumerate(calls))):
            if isinstance(result, distributed.KilledWorker):
                suspects.append((number, calls[number]))
            else:
                yield result
        # Dask suspects every call that waited on a worker that died, so each is tried alone.
        for suspect in suspects:
            for _, result in _completed(distributed, client, [suspect]):
                if isinstance(result, distributed.KilledWorker):
                    raise InputError(
                        f"the task {_name_of(suspect[1])} ended every worker that tried it",
                        "Look at the workers' logs, for instance for memory. All other results "
                        "are kept; run the same command again to resume.",
                    )
                yield result


def _name_of(call: Call) -> str:
    """The key of the call's task if it has one, else the name of its function."""
    function, arguments = call
    keys = [key for a in arguments if isinstance(key := getattr(a, "key", None), str)]
    return keys[0] if keys else getattr(function, "__name__", "task")


def _completed(
    distributed: Any, client: Any, calls: Sequence[tuple[int, Call]]
) -> Iterator[tuple[int, Any]]:
    """Yield number and result of each call as it finishes.

    Dask repeats the calls of a killed worker, and gives up on a call that kills several: its result
    is then the `KilledWorker` error. Dask waits for ever when no worker is left; this function
    raises an error then, and when nothing finishes for hours.
    """
    pending = {}
    for number, call in calls:
        key = f"{_name_of(call)}-{uuid4().hex}"
        pending[client.submit(call[0], *call[1], key=key, pure=False)] = number
    last_worker = last_result = time.monotonic()
    while pending:
        try:
            ended = distributed.wait(
                list(pending), timeout=LOOK_EVERY, return_when="FIRST_COMPLETED"
            ).done
        except TimeoutError:
            ended = set()
        now = time.monotonic()
        if ended:
            last_result = now
        if ended or client.scheduler_info(n_workers=-1)["workers"]:
            last_worker = now
        for future in ended:
            number = pending.pop(future)
            error = future.exception() if future.status == "error" else None
            if error is not None and not isinstance(error, distributed.KilledWorker):
                raise error
            yield number, future.result() if error is None else error
            future.release()
        if pending:
            names = [_name_of(call) for number, call in calls if number in pending.values()]
            _check_alive(now - last_worker, now - last_result, names)


def _check_alive(without_workers: float, without_result: float, names: list[str]) -> None:
    waiting = few(names, 3)
    if without_workers > WITHOUT_WORKERS:
        raise InputError(
            f"the cluster has had no worker for {without_workers:.0f} s while {waiting} waited",
            "Start workers, look at the logs of the old ones, and run the same command again.",
        )
    if without_result > WITHOUT_RESULT:
        raise InputError(
            f"nothing has finished for {without_result / 3600:.1f} hours; {waiting} waited",
            "Restart the workers and run the same command again.",
        )


@contextmanager
def progress_bar(what: str) -> Iterator[Advance]:
    """A function of (done, total) that shows progress.

    It draws a bar on a terminal, and prints a few lines elsewhere.
    """
    if sys.stderr.isatty():
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
            line = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(line, completed=done, total=total)
    else:
        yield _tenths(what)


def _tenths(what: str) -> Advance:
    """Print one line at every tenth of the work."""
    shown = [-1]

    def advance(done: int, total: int) -> None:
        tenth = 10 * done // max(total, 1)
        if tenth > shown[0]:
            shown[0] = tenth
            print(f"{what}: {done} of {total}", file=sys.stderr, flush=True)

    return advance
