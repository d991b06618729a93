"""Run many independent calls: on processes of this machine, or on a Dask cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from jigsaw_crl.base.cluster import completed, connected
from jigsaw_crl.base.errors import InputError

__all__ = ["Call", "progress_bar", "results_of"]

Call = tuple[Callable[..., Any], tuple[Any, ...]]
Advance = Callable[[int, int], None]


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
        with connected(cluster) as connection:
            futures = [connection.submit(f, *given, pure=False) for f, given in calls]
            yield from completed(connection, futures)
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
