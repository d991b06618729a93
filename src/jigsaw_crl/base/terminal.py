"""What commands and the demo print: JSON on stdout, notes and progress on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import typer

from jigsaw_crl.base.labels import safe_text
from jigsaw_crl.base.progress import SHOWN

__all__ = ["note", "print_json", "say", "working"]


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON object, on one line, on stdout."""
    say(json.dumps(document, ensure_ascii=False, allow_nan=False))


def note(text: str) -> None:
    """Print a line on stderr, so that stdout holds nothing but the answer."""
    typer.echo(safe_text(text), err=True)


def say(text: str) -> None:
    """Print text that others may have written, without what a terminal would obey."""
    typer.echo(safe_text(text))


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show on a terminal's stderr that work is going on, how far it is and how long it takes.

    The remaining time is that of the loop under way, from its steps so far (`progress.counted`).
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
