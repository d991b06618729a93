"""What commands and the demo print: answers on stdout, notes and progress on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, TypeVar

from jigsaw_crl.base.labels import safe_text

T = TypeVar("T")

# Called with the steps done and their number; None where nobody looks.
SHOWN: ContextVar[Callable[[int, int], None] | None] = ContextVar("shown", default=None)


class Table(NamedTuple):
    """A table for people; of a long one the first lines are shown."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    long: bool = False


def note(text: str) -> None:
    """Print a line on stderr, so that stdout holds nothing but the answer."""
    say(text, err=True)


def say(text: str, *, err: bool = False) -> None:
    """Print text that others may have written, without what a terminal would obey."""
    # Imported here for start-up time: the library itself prints nothing.
    import typer

    typer.echo(safe_text(text), err=err)


def counted(items: Iterable[T], total: int) -> Iterator[T]:
    """The items, while the progress of the command (`working`) moves with each of them."""
    show = SHOWN.get()
    for done, item in enumerate(items):
        if show is not None:
            show(done, total)
        yield item
    if show is not None:
        show(total, total)


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show on a terminal's stderr that work is going on, how far it is and how long it takes.

    The remaining time is that of the loop under way, from its steps so far (`counted`).
    """
    if not sys.stderr.isatty():
        yield
        return
    # Imported here for start-up time: most runs have no terminal.
    from rich import console, progress

    columns = (progress.SpinnerColumn(), progress.TextColumn("{task.description}"))
    counts = (progress.MofNCompleteColumn(), progress.TimeElapsedColumn())
    stderr, left = console.Console(stderr=True), progress.TimeRemainingColumn()
    with progress.Progress(*columns, *counts, left, console=stderr, transient=True) as bar:
        line = bar.add_task(text, total=None)
        token = SHOWN.set(lambda done, total: bar.update(line, total=total, completed=done))
        try:
            yield
        finally:
            SHOWN.reset(token)
