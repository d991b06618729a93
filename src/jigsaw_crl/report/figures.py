"""Static figures for papers, with matplotlib: order, pairs, effects, spectra, calibration.

Every function returns a `Figure`; `savefig("name.svg")` or `"name.pdf"` writes it. Text stays text
in SVG, and the colours can be distinguished without colour vision.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Patch, Rectangle
from matplotlib.path import Path as Curve

from jigsaw_crl.assembly import GlobalOrder
from jigsaw_crl.assembly.effects import INTERVAL
from jigsaw_crl.assembly.tables import effects_of, site_effects_frame
from jigsaw_crl.assembly.verdict import NO
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import check_output, sole_writer, writable, write_file
from jigsaw_crl.report.contents import client_log_odds
from jigsaw_crl.report.drawing import Picture, draw_graph, draw_hasse
from jigsaw_crl.report.layout import signed
from jigsaw_crl.result.result import Result

__all__ = [
    "plot_calibration",
    "plot_effects",
    "plot_forest",
    "plot_graph",
    "plot_hasse",
    "plot_pairs",
    "plot_spectrum",
    "write_figures",
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
# Labels up to which the effects' numbers stand in the cells.
MOST_NUMBERS = 14
# Groups of probabilities in the calibration plot.
BINS = 10
# Written into every figure, by which it is known again; no date, so that the same result gives the
# same file.
_CREATOR = "jigsaw-crl, https://matplotlib.org"
_METADATA = {
    "svg": {"Creator": _CREATOR, "Date": None},
    "pdf": {"Creator": _CREATOR, "CreationDate": None},
}


def plot_hasse(order: GlobalOrder, ax: Axes | None = None) -> Figure:
    """The Hasse diagram of the decided pairs, layered, ancestors on top.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> result = jc.recover(jc.simulate.setting("A", 0).clients())
    >>> len(result.plot_hasse().axes)
    1
    """
    return _draw_picture(draw_hasse(order), ax)


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
        _, ax = _axes(None, *np.clip(inches + np.array([0.0, 0.9]), (4.6, 2.0), 40.0))
    figure = _draw_picture(picture, ax)
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
    chain = _causes_first(order)
    grid = np.ix_(chain, chain)
    p = len(chain)
    off = ~np.eye(p, dtype=bool)
    no = (order.verdicts == NO)[grid]
    value = np.where(no | ~off, np.nan, effects.estimate[grid])
    half = INTERVAL * effects.error[grid]
    side = float(np.clip(0.62 * p + 1.6, 4.0, 12.0))
    figure, ax = _axes(ax, side + 1.0, side)
    most = max(float(np.nanmax(np.abs(value), initial=0.0)), 0.1)
    image = ax.imshow(np.ma.masked_invalid(value), cmap=SIGNED, vmin=-most, vmax=most)
    unknown = np.isnan(value) & ~no & off
    _hatch(ax, unknown)
    if p <= MOST_NUMBERS:
        for r, c in np.argwhere(~np.isnan(value)):
            text = f"{signed(value[r, c])}\n±{half[r, c]:.2f}"
            dark = abs(value[r, c]) > 0.6 * most
            ax.text(c, r, text, ha="center", va="center", size=7, color="white" if dark else INK)
    _name_pairs(ax, [order.labels[i] for i in chain])
    ax.set(xlabel="effect", ylabel="cause")
    figure.colorbar(image, ax=ax, label="total effect, standard deviations", shrink=0.8)
    _legend_of_hatches(ax, unknown, "unknown")
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
    figure, ax = _axes(ax, 5.0, float(np.clip(0.3 * n + 1.4, 2.0, 12.0)))
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
    ax.set_yticks(range(n + 1), [*(_plain(name) for name in names), "all sites"])
    ax.set_ylim(n + 0.5, -0.5)
    ax.set(xlabel=f"effect of {_plain(cause[:24])} on {_plain(effect[:24])}, standard deviations")
    _bare(ax)
    return figure


def _draw_picture(picture: Picture, ax: Axes | None) -> Figure:
    """Chips and edges of a picture; edges with a weight get the colour of its sign."""
    inches = (POINT / 72) * np.array([picture.width, picture.height])
    figure, ax = _axes(ax, *np.clip(inches, 2.0, 40.0))
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
        ax.text(x, y, _plain(chip.shown), ha="center", va="center", size=size, color=INK, zorder=3)
    ax.set(xlim=(0, picture.width), ylim=(picture.height, 0), aspect="equal")
    ax.axis("off")
    return figure


def plot_pairs(order: GlobalOrder, ax: Axes | None = None) -> Figure:
    """The pair matrix, ancestors first: probability by shade, undetermined pairs hatched.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> result = jc.recover(jc.simulate.setting("A", 0).clients())
    >>> result.plot_pairs().axes[0].get_xlabel()
    'descendant'
    """
    p = len(order.labels)
    chain = _causes_first(order)
    chance = np.array(order.probabilities)[np.ix_(chain, chain)]
    opened = (order.verdicts == -1)[np.ix_(chain, chain)]
    np.fill_diagonal(chance, np.nan)
    if order.mode == "paper":
        # Algorithm 3 gives no probabilities: pairs that it does not state have no shade.
        chance[opened] = np.nan
    side = float(np.clip(0.32 * p + 2.0, 4.0, 12.0))
    figure, ax = _axes(ax, side + 0.8, side)
    image = ax.imshow(np.ma.masked_invalid(chance), cmap="Blues", vmin=0, vmax=1)
    _hatch(ax, opened & ~np.eye(p, dtype=bool))
    _name_pairs(ax, [order.labels[i] for i in chain])
    ax.set(xlabel="descendant", ylabel="ancestor")
    if order.mode != "paper":
        figure.colorbar(image, ax=ax, label="probability", shrink=0.8)
    _legend_of_hatches(ax, opened, "undetermined")
    return figure


def plot_spectrum(result: Result, ax: Axes | None = None) -> Figure:
    """Eigenvalues of each client's average second moment; filled marks carry latents.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> result = jc.recover(jc.simulate.setting("A", 0).clients(2000))
    >>> result.plot_spectrum().axes[0].get_yscale()
    'log'
    """
    spectra = result.provenance.get("spectra") or {}
    if not spectra:
        raise InputError(
            "the result keeps no spectra",
            "They come from the clients' data: use the result of `recover`, not of `assemble`.",
        )
    figure, ax = _axes(ax, 5.4, 3.6)
    for k, (name, spectrum) in enumerate(spectra.items()):
        values = np.array(spectrum["eigenvalues"], dtype=np.float64)
        # Exact moments have zeros beyond the latents, up to rounding.
        values = np.maximum(values, values[0] * 1e-16)
        r, place = int(spectrum["n_latent"]), np.arange(1, len(values) + 1)
        colour, mark = MANY[k % len(MANY)], MARKS[k % len(MARKS)]
        ax.plot(place, values, linewidth=0.8, alpha=0.6, color=colour)
        ax.plot(place[:r], values[:r], mark, ms=4, color=colour, label=_plain(name[:24]))
        ax.plot(place[r:], values[r:], mark, ms=4, color=colour, fillstyle="none")
    ax.set(yscale="log", xlabel="direction", ylabel="eigenvalue")
    _bare(ax)
    if len(spectra) <= 12:
        ax.legend(frameon=False, fontsize=8, title="filled: latents", title_fontsize=8)
    return figure


def plot_calibration(
    order: GlobalOrder, truth: Iterable[tuple[str, str]] | None = None, ax: Axes | None = None
) -> Figure:
    """Calibration: how often pairs of a given probability are true.

    Parameters
    ----------
    order : GlobalOrder
    truth : iterable of (ancestor, descendant), optional
        The order's probabilities are compared with it. If None, each client's own probabilities
        are compared with the verdicts, on decided pairs.
    ax : Axes, optional

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.setting("A", 0)
    >>> result = jc.recover(world.clients(2000))
    >>> result.plot_calibration(world.order.pairs()).axes[0].get_ylabel()
    'share that is true'
    """
    if truth is None:
        stated, came_true = _clients_against_verdicts(order)
        texts = ("probability a client gives", "share that all clients together decide so")
    else:
        stated, came_true = _against_truth(order, truth)
        texts = ("probability", "share that is true")
    figure, ax = _axes(ax, 4.2, 4.0)
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--")
    which = np.minimum((stated * BINS).astype(int), BINS - 1)
    for b in range(BINS):
        inside = which == b
        n = int(inside.sum())
        if not n:
            continue
        share = float(came_true[inside].mean())
        # Wilson's interval at two standard errors holds up at shares of 0 and 1.
        centre = (share + 2 / n) / (1 + 4 / n)
        half = 2 * np.sqrt(share * (1 - share) / n + 1 / n**2) / (1 + 4 / n)
        x = float(stated[inside].mean())
        ax.plot([x, x], [centre - half, centre + half], color=BLUE, linewidth=1.2)
        ax.plot(x, share, "o", color=BLUE, ms=3 + 1.2 * np.log1p(n))
    limits = (-0.03, 1.03)
    ax.set(xlim=limits, ylim=limits, xlabel=texts[0], ylabel=texts[1], aspect="equal")
    _bare(ax)
    return figure


def _is_figure(seen: bytes) -> bool:
    return _CREATOR.encode() in seen


def _copy(drawn: io.BytesIO, file: BinaryIO) -> None:
    file.write(drawn.getvalue())


def write_figures(
    result: Result, folder: str | os.PathLike[str], *, force: bool = False
) -> list[Path]:
    """Write every figure that the result allows as SVG and PDF; returns the files.

    An existing file with the name of a figure that this package did not draw is overwritten with
    `force` only.
    """
    root = Path(folder)
    figures = {
        "hasse": result.plot_hasse(),
        "pairs": result.plot_pairs(),
        "calibration": result.plot_calibration(),
    }
    if result.provenance.get("spectra"):
        figures["spectrum"] = result.plot_spectrum()
    if result.order.effects is not None:
        figures["graph"] = result.plot_graph()
        figures["effects"] = result.plot_effects()
    written = []
    with (
        writable(root, "the folder"),
        # Text stays text.
        matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "jigsaw-crl"}),
        warnings.catch_warnings(),
    ):
        for name in figures:
            for ending in _METADATA:
                check_output(root / f"{name}.{ending}", _is_figure, force=force, what="our figure")
        root.mkdir(parents=True, exist_ok=True)
        with sole_writer(root):
            # A character that the font lacks is drawn as a box.
            warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
            for name, figure in figures.items():
                for ending, metadata in _METADATA.items():
                    drawn = io.BytesIO()
                    figure.savefig(drawn, format=ending, bbox_inches="tight", metadata=metadata)
                    path = root / f"{name}.{ending}"
                    written.append(write_file(path, partial(_copy, drawn)))
    return written


def _against_truth(
    order: GlobalOrder, truth: Iterable[tuple[str, str]]
) -> tuple[FloatArray, BoolArray]:
    true = np.zeros(order.verdicts.shape, dtype=bool)
    for a, d in truth:
        true[order.indices(a, d)] = True
    off = ~np.eye(len(true), dtype=bool)
    return order.probabilities[off], true[off]


def _clients_against_verdicts(order: GlobalOrder) -> tuple[FloatArray, BoolArray]:
    stated, decided = [np.zeros(0)], [np.zeros(0, dtype=bool)]
    for k, claims in enumerate(order.panel.claims):
        verdict = order.verdicts[np.ix_(claims.members, claims.members)]
        said = client_log_odds(order, k)
        use = ~np.isnan(said) & (verdict != -1)
        odds = np.clip(said[use], -700, 700)
        stated.append(1 / (1 + np.exp(-odds)))
        decided.append(verdict[use] == 1)
    return np.concatenate(stated), np.concatenate(decided)


def _causes_first(order: GlobalOrder) -> list[int]:
    """The labels by position, those of upper layers first."""
    layers = draw_hasse(order).layers
    return sorted(range(len(order.labels)), key=lambda i: (layers[i], order.labels[i]))


def _hatch(ax: Axes, cells: BoolArray) -> None:
    for r, c in np.argwhere(cells):
        ax.add_patch(
            Rectangle(
                (c - 0.5, r - 0.5), 1, 1, fill=False, edgecolor=ORANGE, linewidth=0.6, hatch="////"
            )
        )


def _legend_of_hatches(ax: Axes, cells: BoolArray, text: str) -> None:
    if cells.any():
        handle = Patch(fill=False, edgecolor=ORANGE, hatch="////", label=text)
        ax.legend(handles=[handle], loc="lower left", bbox_to_anchor=(0, 1.01), frameon=False)


def _name_pairs(ax: Axes, labels: Sequence[str]) -> None:
    """Names on both axes of a matrix; none if there are too many."""
    if len(labels) <= MOST_NAMES:
        names = [_plain(label[:24]) for label in labels]
        ax.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
        ax.set_yticks(range(len(names)), names, fontsize=8)
    else:
        ax.set(xticks=[], yticks=[])
    ax.tick_params(length=0)


def _axes(ax: Axes | None, width: float, height: float) -> tuple[Figure, Axes]:
    """The figure of the given axes, or a new one, which pyplot does not keep open."""
    if ax is not None:
        found = ax.get_figure(root=True)
        assert isinstance(found, Figure)
        return found, ax
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def _bare(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)


def _plain(text: str) -> str:
    """The label with dollar signs escaped, which would start a formula in matplotlib."""
    return text.replace("$", r"\$")
