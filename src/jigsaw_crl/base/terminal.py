"""What commands and the demo print: JSON on stdout, notes and progress on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any, TypeVar

from jigsaw_crl.base.labels import safe_text

T = TypeVar("T")

# Called with the steps done and their number; None where nobody looks.
SHOWN: ContextVar[Callable[[int, int], None] | None] = ContextVar("shown", default=None)


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON object, on one line, on stdout."""
    say(json.dumps(document, ensure_ascii=False, allow_nan=False))


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
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}{task.fields[left]}"))
    bar = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
    with bar:
        line = bar.add_task(text, left="")
        start = [0.0]

        def show(done: int, total: int) -> None:
            now = perf_counter()
            if not done:
                start[0] = now
            left = (now - start[0]) * (total - done) / max(done, 1)
            about = f", about {left:,.0f} s left" if done else ""
            bar.update(line, left=f" {done} of {total}{about}" if done < total else "")

        token = SHOWN.set(show)
        try:
            yield
        finally:
            SHOWN.reset(token)
