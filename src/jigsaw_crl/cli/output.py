"""Tables and lines that commands print for people."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from jigsaw_crl.base.findings import Finding, most_severe_first
from jigsaw_crl.base.labels import safe_text
from jigsaw_crl.base.terminal import print_json, say
from jigsaw_crl.base.text import few, number

if TYPE_CHECKING:
    from jigsaw_crl.fragment.fragment import Outcome
    from jigsaw_crl.result.summary import LeftOut

__all__ = ["BLOCKS", "emit", "print_findings", "print_left_out", "print_outcomes", "print_table"]

# Most lines about what is left out; the findings have them all.
MOST_LEFT_OUT = 10
# Lines of the table of findings.
MOST_FINDINGS = 20
# Places that are named for one finding.
MOST_PLACES = 6
# What the word means in the tables of clients.
BLOCKS = (
    "(labels are in one block if hidden causes join them at that client, which then cannot order "
    "all of them; another client may)"
)
_STYLES = {"error": "red", "warning": "yellow", "info": "cyan"}


def emit(
    as_json: bool,
    document: dict[str, Any] | Callable[[], dict[str, Any]],
    told: str | Callable[[], None],
) -> None:
    """Print the answer of a command: one JSON object, or what people are told."""
    if as_json:
        print_json(document if isinstance(document, dict) else document())
    elif isinstance(told, str):
        say(told)
    else:
        told()


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table: drawn on a terminal, tab-separated in a pipe."""
    lines = [[safe_text(str(cell)) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        typer.echo(f"# {title}")
        for line in [list(columns), *lines]:
            say("\t".join(" ".join(cell.split()) for cell in line))
        return
    # Imported here for start-up time: output in a pipe does without.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for line in lines:
        # Text, not markup: a label may hold square brackets.
        first, *others = line
        table.add_row(Text(first, style=_STYLES.get(first, "")), *map(Text, others))
    Console().print(table)


def print_findings(findings: Sequence[Finding]) -> None:
    """Print a table of findings, the most severe first."""
    if not findings:
        typer.echo("No findings: nothing in the data speaks against the method's assumptions.")
        return
    # What is said of several places in the same words is said once.
    places: dict[tuple[str, ...], list[str]] = {}
    for f in most_severe_first(findings):
        said = (f.severity, f"{f.check}: {f.message}", _number(f), f.remedy)
        place = "/".join(x for x in (f.client, f.regime) if x) or "study"
        places.setdefault(said, []).append(place)
    rows = [(said[0], few(where, MOST_PLACES), *said[1:]) for said, where in places.items()]
    columns = ["severity", "where", "what was seen", "value (threshold)", "remedy"]
    print_table("Findings", columns, rows[:MOST_FINDINGS])
    if len(rows) > MOST_FINDINGS:
        typer.echo(f"and {len(rows) - MOST_FINDINGS} less severe ones (--json has them all)")


def print_outcomes(outcomes: Mapping[str, Outcome]) -> None:
    """Print what happened at clients that were not simply recovered; the same words once."""
    told: dict[str, list[str]] = {}
    for name, outcome in outcomes.items():
        if str(outcome) != "recovered":
            told.setdefault(str(outcome), []).append(name)
    for text, names in told.items():
        say(f"{few(names, MOST_PLACES)}: {text}")


def print_left_out(parts: Sequence[LeftOut], lost: Iterable[str] = ()) -> None:
    """Print each label or client that is not used, and the labels missing from the order."""
    for part in parts[:MOST_LEFT_OUT]:
        say(f"left out: {part}")
    if len(parts) > MOST_LEFT_OUT:
        typer.echo(f"left out: {len(parts) - MOST_LEFT_OUT} more, see the findings")
    names = ", ".join(lost)
    if names:
        typer.echo(f"missing from the order, because left out of every client: {names}")


def _number(finding: Finding) -> str:
    if finding.value is None:
        return ""
    limit = "" if finding.threshold is None else f" ({number(finding.threshold)})"
    return f"{number(finding.value)}{limit}"
