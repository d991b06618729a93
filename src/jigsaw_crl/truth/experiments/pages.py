"""The comparison with the printed numbers, in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jigsaw_crl.base.text import pluralise
from jigsaw_crl.truth.experiments.published import POPULATION, SAMPLE_SIZES, TABLES, Row, Table
from jigsaw_crl.truth.experiments.results import Cell, Results
from jigsaw_crl.truth.experiments.scenarios import (
    LARGE_CLIENT,
    LARGEST,
    Plan,
    Scenario,
    scenario_of,
)

__all__ = [
    "Section",
    "figure_sections",
    "headline_table",
    "markdown_page",
    "shown_tables",
    "table_sections",
    "title_of",
]

NAMES = {"e1": "E1", "e2": "E2", "e3": "E3", "seconds": "Runtime (s)"}
ERRORS = ("e1", "e2", "e3")
MINUS = "\N{MINUS SIGN}"
# A mean differs from a printed number when it is farther away than this many standard deviations
# of a single run, and than the rounding of the printed number.
FAR = 2.0
ROUNDING = 0.005

Printed = Callable[[str, int | None], float | None]


@dataclass(frozen=True)
class Section:
    """A heading, a text, a table, and a picture if there is one."""

    title: str
    text: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    picture: Path | None = None


def title_of(kind: str) -> str:
    """The title of the page on the figures or the tables."""
    if kind == "figures":
        return "Figures: E1, E2 and E3 against the sample size"
    return "Tables 1 to 3: sensitivity to p, K and q"


def shown_tables(results: Results) -> list[Table]:
    """The tables of which some row was run."""
    run = set(results.plan.scenarios)
    return [table for table in TABLES if any(scenario_of(row) in run for row in table.rows)]


def table_sections(results: Results, pictures: Mapping[str, Path]) -> list[Section]:
    """A summary, and Tables 1 to 3: the printed number, ours, and the differences."""
    run = set(results.plan.scenarios)
    worlds = {scenario_of(row): row for table in TABLES for row in table.rows}
    sections = [_summary(results, {s: row.value for s, row in worlds.items() if s in run})]
    for table in shown_tables(results):
        rows = []
        for row in (row for row in table.rows if scenario_of(row) in run):
            value, scenario = f"{row.changed(table.varies):g}", scenario_of(row)
            for metric in ERRORS:
                rows += [
                    (value, *_row(results, scenario, n, metric, row.value(metric, n)))
                    for n in SAMPLE_SIZES
                ]
            rows.append((value, *_row(results, scenario, None, "seconds", row.seconds)))
        sections.append(
            Section(
                f"Table {table.number}: sensitivity to {table.varies}",
                "",
                (table.varies, *_header(results)),
                tuple(rows),
                pictures[table.varies],
            )
        )
    return sections


def figure_sections(results: Results, pictures: Mapping[str, Path]) -> list[Section]:
    """A summary, and one section per scenario; the paper prints numbers for n = ∞ only."""

    def printed(metric: str, n: int | None) -> float | None:
        return POPULATION[metric] if n is None else None

    scenarios = results.plan.scenarios
    return [_summary(results, dict.fromkeys(scenarios, printed))] + [
        Section(
            f"Setting {scenario.setting}, {scenario.noise.capitalize()} noise",
            "The paper's figures are pictures without printed numbers; its text states the values "
            "at n = ∞.",
            _header(results),
            tuple(
                _row(results, scenario, n, metric, printed(metric, n))
                for metric in ERRORS
                for n in results.plan.sizes
            ),
            pictures[scenario.key],
        )
        for scenario in scenarios
    ]


def _header(results: Results) -> tuple[str, ...]:
    columns = ["metric", "n", "printed"]
    for method in results.plan.methods:
        columns.append(f"{method}: mean ± s.e. (runs)")
        if method == "paper":
            columns += ["difference", "in s.e.", "in s.d. of a run", "τ", "stopped early"]
    return tuple(columns)


def _row(
    results: Results, scenario: Scenario, n: int | None, metric: str, printed: float | None
) -> tuple[str, ...]:
    out = [NAMES[metric], _size(n), "–" if printed is None else f"{printed:.2f}"]
    for method in results.plan.methods:
        cell = results.cells.get((scenario.key, n, method))
        out.append("–" if cell is None else f"{cell.means[metric]} ({cell.replicates})")
        if method == "paper":
            out += _compared(cell, metric, printed)
    return tuple(out)


def _compared(cell: Cell | None, metric: str, printed: float | None) -> list[str]:
    """The difference in three units, τ, and how many clients' searches stopped early."""
    if cell is None:
        return ["–"] * 5
    tuning = ["–" if cell.tau is None else f"{cell.tau:g}", _share(cell)]
    if printed is None:
        return ["–"] * 3 + tuning
    gap, error, spread = (
        cell.means[metric].mean - printed,
        cell.means[metric].error,
        cell.spread(metric),
    )
    units = [_signed(gap / unit, 1) if unit else "–" for unit in (error, spread)]
    return [_signed(gap), *units, *tuning]


def _share(cell: Cell) -> str:
    return f"{cell.stopped} of {cell.clients}" if cell.stopped else "0"


