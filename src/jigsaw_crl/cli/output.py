"""What commands print: one JSON object, or lines and tables for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from jigsaw_crl.base.labels import safe_text
from jigsaw_crl.base.terminal import Table, say

if TYPE_CHECKING:
    import pandas as pd

# Lines of a long table.
MOST_LINES = 20
_STYLES = {"error": "red", "warning": "yellow", "info": "cyan"}


def emit(
    as_json: bool,
    document: dict[str, Any] | Callable[[], dict[str, Any]],
    *told: str | Table | Iterable[str | Table],
) -> None:
    """Print the answer of a command: one JSON object, or lines and tables; empty lines are none."""
    if as_json:
        plain = document if isinstance(document, dict) else document()
        say(json.dumps(plain, ensure_ascii=False, allow_nan=False))
        return
    for one in told:
        if isinstance(one, Table):
            _print_table(one)
        elif not isinstance(one, str):
            emit(False, {}, *one)
        elif one:
            say(one)


def _print_table(table: Table) -> None:
    """Print a table: drawn on a terminal, tab-separated in a pipe."""
    most = MOST_LINES if table.long else len(table.rows)
    lines = [[safe_text(str(cell)) for cell in row] for row in table.rows[:most]]
    if not sys.stdout.isatty():
        say(f"# {table.title}")
        for line in [list(table.columns), *lines]:
            say("\t".join(" ".join(cell.split()) for cell in line))
    else:
        # Imported here for start-up time: output in a pipe does without.
        from rich.console import Console
        from rich.table import Table as Drawn
        from rich.text import Text

        drawn = Drawn(title=table.title, title_justify="left", header_style="bold")
        for column in table.columns:
            drawn.add_column(column, overflow="fold")
        for first, *others in lines:
            # Text, not markup: a label may hold square brackets.
            drawn.add_row(Text(first, style=_STYLES.get(first, "")), *map(Text, others))
        Console().print(drawn)
    if len(table.rows) > most:
        say(f"and {len(table.rows) - most} more (--json has them all)")


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a frame as plain JSON values; None for what is missing."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [{str(key): value for key, value in row.items()} for row in plain.to_dict("records")]
