"""Shared drawing functions: circles for latents, arrows for causes, arcs for hidden causes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

BLUE, RED, GREY, PALE = "#1f5fa8", "#c0392b", "#8a8a8a", "#e8eef6"
Place = tuple[float, float]

# Makes the files reproducible: no date, no random identifiers, text stored as text.
plt.rcParams.update(
    {"svg.hashsalt": "jigsaw-crl", "svg.fonttype": "none", "font.size": 11, "axes.titlesize": 12}
)


def latents(ax: Axes, places: Mapping[str, Place], hidden: Iterable[str] = ()) -> None:
    """Draw a circle for each latent; hidden latents are dashed and grey."""
    unseen = set(hidden)
    for name, place in places.items():
        grey = name in unseen
        ax.add_patch(
            Circle(
                place,
                0.34,
                facecolor="white" if grey else PALE,
                edgecolor=GREY if grey else BLUE,
                linestyle="--" if grey else "-",
                zorder=3,
            )
        )
        ax.text(*place, name, ha="center", va="center", color=GREY if grey else "black", zorder=4)


def arrows(
    ax: Axes, places: Mapping[str, Place], pairs: Iterable[tuple[str, str]], colour: str = BLUE
) -> None:
    """Draw an arrow from each cause to its effect."""
    for cause, effect in pairs:
        _join(ax, places[cause], places[effect], "-|>", colour, 0.0)


def hidden_causes(
    ax: Axes, places: Mapping[str, Place], pairs: Iterable[tuple[str, str]], bend: float = -0.5
) -> None:
    """Draw a red arc between two latents that share a hidden cause."""
    for one, other in pairs:
        _join(ax, places[one], places[other], "<|-|>", RED, bend)


def box(ax: Axes, low: Place, high: Place, text: str = "", colour: str = BLUE) -> None:
    """Draw a rounded box with a caption around a group of latents."""
    width, height = high[0] - low[0], high[1] - low[1]
    shape = FancyBboxPatch(
        low, width, height, boxstyle="round,pad=0.12", fill=False, edgecolor=colour, linewidth=1.4
    )
    ax.add_patch(shape)
    ax.text((low[0] + high[0]) / 2, high[1] + 0.2, text, ha="center", va="bottom", color=colour)


def blank(ax: Axes, title: str, x: Place, y: Place) -> None:
    """Hide the axes, use equal scales and set the title."""
    ax.set(xlim=x, ylim=y, aspect="equal", title=title)
    ax.axis("off")


def save(figure: Figure, name: str) -> Path:
    """Write `name`.svg to the folder given on the command line (default: the current folder)."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{name}.svg"
    figure.savefig(target, metadata={"Date": None}, bbox_inches="tight", facecolor="white")
    plt.close(figure)
    print(f"written to {target}")
    return target


def _join(ax: Axes, start: Place, end: Place, style: str, colour: str, bend: float) -> None:
    ax.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle=style,
            mutation_scale=13,
            color=colour,
            linewidth=1.4,
            shrinkA=19,
            shrinkB=19,
            connectionstyle=f"arc3,rad={bend}",
            zorder=2,
        )
    )
