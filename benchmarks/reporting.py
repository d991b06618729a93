"""The command line and the Markdown tables that the benchmarks share."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

import numpy as np

__all__ = ["header", "markdown", "mean_and_error", "options", "row", "share"]


def options(description: str | None, **defaults: int | float | str) -> argparse.ArgumentParser:
    """A parser whose help is the module's docstring, with one option per keyword."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in defaults.items():
        parser.add_argument(
            f"--{name}", type=type(default), default=default, help=f"default: {default}"
        )
    return parser


def header(*columns: str) -> None:
    """Print the first two lines of a table."""
    row(*columns)
    print(_rule(columns), flush=True)


def row(*values: object) -> None:
    """Print one line of a table."""
    print(_line(values), flush=True)


def markdown(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A whole table."""
    return "\n".join([_line(columns), _rule(columns), *map(_line, rows)])


def _rule(columns: Sequence[str]) -> str:
    return "|" + "---|" * len(columns)


def _line(values: Sequence[object]) -> str:
    """Cells of a line; numbers have three decimals."""
    cells = (f"{v:.3f}" if isinstance(v, float | np.floating) else str(v) for v in values)
    return f"| {' | '.join(cells)} |"


def mean_and_error(values: Sequence[float]) -> str:
    """Mean and its standard error."""
    return f"{np.mean(values):.3f} ± {np.std(values) / np.sqrt(len(values)):.3f}"


def share(part: int, whole: int) -> str:
    """`part / whole` with four decimals; a dash when there is nothing to divide by."""
    return f"{part / whole:.4f}" if whole else "–"
