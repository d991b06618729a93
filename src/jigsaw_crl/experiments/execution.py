"""Many pieces of work at once: on this machine's processes, or on a Dask cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from jigsaw_crl.errors import InputError

__all__ = ["Call", "progress_bar", "results_of"]

Call = tuple[Callable[..., Any], tuple[Any, ...]]
Advance = Callable[[int, int], None]

# How long a scheduler may take to answer.
PATIENCE = "10s"


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
        yield from parallel(delayed(function)(*arguments) for function, arguments in calls)


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
        futures = [client.submit(function, *arguments, pure=False) for function, arguments in calls]
        for future in distributed.as_completed(futures):
            yield future.result()
            future.release()


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