def _summary(results: Results, printed: Mapping[Scenario, Printed]) -> Section:
    """Means over all families of worlds, and how many cells differ from the printed number."""
    methods, rows = results.plan.methods, []
    for metric in ERRORS:
        for n in results.plan.sizes:
            cells = {
                (method, s): cell
                for method in methods
                for s in printed
                if (cell := results.cells.get((s.key, n, method))) is not None
            }
            # The printed mean is over the families that the paper's method was run on.
            beside = [s for s in printed if "paper" not in methods or ("paper", s) in cells]
            known = {s: value for s in beside if (value := printed[s](metric, n)) is not None}
            row = [NAMES[metric], _size(n), _mean(known.values())]
            for method in methods:
                found = {s: cell for (m, s), cell in cells.items() if m == method}
                row.append(_mean(cell.means[metric].mean for cell in found.values()))
                if method == "paper":
                    row.append(_far(found, known, metric))
            rows.append(tuple(row))
    columns = ["metric", "n", "printed"]
    for method in methods:
        columns.append(method)
        if method == "paper":
            columns.append("cells that differ")
    families = pluralise(len(printed), "family", "families")
    text = f"Means over {families} of worlds."
    if "paper" in methods:
        text += (
            f" A cell differs when the printed number, which is a single run, is more than {FAR:g} "
            "standard deviations of a run away from our mean."
        )
    return Section("Summary", text, tuple(columns), tuple(rows))


def _mean(values: Iterable[float]) -> str:
    found = list(values)
    return f"{sum(found) / len(found):.2f}" if found else "–"


def _far(cells: Mapping[Scenario, Cell], printed: Mapping[Scenario, float], metric: str) -> str:
    both = [(cells[s], value) for s, value in printed.items() if s in cells]
    far = sum(
        abs(cell.means[metric].mean - value) > FAR * cell.spread(metric) + ROUNDING
        for cell, value in both
    )
    return f"{far} of {len(both)}" if both else "–"


def headline_table(results: Results) -> str:
    """E1 of both methods at each p of Table 1, beside the printed numbers, in Markdown."""

    def found(row: Row, n: int, method: str) -> str:
        cell = results.cells.get((scenario_of(row).key, n, method))
        return "–" if cell is None else _short(str(cell.means["e1"]))

    low, high = 10**4, 10**6
    lines = [
        f"| latents | null-cone, {_size(low)} rows | paper's method, {_size(low)} rows "
        f"| paper's method, {_size(high)} rows | printed, {_size(low)} rows "
        f"| printed, {_size(high)} rows |",
        "|---|---|---|---|---|---|",
    ]
    for row in TABLES[0].rows:
        ours = [found(row, *place) for place in ((low, "null-cone"), (low, "paper"))]
        printed = [_short(f"{row.value('e1', n):.2f}") for n in (low, high)]
        cells = [str(row.n_latent), *ours, found(row, high, "paper"), *printed]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _short(number: str) -> str:
    return number.replace("0.", ".")


def _intro(results: Results) -> list[str]:
    plan = results.plan
    days = "; ".join(f"{m} on {results.dates[m]}" for m in plan.methods if m in results.dates)
    paragraphs = [
        f"Every cell is a mean over runs ± its standard error; {plan.replicates} runs were planned "
        f"for each. The paper prints one run per cell. All methods get the same data. Last run: "
        f"{days}. Runtimes depend on the machine."
    ]
    if "paper" in plan.methods:
        paragraphs.append(
            f"“difference” is our mean for the paper's method minus the printed number: as it is, "
            f"in standard errors of our mean, and in standard deviations of a single run, which is "
            f"the unit that counts because the printed number is one. τ was chosen for each family "
            f"of worlds and n on {plan.calibration_runs} extra runs from {_candidates(plan)} by "
            f"E1 {MINUS} E2 {MINUS} E3. The paper's search may try {plan.budget:,} "
            f"label sets per client; “stopped early” counts the clients where that was not enough."
        )
    if missing := _missing(results):
        paragraphs.append(f"Not run: {'; '.join(missing)}.")
    return paragraphs


def _missing(results: Results) -> list[str]:
    """Cells of the plan without a result."""
    plan, out = results.plan, []
    for scenario in plan.scenarios:
        for method in plan.methods:
            sizes = [n for n in plan.sizes if (scenario.key, n, method) not in results.cells]
            if sizes:
                out.append(f"{scenario.key} by {method} at n = {', '.join(map(_size, sizes))}")
    return out


def _candidates(plan: Plan) -> str:
    text = f"{len(plan.grid)} candidates"
    if any(scenario.is_large for scenario in plan.scenarios):
        text += (
            f" (from the {LARGEST} largest where a client has more than {LARGE_CLIENT:g} latents "
            "on average)"
        )
    return text


def markdown_page(title: str, results: Results, sections: Sequence[Section]) -> str:
    """The page as Markdown; pictures are linked."""
    lines = [f"# {title}", ""]
    for paragraph in _intro(results):
        lines += [paragraph, ""]
    for section in sections:
        lines += [f"## {section.title}", ""]
        if section.picture is not None:
            lines += [f"![{section.title}]({section.picture.name})", ""]
        if section.text:
            lines += [section.text, ""]
        lines.append("| " + " | ".join(section.header) + " |")
        lines.append("|" + " --- |" * len(section.header))
        lines += ["| " + " | ".join(row) + " |" for row in section.rows]
        lines.append("")
    return "\n".join(lines)


def _size(n: int | None) -> str:
    if n is None:
        return "∞"
    digits = f"{n:e}"
    lead, power = digits.split("e")
    head = f"{float(lead):g}"
    up = str(int(power)).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{up}" if head == "1" else f"{head}·10{up}"


def _signed(x: float, decimals: int = 2) -> str:
    return f"{x:+.{decimals}f}".replace("-", MINUS)
