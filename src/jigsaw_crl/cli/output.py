"""What commands print: one JSON object, or lines and tables for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from jigsaw_crl.base.findings import Finding, most_severe_first
from jigsaw_crl.base.labels import safe_text
from jigsaw_crl.base.terminal import say
from jigsaw_crl.base.text import few, number

if TYPE_CHECKING:
    import pandas as pd

    from jigsaw_crl.fragment.fragment import Outcome
    from jigsaw_crl.result.summary import LeftOut

# Lines of a long table, lines about what is left out, and places that are named for one finding.
MOST_LINES, MOST_LEFT_OUT, MOST_PLACES = 20, 10, 6
_STYLES = {"error": "red", "warning": "yellow", "info": "cyan"}


class Table(NamedTuple):
    """A table for people; of a long one the first lines are shown."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    long: bool = False


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


def findings_table(findings: Sequence[Finding]) -> Table | str:
    """The findings, the most severe first; the same words about several places once."""
    if not findings:
        return "No findings: nothing in the data speaks against the method's assumptions."
    places: dict[tuple[str, ...], list[str]] = {}
    for f in most_severe_first(findings):
        limit = "" if f.threshold is None else f" ({number(f.threshold)})"
        value = "" if f.value is None else f"{number(f.value)}{limit}"
        place = "/".join(x for x in (f.client, f.regime) if x) or "study"
        said = (f.severity, f"{f.check}: {f.message}", value, f.remedy)
        places.setdefault(said, []).append(place)
    rows = [(said[0], few(where, MOST_PLACES), *said[1:]) for said, where in places.items()]
    columns = ["severity", "where", "what was seen", "value (threshold)", "remedy"]
    return Table("Findings", columns, rows, long=True)


def outcome_lines(outcomes: Mapping[str, Outcome]) -> list[str]:
    """What happened at clients that were not simply recovered; the same words once."""
    told: dict[str, list[str]] = {}
    for name, outcome in outcomes.items():
        if str(outcome) != "recovered":
            told.setdefault(str(outcome), []).append(name)
    return [f"{few(names, MOST_PLACES)}: {text}" for text, names in told.items()]


def left_out_lines(parts: Sequence[LeftOut], lost: Iterable[str] = ()) -> list[str]:
    """Each label or client that is not used, and the labels missing from the order."""
    told = [f"left out: {part}" for part in parts[:MOST_LEFT_OUT]]
    if len(parts) > MOST_LEFT_OUT:
        told.append(f"left out: {len(parts) - MOST_LEFT_OUT} more, see the findings")
    names = ", ".join(lost)
    if names:
        told.append(f"missing from the order, because left out of every client: {names}")
    return told
