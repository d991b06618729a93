"""The pictures of docs/calibration.md, from the records of calibration.py; `pages.py` draws them.

`calibration-reliability.svg`: share of true ancestors against the stated probability, over all
records. `calibration-e1.svg`: E1 against the shift of the mean, one line a kind of intervention,
from the cells that differ from the default cell in kind and shift alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from calibration import BINS, Cell
from matplotlib.figure import Figure
from records import Record, by_cell

# Makes the files reproducible: no random identifiers, text stored as text.
plt.rcParams.update({"svg.hashsalt": "jigsaw-crl", "svg.fonttype": "none", "font.size": 11})
COLOURS = ("#1f5fa8", "#c0392b", "#2e8b57", "#8a6d3b", "#6a4c93")


def reliability(records: Sequence[Record]) -> Figure:
    """Stated probability and share of true ancestors, on a scale of log-odds, a point a bin."""
    pairs, stated, true = np.sum([r["bins"] for r in records], axis=0).T
    # Pairs of one world are not independent: the error is that of the worlds.
    each = np.array([r["bins"] for r in records])
    error = np.sqrt(((each[:, :, 2] - each[:, :, 0] * (true / pairs)) ** 2).sum(axis=0)) / pairs
    figure, ax = plt.subplots(figsize=(6, 4.6))
    ax.plot([1e-4, 1 - 1e-4], [1e-4, 1 - 1e-4], color="#8a8a8a", lw=1)
    share = np.clip(true / pairs, 1e-4, 1 - 1e-4)
    low, high = (np.clip(share + s * 1.96 * error, 1e-4, 1 - 1e-4) for s in (-1, 1))
    ax.errorbar(
        stated / pairs,
        share,
        yerr=[share - low, high - share],
        fmt="o",
        color=COLOURS[0],
        capsize=3,
    )
    for x, y, n, name in zip(stated / pairs, share, pairs, BINS, strict=True):
        ax.annotate(
            f"{name}\n{n:,.0f} pairs",
            (x, y),
            textcoords="offset points",
            xytext=(-8, 2) if x > 0.5 else (8, -14),
            ha="right" if x > 0.5 else "left",
            fontsize=7,
        )
    ax.set(xscale="logit", yscale="logit", xlabel="stated probability", ylabel="true ancestors")
    ax.set_title("Stated probability of a pair, and how often it is true", fontsize=10)
    ax.minorticks_off()
    ticks = [0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999]
    names = [f"{100 * t:g} %" for t in ticks]
    ax.set_xticks(ticks, names, fontsize=8, rotation=30)
    ax.set_yticks(ticks, names, fontsize=8)
    return figure


def e1_by_shift(records: Iterable[Record]) -> Figure:
    """E1 with its standard error, a line a kind."""
    found: dict[str, dict[float, list[float]]] = defaultdict(dict)
    for cell, own in by_cell(Cell, records).items():
        if replace(cell, kind=Cell.kind, shift=Cell.shift) == Cell():
            found[cell.kind][cell.shift] = [r["E1"] for r in own]
    figure, ax = plt.subplots(figsize=(6, 3.6))
    for colour, (kind, by_shift) in zip(COLOURS, sorted(found.items()), strict=False):
        shifts = sorted(by_shift)
        means = [np.mean(by_shift[s]) for s in shifts]
        errors = [np.std(by_shift[s]) / np.sqrt(len(by_shift[s])) for s in shifts]
        ax.errorbar(shifts, means, yerr=errors, fmt="o-", color=colour, label=kind, capsize=3)
    ax.set(xlabel="shift of the mean (noise standard deviations)", ylabel="E1", ylim=(0, 1.02))
    ax.set_title("F1 of the order against the shift of the mean", fontsize=10)
    if found:
        ax.legend(frameon=False, loc="lower right")
    return figure


def save_pictures(records: Sequence[Record], folder: Path) -> None:
    """Write both pictures."""
    for name, figure in (("reliability", reliability(records)), ("e1", e1_by_shift(records))):
        figure.tight_layout()
        figure.savefig(folder / f"calibration-{name}.svg", metadata={"Date": None})
        plt.close(figure)
