"""The order on a terminal: layers from ancestors to descendants, then undetermined pairs."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from jigsaw_crl.assembly import Certificate, GlobalOrder
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.report.layout import lay_out
from jigsaw_crl.result.result import Result

__all__ = ["plain_table", "print_certificate", "print_order", "print_result"]

MOST_LABELS, MOST_OPEN = 60, 10


def print_result(result: Result, console: Console | None = None) -> None:
    """Print the clients, the order and the findings.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> from jigsaw_crl.report.terminal import print_result
    >>> result = jc.recover(jc.simulate.setting("A", 0).clients())
    >>> print_result(result)  # doctest: +SKIP
    """
    console = console or _console()
    rows = []
    for fragment in result.order.fragments:
        blocks = "  ".join(
            "{" + ", ".join(sorted(b)) + "}" if len(b) > 1 else min(b)
            for b in fragment.block_order.topological()
        )
        weight = f"{result.order.client_weights[fragment.client]:.2f}"
        rows.append((fragment.client, ", ".join(sorted(fragment.labels)), blocks, weight))
    console.print(plain_table(("client", "labels it accesses", "blocks", "trust"), rows))
    console.print()
    print_order(result.order, console)
    for part in result.left_out:
        console.print(Text(f"  left out: {part}", style="yellow"))
    styles = {"error": "bold red", "warning": "yellow", "info": "cyan"}
    for finding in result.diagnostics:
        console.print(Text(str(finding), style=styles[finding.severity]))


def plain_table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> Table:
    """A table without lines; cells are text, not markup."""
    table = Table(header_style="bold", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    return table


def print_order(order: GlobalOrder, console: Console | None = None) -> None:
    """Print each label with the labels directly below it, layer by layer."""
    console = console or _console()
    graph = order.hasse()
    position = {label: i for i, label in enumerate(order.labels)}
    edges = sorted((position[a], position[d]) for a, d in graph.edges if a != d)
    layers = lay_out([(1.0, 1.0)] * len(position), edges).layer
    ranked = sorted(order.labels, key=lambda label: (layers[position[label]], label))
    wide = max(len(label) for label in ranked[:MOST_LABELS])
    for label in ranked[:MOST_LABELS]:
        below = sorted(graph.successors(label))
        line = Text("  ").append(label.ljust(min(wide, 30)), style="bold")
        for number, descendant in enumerate(below):
            about = graph.edges[label, descendant]
            line.append(" → " if number == 0 else ", ", style="dim")
            line.append(descendant, style="cyan")
            if order.mode != "paper":  # Algorithm 3 gives no probabilities
                line.append(f" {about['probability']:.2f}", style="dim")
        console.print(line)
    if len(ranked) > MOST_LABELS:
        console.print(f"  … and {pluralise(len(ranked) - MOST_LABELS, 'more label')}")
    opened = sorted(order.undetermined())
    if opened:
        shown = "; ".join(f"{a} → {d}?" for a, d in opened[:MOST_OPEN])
        more = f" and {len(opened) - MOST_OPEN} more" if len(opened) > MOST_OPEN else ""
        console.print(Text(f"  undetermined: {shown}{more}", style="yellow"))
    for note in order.notes:
        console.print(Text(f"  note: {note}", style="yellow"))


def print_certificate(certificate: Certificate, console: Console | None = None) -> None:
    """Print a certificate's text, the first line in bold."""
    head, *steps = str(certificate).split("\n")
    console = console or _console()
    console.print(Text(head, style="bold"))
    for step in steps:
        console.print(Text(step))


def _console() -> Console:
    return Console(highlight=False)
