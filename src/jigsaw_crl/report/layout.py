"""Layered positions for boxes of any size, ancestors on top.

`fast_sugiyama` assigns the layers and the order inside each layer. It treats boxes as points, so
the coordinates are computed here, from the boxes' widths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import networkx as nx
import numpy as np
from fast_sugiyama import from_edges
from rich.text import Text
from scipy.optimize import isotonic_regression

from jigsaw_crl.base.arrays import FloatArray

__all__ = ["COLUMN", "Drawing", "lay_out", "shorten"]

Size = tuple[float, float]
Point = tuple[float, float]

# Pixels, at the page's 13 px type: a character, and the gaps between boxes and between layers. The
# margin, and the room that an edge takes in a layer that it passes, are half a gap.
COLUMN, GAP_X, GAP_Y = 7.3, 22.0, 46.0
LANE = MARGIN = GAP_X / 2
# A layer wider than this is folded into several rows.
WIDEST = 2600.0
# Passes over the layers, down and up in turns; more move nothing by a pixel.
SWEEPS = 12


@dataclass(frozen=True)
class Drawing:
    """A layered drawing.

    `corners` are the upper left corners of the boxes, and `routes` the points that each edge
    passes, from ancestor to descendant.
    """

    width: float
    height: float
    corners: tuple[Point, ...]
    routes: tuple[tuple[Point, ...], ...]


def shorten(text: str, most: int = 22) -> str:
    """The text, cut to `most` columns and ended with an ellipsis if it is longer."""
    shown = Text(" ".join(text.split()))
    shown.truncate(most, overflow="ellipsis")
    return shown.plain


def lay_out(sizes: Sequence[Size], edges: Sequence[tuple[int, int]], gap: float = GAP_Y) -> Drawing:
    """Layered positions of boxes, ancestors on top, with layers at least `gap` apart.

    Edges are from ancestor to descendant, by position in `sizes`. Cycles are drawn as well.

    Examples
    --------
    >>> [y for _, y in lay_out([(50, 24)] * 3, [(0, 1), (0, 2)]).corners]
    [11.0, 81.0, 81.0]
    """
    n = len(sizes)
    rows, beside = _layers(n, edges)
    width = {node: size[0] for node, size in enumerate(sizes)}
    rows = [part for row in rows for part in _folded(row, width)]
    x = _across(rows, width, beside)
    left = min((x[node] - width.get(node, LANE) / 2 for node in x), default=0.0) - MARGIN
    x = {node: at - left for node, at in x.items()}
    right = max((x[node] + width.get(node, LANE) / 2 for node in x), default=0.0)
    # A wide drawing gets taller layers, up to half of its width, so that lines are not all level.
    gap = float(np.clip(right / 2 / max(len(rows), 1), gap, 3 * gap))
    y = _down(rows, sizes, gap, beside)
    bends, routes = _bends(n, beside), []
    for a, d in edges:
        # From the lower rim of one box to the upper rim of the other; in a cycle the other way.
        down = 0.5 if y[a] <= y[d] else -0.5
        inner = [(x[node], y[node]) for node in bends.get((a, d), ())]
        first, last = (x[a], y[a] + down * sizes[a][1]), (x[d], y[d] - down * sizes[d][1])
        routes.append((first, *inner, last))
    return Drawing(
        width=right + MARGIN,
        height=max((y[i] + sizes[i][1] / 2 for i in range(n)), default=0.0) + MARGIN,
        corners=tuple((x[i] - sizes[i][0] / 2, y[i] - sizes[i][1] / 2) for i in range(n)),
        routes=tuple(routes),
    )


def _bends(n: int, beside: nx.Graph[int]) -> dict[tuple[int, int], list[int]]:
    """For each edge in both directions, the bends between its boxes."""
    found = {}
    for start in (node for node in beside if node < n):
        for following in beside[start]:
            chain = [start, following]
            while chain[-1] >= n:
                chain.append(next(node for node in beside[chain[-1]] if node != chain[-2]))
            found[start, chain[-1]] = chain[1:-1]
    return found


def _folded(row: list[int], width: dict[int, float]) -> list[list[int]]:
    """A row that is too wide as several, each with every second, third, ... node of it."""
    wide = sum(width.get(node, LANE) + GAP_X for node in row)
    fold = max(1, int(np.ceil(wide / WIDEST)))
    return [row[i::fold] for i in range(fold)]


def _across(
    rows: list[list[int]], width: dict[int, float], beside: nx.Graph[int]
) -> dict[int, float]:
    """Coordinates that keep each row's order and its gaps, close to the mean of the neighbours."""
    x: dict[int, float] = {}
    packed: list[FloatArray] = []
    for row in rows:
        wide = np.array([width.get(node, LANE) for node in row])
        packed.append(np.concatenate([[0.0], np.cumsum((wide[1:] + wide[:-1]) / 2 + GAP_X)]))
        x |= dict(zip(row, (packed[-1] - packed[-1].mean()).tolist(), strict=True))
    for sweep in range(SWEEPS):
        for row, start in list(zip(rows, packed, strict=True))[:: 1 if sweep % 2 == 0 else -1]:
            wish = [
                float(np.mean([x[b] for b in beside[node]])) if node in beside else x[node]
                for node in row
            ]
            # argmin Σ (x_i − wish_i)² with x_{i+1} − x_i ≥ gap_i: isotonic after a shift.
            found = isotonic_regression(np.array(wish) - start).x + start
            x |= dict(zip(row, found.tolist(), strict=True))
    return x


