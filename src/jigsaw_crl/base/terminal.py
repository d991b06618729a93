"""What commands and the demo print: JSON on stdout, notes and progress on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from jigsaw_crl.base.labels import safe_text

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
    """Show on a terminal's stderr that work is going on."""
    if not sys.stderr.isatty():
        yield
        return
    # Imported here for start-up time: most runs have no terminal.
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield
