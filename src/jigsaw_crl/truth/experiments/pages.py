"""The comparison with the printed numbers: cells of replicates, a page in Markdown, pictures.

A cell has the mean and the standard error of each metric over the replicates of one scenario,
sample size and method. The page and its pictures are made from the file of cells alone.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf, sqrt
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable, write_file, write_text
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.truth.experiments.plan import LARGE_CLIENT, LARGEST, scenario_of
from jigsaw_crl.truth.experiments.published import POPULATION, SAMPLE_SIZES, TABLES, Row

# Decimals in the file: two more than a page shows.
DECIMALS = 4
NAMES = {"e1": "E1", "e2": "E2", "e3": "E3", "seconds": "Runtime (s)"}
ERRORS = ("e1", "e2", "e3")
PLACE = ["scenario", "n", "method"]
MINUS, NONE = "\N{MINUS SIGN}", "–"
# A mean differs from a printed number when it is farther away than this many standard deviations
# of a single run, and than the rounding of the printed number.
FAR = 2.0
ROUNDING = 0.005
# Methods differ in colour, marker and line, for print and for colour-blind readers.
STYLES: dict[str, dict[str, Any]] = {
    "paper": {"color": "#b04a00", "marker": "o", "linestyle": "--"},
    "null-cone": {"color": "#005a9c", "marker": "s", "linestyle": "-"},
}

# A DataFrame with the index `PLACE`, whose look-ups the types of pandas do not cover.
Cells = Any
# A printed number by metric and sample size; None where the paper prints none.
Printed = Callable[[str, float], float | None]


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


def read_results(path: Path) -> Cells:
    """Read a file of cells."""
    try:
        with readable(path):
            found = pd.read_csv(path).set_index(PLACE)
        found[[*NAMES, "date", "replicates"]]  # a KeyError names what is missing
        return found
    except (ValueError, KeyError) as error:
        raise InputError(
            f"it is not a results file ({type(error).__name__}: {error})",
            "Pass a results.csv that `jigsaw reproduce` wrote.",
            path=path,
        ) from None


def updated(old: Cells, new: Cells) -> Cells:
    """Old cells, with new ones added or put in the place of their own."""
    both = pd.concat([old[~old.index.isin(new.index)], new])
    return both.sort_index(level=PLACE, ascending=[True, True, False])


def spread(cell: Any, metric: str) -> float:
    """Standard deviation of the difference between our mean and one further run."""
    error = cell[f"{metric}_error"]
    return 0.0 if pd.isna(error) else float(error) * sqrt(cell["replicates"] + 1)


# -- the page -------------------------------------------------------------------------------------


def write_pages(cells: Cells, kind: str, out: Path) -> Pages:
    """Write the file of cells, and from it the page and the pictures."""
    results = write_text(out / "results.csv", cells.to_csv())
    cells = read_results(results)  # the page shows the rounded numbers of the file
    known = _unique(cells, "scenario")
    pictures, sections = list[Path](), list[str]()
    printed: dict[str, Printed] = {}
    if kind == "figures":
        title = "Figures: E1, E2 and E3 against the sample size"
        text = "The paper's figures are pictures without printed numbers; its text states the "
        text += "values at n = ∞."
        for key in known:
            printed[key] = _population
            name, _, noise = key.partition("-")
            head = f"Setting {name}, {noise.capitalize()} noise"
            pictures.append(out / f"{key}.png")
            _plot(pictures[-1], head, cells, {"": (key, _population)})
            lines = [_line(cells, key, m, n, _population) for m in ERRORS for n in _sizes(cells)]
            sections += _section(head, _header(cells), lines, text, pictures[-1])
    else:
        title = "Tables 1 to 3: sensitivity to p, K and q"
        for table in TABLES:
            rows = {r: scenario_of(r).key for r in table.rows if scenario_of(r).key in known}
            if not rows:
                continue
            printed |= {key: row.value for row, key in rows.items()}
            head = f"Table {table.number}: sensitivity to {table.varies}"
            pictures.append(out / f"table-{table.number}.png")
            names = {row: f"{row.changed(table.varies):g}" for row in rows}
            panels = {f"{table.varies} = {names[r]}": (rows[r], r.value) for r in rows}
            _plot(pictures[-1], head, cells, panels)
            lines = [[names[r], *line] for r in rows for line in _row_lines(cells, r)]
            header = [table.varies, *_header(cells)]
            sections += _section(head, header, lines, "", pictures[-1])
    page_lines = [f"# {title}", "", *_intro(cells), *_summary(cells, printed), *sections]
    page = write_text(out / f"{kind}.md", "\n".join(page_lines))
    return Pages(results, page, tuple(pictures))


def _unique(cells: Cells, level: str) -> list[Any]:
    return list(cells.index.get_level_values(level).unique())


def _sizes(cells: Cells) -> list[float]:
    return sorted(_unique(cells, "n"))


def _population(metric: str, n: float) -> float | None:
    """What the paper states of its figures."""
    return POPULATION[metric] if n == inf else None


def _row_lines(cells: Cells, row: Row) -> list[list[str]]:
    """The lines of one row of a printed table: every metric at every n, and the runtime."""
    key = scenario_of(row).key
    lines = [_line(cells, key, m, n, row.value) for m in ERRORS for n in SAMPLE_SIZES]
    return [*lines, _line(cells, key, "seconds", inf, lambda *_: row.seconds)]


def _section(
    title: str,
    header: Sequence[str],
    lines: Sequence[Sequence[str]],
    text: str = "",
    picture: Path | None = None,
) -> list[str]:
    """A heading, a picture, a text and a table."""
    found = [f"## {title}", ""]
    found += [] if picture is None else [f"![{title}]({picture.name})", ""]
    found += [text, ""] if text else []
    found += ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    return [*found, *("| " + " | ".join(line) + " |" for line in lines), ""]


def _header(cells: Cells) -> list[str]:
    columns = ["metric", "n", "printed"]
    for method in _unique(cells, "method"):
        columns.append(f"{method}: mean ± s.e. (runs)")
        if method == "paper":
            columns += ["difference", "in s.d. of a run", "τ", "stopped early"]
    return columns


def _line(cells: Cells, key: str, metric: str, n: float, printed: Printed) -> list[str]:
    value = printed(metric, n)
    line = [NAMES[metric], _size(n), NONE if value is None else f"{value:.2f}"]
    for method in _unique(cells, "method"):
        if (key, n, method) not in cells.index:
            line += [NONE] * (5 if method == "paper" else 1)
            continue
        cell = cells.loc[(key, n, method)]
        line.append(f"{_with_error(cell, metric)} ({cell['replicates']:.0f})")
        if method == "paper":
            gap = None if value is None else cell[metric] - value
            unit = spread(cell, metric)
            line.append(NONE if gap is None else _signed(gap))
            line.append(NONE if gap is None or not unit else _signed(gap / unit, 1))
            line.append(NONE if pd.isna(cell["tau"]) else f"{cell['tau']:g}")
            early = f"{cell['stopped']:.0f} of {cell['clients']:.0f}"
            line.append(early if cell["stopped"] else "0")
    return line


def _summary(cells: Cells, printed: Mapping[str, Printed]) -> list[str]:
    """Means over all families of worlds, and how many cells differ from the printed number."""
    methods, lines = _unique(cells, "method"), []
    for metric, n in product(ERRORS, _sizes(cells)):
        # The printed mean is over the families that the paper's method was run on.
        beside = "paper" if "paper" in methods else methods[0]
        known = {
            key: of(metric, n) for key, of in printed.items() if (key, n, beside) in cells.index
        }
        values = {key: value for key, value in known.items() if value is not None}
        line = [NAMES[metric], _size(n), _mean(pd.Series(values, dtype=float))]
        for method in methods:
            at = [key for key in printed if (key, n, method) in cells.index]
            line.append(_mean(cells.loc[[(key, n, method) for key in at], metric]))
            if method == "paper":
                far = 0
                for key, value in values.items():
                    cell = cells.loc[(key, n, method)]
                    far += abs(cell[metric] - value) > FAR * spread(cell, metric) + ROUNDING
                line.append(f"{far} of {len(values)}" if values else NONE)
        lines.append(line)
    header = ["metric", "n", "printed"]
    for method in methods:
        header += [method, "cells that differ"] if method == "paper" else [method]
    text = f"Means over {pluralise(len(printed), 'family', 'families')} of worlds."
    if "paper" in methods:
        text += (
            f" A cell differs when the printed number, which is a single run, is more than {FAR:g} "
            "standard deviations of a run away from our mean."
        )
    return _section("Summary", header, lines, text)


def _intro(cells: Cells) -> list[str]:
    methods = _unique(cells, "method")
    days = cells["date"].groupby("method", sort=False).max()
    lines = [
        "Every cell is a mean over runs ± its standard error. The paper prints one run per cell. "
        "All methods get the same data. Last run: "
        f"{'; '.join(f'{m} on {d}' for m, d in days.items())}. Runtimes depend on the machine.",
        "",
    ]
    if "paper" in methods:
        ours = cells.xs("paper", level="method").iloc[-1]
        lines += [
            "“difference” is our mean for the paper's method minus the printed number: as it is, "
            "and in standard deviations of a single run, because the printed number is one. τ was "
            f"chosen for each family of worlds and n on {ours['tuned_on']} extra runs from "
            f"{ours['candidates']} candidates (from the {LARGEST} largest where a client has more "
            f"than {LARGE_CLIENT:g} latents on average) by E1 {MINUS} E2 {MINUS} E3. The paper's "
            f"search may try {ours['budget']:,} label sets per client; “stopped early” counts the "
            "clients where that was not enough.",
            "",
        ]
    missing = [
        f"{key} by {method} at n = {_size(n)}"
        for key, method, n in product(_unique(cells, "scenario"), methods, _sizes(cells))
        if (key, n, method) not in cells.index
    ]
    return [*lines, f"Not run: {'; '.join(missing)}.", ""] if missing else lines


def headline_table(cells: Cells) -> str:
    """E1 of both methods at each p of Table 1, beside the printed numbers, in Markdown."""

    def found(row: Row, n: float, method: str) -> str:
        place = (scenario_of(row).key, n, method)
        return _with_error(cells.loc[place], "e1") if place in cells.index else NONE

    low, high = 10**4, 10**6
    header = ["latents", f"null-cone, {_size(low)} rows", f"paper's method, {_size(low)} rows"]
    header += [f"paper's method, {_size(high)} rows", f"printed, {_size(low)} rows"]
    header += [f"printed, {_size(high)} rows"]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for row in TABLES[0].rows:
        ours = [found(row, low, "null-cone"), found(row, low, "paper"), found(row, high, "paper")]
        printed = [f"{row.value('e1', n):.2f}" for n in (low, high)]
        line = " | ".join([*ours, *printed]).replace("0.", ".")
        lines.append(f"| {row.n_latent} | {line} |")
    return "\n".join(lines)


def _with_error(cell: Any, metric: str) -> str:
    error = cell[f"{metric}_error"]
    return f"{cell[metric]:.2f}" + ("" if pd.isna(error) else f" ± {error:.2f}")


def _mean(values: pd.Series) -> str:
    return f"{values.mean():.2f}" if len(values) else NONE


def _size(n: float) -> str:
    if n == inf:
        return "∞"
    lead, power = f"{n:e}".split("e")
    head = f"{float(lead):g}"
    up = str(int(power)).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{up}" if head == "1" else f"{head}·10{up}"


def _signed(x: float, decimals: int = 2) -> str:
    return f"{x:+.{decimals}f}".replace("-", MINUS)


# -- pictures -------------------------------------------------------------------------------------


def _plot(path: Path, title: str, cells: Cells, columns: Mapping[str, tuple[str, Printed]]) -> None:
    """Draw E1, E2 and E3 against n, one column of panels for each scenario and its printed values.

    The population is drawn one decade to the right of the largest sample.
    """
    finite = [n for n in _sizes(cells) if n < inf]
    end = 10 * finite[-1] if finite else 10
    figure = Figure(figsize=(3 + 2.4 * len(columns), 7.2), layout="constrained")
    axes = figure.subplots(3, len(columns), sharex=True, sharey=True, squeeze=False)
    for column, (head, (key, printed)) in zip(axes.T, columns.items(), strict=True):
        column[0].set_title(head, fontsize=10)
        column[-1].set_xlabel("$n$")
        for axis, metric in zip(column, ERRORS, strict=True):
            axis.set(xscale="log", xlim=(min(finite, default=1) / 2, 2 * end), ylim=(-0.04, 1.04))
            axis.set_ylabel(f"${metric.upper()[0]}_{metric[1]}$")
            for method in _unique(cells, "method"):
                at = [n for n in (*finite, inf) if (key, n, method) in cells.index]
                found = cells.loc[[(key, n, method) for n in at]]
                x, error = [min(n, end) for n in at], found[f"{metric}_error"].fillna(0.0)
                style = {**STYLES[method], "capsize": 2, "markersize": 4, "linewidth": 1.2}
                axis.errorbar(x, found[metric], yerr=error, label=method, **style)
            marks = {
                min(n, end): y for n in (*finite, inf) if (y := printed(metric, n)) is not None
            }
            axis.plot(list(marks), list(marks.values()), "kx", label="printed in the paper")
            axis.set_xticks([*finite, end], [*map(_size, finite), "∞"], rotation=60, fontsize=8)
            axis.minorticks_off()
            axis.grid(alpha=0.25)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle(title, fontsize=11)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=90, metadata={"Software": None})
    write_file(path, lambda file: file.write(drawn.getvalue()))
