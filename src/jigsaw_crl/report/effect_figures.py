"""Static figures of effects: the graph of direct ones, total ones as a matrix, one at all sites."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jigsaw_crl.assembly import GlobalOrder
from jigsaw_crl.assembly.tables import effects_of, site_effects_frame
from jigsaw_crl.assembly.verdict import NO
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.evidence.effects import INTERVAL
from jigsaw_crl.report.canvas import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    POINT,
    SIGNED,
    SIGNS,
    axes_of,
    bare,
    causes_first,
    draw_picture,
    hatch,
    legend_of_hatches,
    name_pairs,
    plain,
)
from jigsaw_crl.report.drawing import draw_graph
from jigsaw_crl.report.layout import signed

__all__ = ["plot_effects", "plot_forest", "plot_graph"]

# Labels up to which the effects' numbers stand in the cells.
MOST_NUMBERS = 14


def plot_graph(order: GlobalOrder, ax: Axes | None = None) -> Figure:
    """The direct effects as a graph, causes on top.

    Colour is the sign and width the size of a direct effect; dashed lines are ancestors that may be
    direct causes; thin lines are ancestors without a known direct effect.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.random_world(5, 3, 0.8, seed=1, intervention="hard")
    >>> result = jc.recover(world.clients(), interventions="hard")
    >>> len(result.plot_graph().axes)
    1
    """
    effects_of(order)
    picture = draw_graph(order)
    if ax is None:
        inches = (POINT / 72) * np.array([picture.width, picture.height])
        # Room for the legend below.
        _, ax = axes_of(None, *np.clip(inches + np.array([0.0, 0.9]), (4.6, 2.0), 40.0))
    figure = draw_picture(picture, ax)
    handles = [
        Line2D([], [], label=text, color=SIGNS[sign], linewidth=width, linestyle="-")
        for sign, width, text in (
            ("plus", 3.0, "direct, raises"),
            ("minus", 3.0, "direct, lowers"),
            ("unclear", 0.8, "ancestor, no direct effect known"),
        )
    ]
    may_be = Line2D([], [], label="undetermined whether direct", color=GREY, linestyle="--")
    ax.legend(
        handles=[*handles, may_be],
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        frameon=False,
        fontsize=8,
        ncols=2,
    )
    return figure


def plot_effects(order: GlobalOrder, ax: Axes | None = None) -> Figure:
    """Total effects as a heat map, causes first: estimate and half of its 95 % interval.

    Cells of pairs that are "not ancestor" are empty, those without a known effect are hatched.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.random_world(5, 3, 0.8, seed=1, intervention="hard")
    >>> result = jc.recover(world.clients(), interventions="hard")
    >>> result.plot_effects().axes[0].get_xlabel()
    'effect'
    """
    effects = effects_of(order)
    chain = causes_first(order)
    grid = np.ix_(chain, chain)
    p = len(chain)
    off = ~np.eye(p, dtype=bool)
    no = (order.verdicts == NO)[grid]
    value = np.where(no | ~off, np.nan, effects.estimate[grid])
    half = INTERVAL * effects.error[grid]
    side = float(np.clip(0.62 * p + 1.6, 4.0, 12.0))
    figure, ax = axes_of(ax, side + 1.0, side)
    most = max(float(np.nanmax(np.abs(value), initial=0.0)), 0.1)
    image = ax.imshow(np.ma.masked_invalid(value), cmap=SIGNED, vmin=-most, vmax=most)
    unknown = np.isnan(value) & ~no & off
    hatch(ax, unknown)
    if p <= MOST_NUMBERS:
        for r, c in np.argwhere(~np.isnan(value)):
            text = f"{signed(value[r, c])}\n±{half[r, c]:.2f}"
            dark = abs(value[r, c]) > 0.6 * most
            ax.text(c, r, text, ha="center", va="center", size=7, color="white" if dark else INK)
    name_pairs(ax, [order.labels[i] for i in chain])
    ax.set(xlabel="effect", ylabel="cause")
    figure.colorbar(image, ax=ax, label="total effect, standard deviations", shrink=0.8)
    legend_of_hatches(ax, unknown, "unknown")
    return figure


def plot_forest(order: GlobalOrder, cause: str, effect: str, ax: Axes | None = None) -> Figure:
    """One effect at every site with its 95 % interval, and at all sites together.

    Crosses are sites that were set aside because they stand far apart from the others.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.random_world(5, 3, 0.8, seed=1, intervention="hard")
    >>> result = jc.recover(world.clients(), interventions="hard")
    >>> cause, effect = next(iter(result.graph.edges))
    >>> result.plot_forest(cause, effect).axes[0].get_yticklabels()[-1].get_text()
    'all sites'
    """
    effects = effects_of(order)
    a, d = order.indices(cause, effect)
    sites = site_effects_frame(order, cause, effect)
    if sites.empty:
        raise InputError(
            f"no site measured the effect of {cause!r} on {effect!r}",
            "It needs a hard intervention on both labels at one site.",
        )
    n = len(sites)
    figure, ax = axes_of(ax, 5.0, float(np.clip(0.3 * n + 1.4, 2.0, 12.0)))
    ax.axvline(0, color=GREY, linewidth=0.8, linestyle=":")
    low, high, total = (sites[name].to_numpy(float) for name in ("low", "high", "total"))
    for y, aside in enumerate(sites["set_aside"]):
        colour, mark, style = (ORANGE, "x", "--") if aside else (INK, "s", "-")
        ax.plot([low[y], high[y]], [y, y], color=colour, linewidth=1.4, linestyle=style)
        ax.plot(total[y], y, mark, color=colour, ms=5)
    ax.plot([effects.low[a, d], effects.high[a, d]], [n, n], color=BLUE, linewidth=2.4)
    ax.plot(effects.estimate[a, d], n, "D", color=BLUE, ms=6)
    names = [
        f"{name[:24]} (set aside)" if aside else name[:24]
        for name, aside in zip(sites["site"], sites["set_aside"], strict=True)
    ]
    ax.set_yticks(range(n + 1), [*(plain(name) for name in names), "all sites"])
    ax.set_ylim(n + 0.5, -0.5)
    ax.set(xlabel=f"effect of {plain(cause[:24])} on {plain(effect[:24])}, standard deviations")
    bare(ax)
    return figure