def _down(
    rows: list[list[int]], sizes: Sequence[Size], gap: float, beside: nx.Graph[int]
) -> dict[int, float]:
    """Coordinates of the rows; around rows without an edge, the gap is small."""
    y: dict[int, float] = {}
    top, above = MARGIN, False
    for row in rows:
        tall = max((sizes[n][1] for n in row if n < len(sizes)), default=LANE)
        linked = any(node in beside for node in row)
        if y:
            top += gap if linked and above else GAP_X
        y |= dict.fromkeys(row, top + tall / 2)
        top, above = top + tall, linked
    return y


def _layers(n: int, edges: Sequence[tuple[int, int]]) -> tuple[list[list[int]], nx.Graph[int]]:
    """Boxes and bends per layer from left to right, and which of them are linked.

    Bends are numbered from n on. Boxes without an edge come last, in layers of their own.
    """
    graph = nx.DiGraph(sorted({(a, d) for a, d in edges if a != d}))
    # Edges that close a cycle are turned round: those to a node that the search leaves later.
    left = {node: i for i, node in enumerate(nx.dfs_postorder_nodes(graph))}
    down = sorted({(a, d) if left[a] > left[d] else (d, a) for a, d in graph.edges})
    parts = [sorted(part) for part in nx.weakly_connected_components(graph)]
    rows: list[list[int]] = []
    beside: nx.Graph[int] = nx.Graph()
    bends = count(n)
    for part in sorted(parts, key=lambda part: (-len(part), part)):
        # The library numbers its bends after the boxes of a part, as if these were 0, 1, 2, ...
        number = {node: i for i, node in enumerate(part)}
        inside = [(number[a], number[d]) for a, d in down if a in number]
        laid: Any = from_edges(inside, dummy_vertices=True, vertex_spacing=1)
        ((positions, _, _, steps),) = laid
        highest = max(y for _, (_, y) in positions)
        name: dict[int, int] = {}
        for node, (_, y) in sorted(positions, key=lambda item: (item[1][0], item[0])):
            name[node] = part[node] if node < len(part) else next(bends)
            depth = round(highest - y)
            rows.extend([] for _ in range(depth + 1 - len(rows)))
            rows[depth].append(name[node])
        beside.add_edges_from((name[a], name[d]) for a, d in steps)
    alone = [i for i in range(n) if i not in graph]
    per_row = max(8, int(np.ceil(np.sqrt(3 * len(alone)))))
    rows += [alone[i : i + per_row] for i in range(0, len(alone), per_row)]
    return rows, beside
