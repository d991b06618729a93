"""Pictures of E1, E2 and E3 against n: one per scenario of the figures, and one per table."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from jigsaw_crl.base.files import write_file
from jigsaw_crl.truth.experiments.published import POPULATION, Table
from jigsaw_crl.truth.experiments.results import Results
from jigsaw_crl.truth.experiments.scenarios import Scenario, scenario_of

__all__ = ["plot_scenario", "plot_table"]

PANELS = (
    ("e1", "$E_1$", "Global ancestral F1"),
    ("e2", "$E_2$", "Subspace error of $\\hat{Q}_k$"),
    ("e3", "$E_3$", "Support error of $\\hat{Z}_k$"),
)
# Methods differ in colour, marker and line, for print and for colour-blind readers.
STYLES = {
    "paper": {"color": "#b04a00", "marker": "o", "linestyle": "--"},
    "null-cone": {"color": "#005a9c", "marker": "s", "linestyle": "-"},
}
PRINTED: dict[str, Any] = {"color": "black", "marker": "x", "linestyle": "none", "zorder": 3}
# A printed number by metric and sample size; None where the paper prints none.
Printed = Callable[[str, int | None], float | None]


def plot_scenario(scenario: Scenario, results: Results, path: Path) -> None:
    """Draw one of the paper's six figures; it prints numbers for the population only."""
    figure = Figure(figsize=(10.5, 3.5), layout="constrained")
    axes = figure.subplots(1, 3)

    def printed(metric: str, n: int | None) -> float | None:
        return POPULATION[metric] if n is None else None

    for axis, (metric, short, title) in zip(axes, PANELS, strict=True):
        _draw(axis, scenario, metric, results, printed)
        axis.set(xlabel="$n$", ylabel=short)
        axis.set_title(title, fontsize=10)
    _legend(figure, axes[0])
    figure.suptitle(f"Setting {scenario.setting}, {scenario.noise.capitalize()} noise", fontsize=11)
    _save(figure, path, dpi=100)


def plot_table(table: Table, results: Results, path: Path) -> None:
    """Draw one table: a row of panels for each metric, a column for each row of the table."""
    figure = Figure(figsize=(11.5, 7.2), layout="constrained")
    axes = figure.subplots(3, len(table.rows), sharex=True, sharey=True, squeeze=False)
    for column, row in zip(axes.T, table.rows, strict=True):
        for axis, (metric, _, _) in zip(column, PANELS, strict=True):
            _draw(axis, scenario_of(row), metric, results, row.value)
        column[0].set_title(f"{table.varies} = {row.changed(table.varies):g}", fontsize=10)
        column[-1].set_xlabel("$n$")
    for axis, (_, short, _) in zip(axes[:, 0], PANELS, strict=True):
        axis.set_ylabel(short)
    _legend(figure, axes[0][0])
    figure.suptitle(f"Table {table.number}: sensitivity to {table.varies}", fontsize=11)
    _save(figure, path, dpi=90)


def _save(figure: Figure, path: Path, dpi: int) -> None:
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi, metadata={"Software": None})
    write_file(path, lambda file: file.write(drawn.getvalue()))


def _legend(figure: Figure, axis: Any) -> None:
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)


def _draw(axis: Any, scenario: Scenario, metric: str, results: Results, printed: Printed) -> None:
    """Means with their standard errors against n, the population at the right edge."""
    plan, cells = results.plan, results.cells
    finite = sorted(n for n in plan.sizes if n is not None)
    # The population is drawn one decade to the right of the largest sample.
    end = 10 * finite[-1] if finite else 10
    for method in plan.methods:
        at = [n for n in (*finite, None) if (scenario.key, n, method) in cells]
        found = [cells[scenario.key, n, method].means[metric] for n in at]
        axis.errorbar(
            [end if n is None else n for n in at],
            [m.mean for m in found],
            yerr=[m.error or 0.0 for m in found],
            label=method,
            capsize=2,
            markersize=4,
            linewidth=1.2,
            **STYLES.get(method, {}),
        )
    marks = [(n, y) for n in (*finite, None) if (y := printed(metric, n)) is not None]
    axis.plot(
        [end if n is None else n for n, _ in marks],
        [y for _, y in marks],
        label="printed in the paper",
        **PRINTED,
    )
    axis.set(xscale="log", ylim=(-0.04, 1.04))
    decades = [n for n in finite if str(n).strip("0") == "1"]
    axis.set_xticks(
        [*decades, end], [*(f"$10^{{{len(str(n)) - 1}}}$" for n in decades), "$\\infty$"]
    )
    axis.minorticks_off()
    axis.grid(alpha=0.25)
