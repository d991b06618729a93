"""Static figures for papers, with matplotlib: order, pairs, effects, spectra, calibration.

Every function returns a `Figure`; `savefig("name.svg")` or `"name.pdf"` writes it. Text stays text
in SVG, and the colours can be distinguished without colour vision.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import BinaryIO

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jigsaw_crl.assembly import GlobalOrder
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import check_output, writable, write_file
from jigsaw_crl.base.locking import locked
from jigsaw_crl.report.canvas import (
    BLUE,
    GREY,
    MANY,
    MARKS,
    axes_of,
    bare,
    causes_first,
    draw_picture,
    hatch,
    legend_of_hatches,
    name_pairs,
    plain,
)
from jigsaw_crl.report.contents import client_log_odds
from jigsaw_crl.report.drawing import draw_hasse
from jigsaw_crl.report.effect_figures import plot_effects, plot_forest, plot_graph
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
    return draw_picture(draw_hasse(order), ax)


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
    chain = causes_first(order)
    chance = np.array(order.probabilities)[np.ix_(chain, chain)]
    opened = (order.verdicts == -1)[np.ix_(chain, chain)]
    np.fill_diagonal(chance, np.nan)
    if order.mode == "paper":
        # Algorithm 3 gives no probabilities: pairs that it does not state have no shade.
        chance[opened] = np.nan
    side = float(np.clip(0.32 * p + 2.0, 4.0, 12.0))
    figure, ax = axes_of(ax, side + 0.8, side)
    image = ax.imshow(np.ma.masked_invalid(chance), cmap="Blues", vmin=0, vmax=1)
    hatch(ax, opened & ~np.eye(p, dtype=bool))
    name_pairs(ax, [order.labels[i] for i in chain])
    ax.set(xlabel="descendant", ylabel="ancestor")
    if order.mode != "paper":
        figure.colorbar(image, ax=ax, label="probability", shrink=0.8)
    legend_of_hatches(ax, opened, "undetermined")
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
    figure, ax = axes_of(ax, 5.4, 3.6)
    for k, (name, spectrum) in enumerate(spectra.items()):
        values = np.array(spectrum["eigenvalues"], dtype=np.float64)
        # Exact moments have zeros beyond the latents, up to rounding.
        values = np.maximum(values, values[0] * 1e-16)
        r, place = int(spectrum["n_latent"]), np.arange(1, len(values) + 1)
        colour, mark = MANY[k % len(MANY)], MARKS[k % len(MARKS)]
        ax.plot(place, values, linewidth=0.8, alpha=0.6, color=colour)
        ax.plot(place[:r], values[:r], mark, ms=4, color=colour, label=plain(name[:24]))
        ax.plot(place[r:], values[r:], mark, ms=4, color=colour, fillstyle="none")
    ax.set(yscale="log", xlabel="direction", ylabel="eigenvalue")
    bare(ax)
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
    figure, ax = axes_of(ax, 4.2, 4.0)
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
    bare(ax)
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
        with locked(root):
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
    for k, claims in enumerate(order.said.claims):
        verdict = order.verdicts[np.ix_(claims.members, claims.members)]
        said = client_log_odds(order, k)
        use = ~np.isnan(said) & (verdict != -1)
        odds = np.clip(said[use], -700, 700)
        stated.append(1 / (1 + np.exp(-odds)))
        decided.append(verdict[use] == 1)
    return np.concatenate(stated), np.concatenate(decided)
