"""Many pieces of work at once: on this machine's processes, or on a Dask cluster."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, cast
from uuid import uuid4

from jigsaw_crl.base.errors import InputError

__all__ = ["Call", "progress_bar", "results_of"]

Call = tuple[Callable[..., Any], tuple[Any, ...]]
Advance = Callable[[int, int], None]

# How long a scheduler may take to answer.
PATIENCE = "10s"
# Seconds that a cluster may be without a single worker; restarted ones are back sooner.
WITHOUT_WORKERS = 60.0
# Seconds without any piece of work done; the longest takes minutes.
WITHOUT_RESULT = 6 * 3600.0
_LOOK_EVERY = 2.0


def results_of(
    calls: Sequence[Call], *, workers: int = 1, cluster: str | None = None
) -> Iterator[Any]:
    """Results of independent calls, each as soon as it is there, in any order.

    Parameters
    ----------
    calls : sequence of (function, arguments)
    workers : int
        Processes on this machine; 1 stays in this one.
    cluster : str, optional
        Address of a Dask scheduler; the calls then run on its workers, and `workers` is not used.
    """
    if cluster is not None:
        yield from _on_cluster(calls, cluster)
    elif workers <= 1:
        for function, arguments in calls:
            yield function(*arguments)
    else:
        from joblib import Parallel, delayed

        # One piece at a time: pieces differ a thousandfold in cost, and each is kept when done.
        parallel = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
        try:
            yield from parallel(delayed(function)(*arguments) for function, arguments in calls)
        except _terminated() as error:
            raise InputError(
                f"a worker process was killed ({str(error)[:200]})",
                "Check that memory suffices; the same command goes on from what is done.",
            ) from None


def _terminated() -> type[Exception]:
    """What joblib raises when one of its processes dies."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    return cast("type[Exception]", TerminatedWorkerError)


def _on_cluster(calls: Sequence[Call], address: str) -> Iterator[Any]:
    try:
        distributed: Any = import_module("distributed")  # has no types
    except ImportError:
        raise InputError(
            "Dask is not installed", "Run pip install 'jigsaw-crl[cluster]'."
        ) from None
    try:
        client = distributed.Client(address, timeout=PATIENCE)
    except OSError as error:
        raise InputError(
            f"there is no Dask scheduler at {address} ({error})",
            "Pass the address that the scheduler prints, such as tcp://10.0.0.1:8786.",
        ) from None
    with client:
        killers = []
        for number, result in _completed(distributed, client, list(enumerate(calls))):
            if isinstance(result, distributed.KilledWorker):
                killers.append((number, calls[number]))
            else:
                yield result
        # Dask suspects all that was waiting on a worker that died. Alone, each shows what it is.
        for suspect in killers:
            for _, result in _completed(distributed, client, [suspect]):
                if isinstance(result, distributed.KilledWorker):
                    raise InputError(
                        f"the task {_name_of(suspect[1])} ended every worker that tried it",
                        "Look at the workers' logs (memory?); all other results are kept, and the "
                        "same command goes on from there.",
                    )
                yield result


def _name_of(call: Call) -> str:
    """A task's key where there is one, for people; else what is called."""
    function, arguments = call
    keys = [key for a in arguments if isinstance(key := getattr(a, "key", None), str)]
    return keys[0] if keys else getattr(function, "__name__", "task")


def _completed(
    distributed: Any, client: Any, calls: Sequence[tuple[int, Call]]
) -> Iterator[tuple[int, Any]]:
    """Numbers and results of calls as they end; an error of Dask's that names a killer is one.

    Dask does again what a killed worker was doing, and gives up on what kills worker after worker.
    Without any worker left it would wait for ever: then, and when nothing ends for hours, we do
    not.
    """
    pending = {}
    for number, call in calls:
        key = f"{_name_of(call)}-{uuid4().hex}"
        pending[client.submit(call[0], *call[1], key=key, pure=False)] = number
    last_worker = last_result = time.monotonic()
    while pending:
        try:
            ended = distributed.wait(
                list(pending), timeout=_LOOK_EVERY, return_when="FIRST_COMPLETED"
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
    waiting = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    if without_workers > WITHOUT_WORKERS:
        raise InputError(
            f"the cluster has had no worker for {without_workers:.0f} s while {waiting} waited",
            "Start workers and look at the old ones' logs; the same command goes on from there.",
        )
    if without_result > WITHOUT_RESULT:
        raise InputError(
            f"nothing has ended for {without_result / 3600:.1f} hours; {waiting} waited",
            "Restart the workers; the same command goes on from there.",
        )


@contextmanager
def progress_bar(what: str) -> Iterator[Advance]:
    """A function of (done, total) that draws a bar on a terminal, and sparse lines elsewhere."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
            line = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(line, completed=done, total=total)
    else:
        yield _sparse_lines(what)


def _sparse_lines(what: str) -> Advance:
    shown = [-1]

    def advance(done: int, total: int) -> None:
        tenth = 10 * done // max(total, 1)
        if tenth > shown[0]:
            shown[0] = tenth
            print(f"{what}: {done} of {total}", file=sys.stderr, flush=True)

    return advance
