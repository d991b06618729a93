"""What the figures share: colours, axes, diagrams, names and hatched cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Patch, Rectangle
from matplotlib.path import Path as Curve

from jigsaw_crl.assembly import GlobalOrder
from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.report.drawing import Picture, draw_hasse
from jigsaw_crl.report.layout import signed

__all__ = [
    "BLUE",
    "GREY",
    "INK",
    "MANY",
    "MARKS",
    "ORANGE",
    "POINT",
    "SIGNED",
    "SIGNS",
    "VERMILION",
    "axes_of",
    "bare",
    "causes_first",
    "draw_picture",
    "hatch",
    "legend_of_hatches",
    "name_pairs",
    "plain",
]

BLUE, ORANGE, GREY, INK = "#0072B2", "#E69F00", "#8593a8", "#17202c"
VERMILION = "#D55E00"
SIGNS = {"plus": BLUE, "minus": VERMILION, "unclear": GREY}
SIGNED = LinearSegmentedColormap.from_list("signed", [VERMILION, "white", BLUE])
# Okabe and Ito's colours, told apart in every kind of colour vision.
MANY = (BLUE, VERMILION, "#009E73", "#CC79A7", "#56B4E9", ORANGE, INK)
MARKS = "osD^vPX"
# Points per pixel of the layout.
POINT = 0.75
MOST_NAMES = 60


def draw_picture(picture: Picture, ax: Axes | None) -> Figure:
    """Chips and edges of a picture; edges with a weight get the colour of its sign."""
    inches = (POINT / 72) * np.array([picture.width, picture.height])
    figure, ax = axes_of(ax, *np.clip(inches, 2.0, 40.0))
    # The font size follows the scale at which the layout is drawn.
    size = 10 * min(1.0, float(figure.get_figwidth() / inches[0]))
    for edge in picture.edges:
        weight = edge.weight
        points, codes = [edge.points[0]], [Curve.MOVETO]
        for (x, y), (u, v) in zip(edge.points, edge.points[1:], strict=False):
            points += [(x, (y + v) / 2), (u, (y + v) / 2), (u, v)]
            codes += [Curve.CURVE4] * 3
        ax.add_patch(
            FancyArrowPatch(
                path=Curve(points, codes),
                arrowstyle="-|>",
                mutation_scale=size,
                color=GREY if weight is None else SIGNS[weight.sign],
                linewidth=(0.11 if weight is None else 0.07 * weight.width) * size,
                linestyle="-" if weight is None or weight.decided else "--",
            )
        )
        if weight is not None and edge.number_at is not None:
            ax.text(
                *edge.number_at,
                signed(weight.value),
                ha="center",
                va="center",
                size=0.8 * size,
                color=INK,
                zorder=3,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
            )
    for chip in picture.chips:
        ax.add_patch(
            FancyBboxPatch(
                (chip.x, chip.y),
                chip.width,
                chip.height,
                boxstyle="round,pad=0,rounding_size=12",
                facecolor="white",
                edgecolor=BLUE,
                linewidth=0.11 * size,
                zorder=2,
            )
        )
        x, y = chip.x + chip.width / 2, chip.y + chip.height / 2
        ax.text(x, y, plain(chip.shown), ha="center", va="center", size=size, color=INK, zorder=3)
    ax.set(xlim=(0, picture.width), ylim=(picture.height, 0), aspect="equal")
    ax.axis("off")
    return figure


def causes_first(order: GlobalOrder) -> list[int]:
    """The labels by position, those of upper layers first."""
    layers = draw_hasse(order).layers
    return sorted(range(len(order.labels)), key=lambda i: (layers[i], order.labels[i]))


def hatch(ax: Axes, cells: BoolArray) -> None:
    for r, c in np.argwhere(cells):
        ax.add_patch(
            Rectangle(
                (c - 0.5, r - 0.5), 1, 1, fill=False, edgecolor=ORANGE, linewidth=0.6, hatch="////"
            )
        )


def legend_of_hatches(ax: Axes, cells: BoolArray, text: str) -> None:
    if cells.any():
        handle = Patch(fill=False, edgecolor=ORANGE, hatch="////", label=text)
        ax.legend(handles=[handle], loc="lower left", bbox_to_anchor=(0, 1.01), frameon=False)


def name_pairs(ax: Axes, labels: Sequence[str]) -> None:
    """Names on both axes of a matrix; none if there are too many."""
    if len(labels) <= MOST_NAMES:
        names = [plain(label[:24]) for label in labels]
        ax.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
        ax.set_yticks(range(len(names)), names, fontsize=8)
    else:
        ax.set(xticks=[], yticks=[])
    ax.tick_params(length=0)


def axes_of(ax: Axes | None, width: float, height: float) -> tuple[Figure, Axes]:
    """The figure of the given axes, or a new one, which pyplot does not keep open."""
    if ax is not None:
        found = ax.get_figure(root=True)
        assert isinstance(found, Figure)
        return found, ax
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def bare(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)


def plain(text: str) -> str:
    """The label with dollar signs escaped, which would start a formula in matplotlib."""
    return text.replace("$", r"\$")
