"""The comparison with the printed numbers: cells of replicates, a page in Markdown, pictures.

A cell has the mean and the standard error of each metric over the replicates of one scenario,
sample size and method. The page and its pictures are made from the file of cells alone.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from math import inf, nan
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from jigsaw_crl.base.files import write_file, write_text
from jigsaw_crl.truth.experiments.plan import printed, tables

# Decimals in the file: two more than a page shows.
DECIMALS = 4
NAMES = {"e1": "E1", "e2": "E2", "e3": "E3", "seconds": "Runtime (s)"}
ERRORS = ["e1", "e2", "e3"]
PLACE = ["scenario", "n", "method"]
MINUS, NONE = "\N{MINUS SIGN}", "–"
# Methods differ in colour, marker and line, for print and for colour-blind readers.
STYLES: dict[str, dict[str, Any]] = {
    "paper": {"color": "#b04a00", "marker": "o", "linestyle": "--"},
    "null-cone": {"color": "#005a9c", "marker": "s", "linestyle": "-"},
}
# A DataFrame with the index `PLACE`, whose look-ups the types of pandas do not cover.
Cells = Any


@dataclass(frozen=True)
class Pages:
    """The file of cells, the page made of it, and one picture per scenario or table."""

    results: Path
    page: Path
    pictures: tuple[Path, ...]


# -- cells ----------------------------------------------------------------------------------------


def summarise(rows: pd.DataFrame) -> Cells:
    """The cell of every scenario, size and method, from one row per replicate."""
    same = {name: (name, "first") for name in ("tau", "budget", "candidates", "tuned_on")}
    counts = {"replicates": ("e1", "size"), "clients": ("clients", "sum")}
    scores = {m: (m, "mean") for m in NAMES} | {f"{m}_error": (m, "sem") for m in NAMES}
    given: dict[str, Any] = {"date": ("date", "max"), **same, **counts}
    cells = rows.groupby(PLACE, sort=False).agg(**given, stopped=("stopped", "sum"), **scores)
    return cells.round(DECIMALS)


# -- the page -------------------------------------------------------------------------------------


def write_pages(cells: Cells, kind: str, out: Path) -> Pages:
    """Write the file of cells, and from it the page and the pictures."""
    results = write_text(out / "results.csv", cells.to_csv())
    title = "Figures: E1, E2 and E3 against the sample size"
    drawn = {key: (key, [key]) for key in unique(cells, "scenario")}
    if kind == "tables":
        title = "Tables 1 to 3: sensitivity to p, K and q"
        drawn = {
            f"table-{number}": (f"Table {number}: sensitivity to {varies}", found)
            for number, (varies, worlds) in enumerate(tables().items(), start=1)
            if (found := [s.key for s in worlds if s.key in unique(cells, "scenario")])
        }
    for name, (head, keys) in drawn.items():
        _plot(out / f"{name}.png", head, cells, keys)
    lines = [f"# {title}", "", *(f"![{head}]({x}.png)\n" for x, (head, _) in drawn.items())]
    shown = pd.DataFrame(line_of(cells, *place) for place in places(cells))
    page = write_text(out / f"{kind}.md", "\n".join([*lines, *markdown(shown)]))
    return Pages(results, page, tuple(out / f"{name}.png" for name in drawn))


def unique(cells: Cells, level: str) -> list[Any]:
    return list(cells.index.get_level_values(level).unique())


def places(cells: Cells) -> list[tuple[str, str, float]]:
    """Scenario, metric and n of every line; runtimes in the population only."""
    every = product(unique(cells, "scenario"), NAMES, sorted(unique(cells, "n")))
    return [(key, metric, n) for key, metric, n in every if metric in ERRORS or n == inf]


def line_of(cells: Cells, key: str, metric: str, n: float) -> dict[str, Any]:
    """One line of the page: the printed number, and mean ± standard error (runs) of each method."""
    value = number(printed().get((key, metric, n), nan))
    line = {"worlds": key, "metric": NAMES[metric], "n": size(n), "printed": value}
    for method in unique(cells, "method"):
        text = NONE
        if (key, n, method) in cells.index:
            cell = cells.loc[(key, n, method)]
            text = f"{with_error(cell, metric)} ({cell['replicates']:.0f})"
        line[f"{method}: mean ± s.e. (runs)"] = text
    return line


def markdown(frame: pd.DataFrame) -> list[str]:
    rows: Iterable[Iterable[str]] = frame.itertuples(index=False)
    return [
        f"| {' | '.join(frame.columns)} |",
        "|" + " --- |" * len(frame.columns),
        *(f"| {' | '.join(map(str, row))} |" for row in rows),
        "",
    ]


def with_error(cell: Any, metric: str) -> str:
    error = cell[f"{metric}_error"]
    return number(cell[metric]) + ("" if pd.isna(error) else f" ± {error:.2f}")


def number(x: float, form: str = ".2f") -> str:
    return NONE if pd.isna(x) else f"{x:{form}}".replace("-", MINUS)


def size(n: float) -> str:
    if n == inf:
        return "∞"
    lead, power = f"{n:e}".split("e")
    head = f"{float(lead):g}"
    up = str(int(power)).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{up}" if head == "1" else f"{head}·10{up}"


# -- pictures -------------------------------------------------------------------------------------


def _plot(path: Path, title: str, cells: Cells, keys: list[str]) -> None:
    """Draw E1, E2 and E3 against n, one column of panels for each scenario.

    The population is drawn one decade to the right of the largest sample.
    """
    sizes = sorted(unique(cells, "n"))
    at = {n: n if n < inf else 10 * max([1.0, *sizes[:-1]]) for n in sizes}
    figure = Figure(figsize=(3 + 2.4 * len(keys), 7.2), layout="constrained")
    axes = figure.subplots(3, len(keys), sharex=True, sharey=True, squeeze=False)
    for (row, metric), (column, key) in product(enumerate(ERRORS), enumerate(keys)):
        axis = axes[row, column]
        axis.set(xscale="log", xlim=(at[sizes[0]] / 2, 2 * at[sizes[-1]]), ylim=(-0.04, 1.04))
        axis.set(ylabel=NAMES[metric], title=key if row == 0 else "")
        for method in unique(cells, "method"):
            places = [(key, n, method) for n in sizes if (key, n, method) in cells.index]
            found, x = cells.loc[places], [at[n] for _, n, _ in places]
            style = {**STYLES[method], "capsize": 2, "markersize": 4, "linewidth": 1.2}
            error = found[f"{metric}_error"].fillna(0.0)
            axis.errorbar(x, found[metric], yerr=error, label=method, **style)
        marks = [printed().get((key, metric, n), nan) for n in sizes]
        axis.plot(list(at.values()), marks, "kx", label="printed in the paper")
        axis.set_xticks(list(at.values()), list(map(size, sizes)), rotation=60, fontsize=8)
        axis.minorticks_off()
        axis.grid(alpha=0.25)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle(title, fontsize=11)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=90, metadata={"Software": None})
    write_file(path, lambda file: file.write(drawn.getvalue()))
