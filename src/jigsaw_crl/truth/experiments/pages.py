"""The comparison with the printed numbers, as Markdown and as one HTML file."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from jigsaw_crl.truth.experiments.published import POPULATION, SAMPLE_SIZES, TABLES, Table
from jigsaw_crl.truth.experiments.scenarios import Plan, Scenario
from jigsaw_crl.truth.experiments.summary import Cell, Cells

__all__ = ["Run", "Section", "figure_sections", "html_page", "markdown_page", "table_sections"]

NAMES = {"e1": "E1", "e2": "E2", "e3": "E3", "seconds": "Runtime (s)"}
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Section:
    """A heading, a text, a table, and a picture if there is one."""

    title: str
    text: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    picture: Path | None = None


@dataclass(frozen=True, eq=False)
class Run:
    """A finished plan: its means, and the τ chosen for each scenario and n."""

    plan: Plan
    cells: Cells
    taus: Mapping[tuple[str, int], float]


def table_sections(run: Run) -> list[Section]:
    """Tables 1 to 3: the printed number, ours, the difference, and the other methods."""
    sections = []
    for table in TABLES:
        rows = []
        for row in table.rows:
            scenario = Scenario("gaussian", None, row.n_latent, row.n_clients, row.coverage)
            value = {"p": row.n_latent, "K": row.n_clients, "q": row.coverage}[table.varies]
            for metric in ("e1", "e2", "e3"):
                for n in SAMPLE_SIZES:
                    printed = row.value(metric, n)
                    rows.append((f"{value:g}", *_row(run, scenario, n, metric, printed)))
            rows.append((f"{value:g}", *_row(run, scenario, None, "seconds", row.seconds)))
        sections.append(
            Section(
                f"Table {table.number}: sensitivity to {table.varies}",
                _distance(run, table),
                (table.varies, *_header(run.plan)),
                tuple(rows),
            )
        )
    return sections


def figure_sections(run: Run, pictures: Mapping[str, Path]) -> list[Section]:
    """One section per scenario; the paper prints numbers for the population only."""
    return [
        Section(
            f"Setting {scenario.setting}, {scenario.noise.capitalize()} noise",
            "The paper's figures are pictures without printed numbers; its text states the values "
            "at n = ∞.",
            _header(run.plan),
            tuple(
                _row(run, scenario, n, m, POPULATION[m] if n is None else None)
                for m in ("e1", "e2", "e3")
                for n in run.plan.sizes
            ),
            pictures[scenario.key],
        )
        for scenario in run.plan.scenarios
    ]


def _header(plan: Plan) -> tuple[str, ...]:
    columns = ["metric", "n", "printed"]
    for method in plan.methods:
        columns.append(f"{method}: mean ± s.e. (replicates)")
        if method == "paper":
            columns += ["difference", "τ"]
    return tuple(columns)


def _row(
    run: Run, scenario: Scenario, n: int | None, metric: str, printed: float | None
) -> tuple[str, ...]:
    out = [NAMES[metric], _size(n), "–" if printed is None else f"{printed:.2f}"]
    for method in run.plan.methods:
        cell = run.cells.get((scenario.key, n, method, metric))
        out.append("–" if cell is None else f"{cell} ({cell.replicates})")
        if method == "paper":
            known = cell is not None and printed is not None
            out.append(_signed(cell.mean - printed) if known else "–")  # type: ignore[operator,union-attr]
            tau = None if n is None else run.taus.get((scenario.key, n))
            out.append("–" if tau is None else f"{tau:g}")
    return tuple(out)


def _distance(run: Run, table: Table) -> str:
    """The mean distance from the printed numbers, metric by metric."""
    if "paper" not in run.plan.methods:
        return ""
    parts = []
    for metric in ("e1", "e2", "e3"):
        gaps: list[float] = []
        beyond = 0
        for row in table.rows:
            key = Scenario("gaussian", None, row.n_latent, row.n_clients, row.coverage).key
            found: list[tuple[Cell | None, float]] = [
                (run.cells.get((key, n, "paper", metric)), row.value(metric, n))
                for n in SAMPLE_SIZES
            ]
            gaps += [cell.mean - printed for cell, printed in found if cell is not None]
            beyond += sum(cell is not None and _far(cell, printed) for cell, printed in found)
        if gaps:
            size = sum(abs(g) for g in gaps) / len(gaps)
            parts.append(
                f"{NAMES[metric]} differs from the printed number by {size:.2f} on average "
                f"(signed {_signed(sum(gaps) / len(gaps))}; {beyond} of {len(gaps)} cells by more "
                "than two standard deviations of a single run)"
            )
    return "; ".join(parts) + "." if parts else ""


def _far(cell: Cell, printed: float) -> bool:
    """Whether the mean is more than two standard deviations from the printed number.

    The printed number is a single run, rounded to two decimals.
    """
    spread = (cell.error or 0.0) * (cell.replicates + 1) ** 0.5
    return bool(abs(cell.mean - printed) > 2 * spread + 0.005)


def _intro(run: Run) -> list[str]:
    plan = run.plan
    return [
        f"Every cell: the mean over replicates ± its standard error (number of replicates). "
        f"{plan.replicates} replicates were planned; the paper prints one run per cell.",
        f"“difference” is our run of the paper's method minus the printed number. τ was chosen per "
        f"scenario and n on {plan.calibration_runs} extra runs from {len(plan.grid)} candidates "
        f"by E1 {MINUS} E2 {MINUS} E3. The paper's search may try {plan.budget:,} label sets per "
        f"client. All methods get the same data; runtimes depend on the machine.",
        *(
            f"{method}: {stopped} client recoveries ended with an outcome other than ok"
            + (" (nearly always the search budget)." if method == "paper" else ".")
            for method in plan.methods
            if (stopped := _stopped(method, run.cells))
        ),
    ]


def _stopped(method: str, cells: Cells) -> int:
    return sum(
        round(cell.mean * cell.replicates)
        for (_, _, used, metric), cell in cells.items()
        if used == method and metric == "stopped"
    )


def markdown_page(title: str, run: Run, sections: Sequence[Section]) -> str:
    """The page as Markdown; pictures are linked."""
    lines = [f"# {title}", ""]
    for paragraph in _intro(run):
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


_CSS = """
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;
color:#1b1b1b;background:#fff}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #ddd}
th{position:sticky;top:0;background:#f4f4f4}td:first-child,th:first-child{text-align:left}
img{max-width:100%}@media(prefers-color-scheme:dark){body{color:#eee;background:#181818}
th{background:#262626}th,td{border-color:#444}img{background:#fff}}
"""


def html_page(title: str, run: Run, sections: Sequence[Section]) -> str:
    """The page as one HTML file with its pictures embedded."""
    out = [
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>',
        f'<meta name="viewport" content="width=device-width"><style>{_CSS}</style>',
        f"<h1>{escape(title)}</h1>",
    ]
    out += [f"<p>{escape(paragraph)}</p>" for paragraph in _intro(run)]
    for section in sections:
        out.append(f"<h2>{escape(section.title)}</h2>")
        if section.picture is not None:
            data = base64.b64encode(section.picture.read_bytes()).decode()
            alt = escape(f"E1, E2 and E3 against n: {section.title}")
            out.append(f'<img alt="{alt}" src="data:image/png;base64,{data}">')
        if section.text:
            out.append(f"<p>{escape(section.text)}</p>")
        head = "".join(f'<th scope="col">{escape(h)}</th>' for h in section.header)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in section.rows
        )
        out.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    return "\n".join(out) + "</html>\n"


def _size(n: int | None) -> str:
    if n is None:
        return "∞"
    digits = f"{n:e}"
    lead, power = digits.split("e")
    head = f"{float(lead):g}"
    up = str(int(power)).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{up}" if head == "1" else f"{head}·10{up}"


def _signed(x: float) -> str:
    return f"{x:+.2f}".replace("-", MINUS)
