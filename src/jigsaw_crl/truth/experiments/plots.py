"""One picture per scenario, in the layout of the paper's figures."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from jigsaw_crl.base.files import write_file
from jigsaw_crl.truth.experiments.scenarios import Scenario
from jigsaw_crl.truth.experiments.summary import Cells

__all__ = ["plot_scenario"]

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


def plot_scenario(
    scenario: Scenario,
    sizes: Sequence[int | None],
    methods: Sequence[str],
    cells: Cells,
    path: Path,
) -> None:
    """Draw E1, E2 and E3 against n, with the population at the right edge and standard errors."""
    figure = Figure(figsize=(10.5, 3.2), layout="constrained")
    axes = figure.subplots(1, 3)
    finite = sorted(n for n in sizes if n is not None)
    # The population is drawn one decade to the right of the largest sample.
    end = 10 * finite[-1] if finite else 10
    for axis, (metric, short, title) in zip(axes, PANELS, strict=True):
        for method in methods:
            at = [n for n in (*finite, None) if (scenario.key, n, method, metric) in cells]
            found = [cells[scenario.key, n, method, metric] for n in at]
            axis.errorbar(
                [end if n is None else n for n in at],
                [c.mean for c in found],
                yerr=[c.error or 0.0 for c in found],
                label=method,
                capsize=2,
                markersize=5,
                linewidth=1.3,
                **STYLES.get(method, {}),
            )
        axis.set(xscale="log", ylim=(-0.04, 1.04), xlabel="$n$", ylabel=short)
        decades = [n for n in finite if str(n).strip("0") == "1"]
        axis.set_xticks(
            [*decades, end], [*(f"$10^{{{len(str(n)) - 1}}}$" for n in decades), "$\\infty$"]
        )
        axis.minorticks_off()
        axis.set_title(title, fontsize=10)
        axis.grid(alpha=0.25)
    axes[0].legend(frameon=False, fontsize=9)
    figure.suptitle(f"Setting {scenario.setting}, {scenario.noise.capitalize()} noise", fontsize=11)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=130, metadata={"Software": None})
    write_file(path, lambda file: file.write(drawn.getvalue()))
