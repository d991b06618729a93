"""The page's pictures as shapes: the global diagram, and one picture per client.

They are plain data, which the template and `notebook` turn into SVG. Boxes of any size are laid out
in layers, ancestors on top: `fast_sugiyama` assigns the layers and the order inside them. It
treats boxes as points, so the coordinates are computed here, from the boxes' widths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import networkx as nx
import numpy as np
from fast_sugiyama import from_edges
from rich.cells import cell_len
from rich.text import Text
from scipy.optimize import isotonic_regression

from jigsaw_crl.assembly.graph import direct_graph
from jigsaw_crl.assembly.order import GlobalOrder
from jigsaw_crl.assembly.verdict import YES
from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.fragment.fragment import Fragment

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
CHIP_HEIGHT, PADDING = 26.0, 9.0
# Labels above which a drawing of the order has short labels and no numbers.
MANY = 60
# Width in pixels of an edge without effect, and what a standard deviation or more adds.
THIN, THICK = 1.6, 5.0
# Room that an arrow's head takes at the end of a line.
HEAD = 11.0
# Half the width and height of an edge's number; layers are apart by two more of them.
NUMBER = (21.0, 7.0)
# Places along an edge that are tried for its number, in this order.
SHARES = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.45, 0.55, 0.35, 0.65, 0.25, 0.75, 0.15, 0.85)


@dataclass(frozen=True)
class Shape:
    """A label, or the frame around a block or a district: size and upper left corner.

    `kind` is "label", "block" or "district", and `shown` the text of a label.
    """

    kind: str
    members: tuple[str, ...]
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    shown: str = ""

    @property
    def label(self) -> str:
        return self.members[0]


@dataclass(frozen=True)
class Edge:
    """An edge from ancestor to descendant (labels, or any member of a block), and its points.

    `stated` is false between groups of labels, and where the client cannot say; `meaning` is what
    is known. `weight` is the direct effect, if it is known: its data in `Result.graph`, a `sign`
    ("plus", "minus", or "unclear" where the edge is open and its interval contains zero) and the
    `width` of its line. Its number stands at `number_at`.
    """

    ancestor: str
    descendant: str
    points: tuple[tuple[float, float], ...]
    stated: bool = True
    meaning: str = ""
    weight: Mapping[str, Any] | None = None
    number_at: tuple[float, float] | None = None

    @property
    def path(self) -> str:
        return smooth_path(self.points)

    @property
    def path_to_head(self) -> str:
        """The path up to where a large arrow's head begins."""
        *rest, (x, y) = self.points
        down = 1 if y >= rest[-1][1] else -1
        return smooth_path((*rest, (x, y - down * HEAD)))

    def at(self, share: float) -> tuple[float, float]:
        """The point at a share (0 to 1) of the path, each of its curves counted alike."""
        number, t = divmod(share * (len(self.points) - 1), 1.0)
        (x, y), (u, v) = self.points[int(number)], self.points[int(number) + 1]
        s = 1 - t
        across = x * s * s * (1 + 2 * t) + u * t * t * (3 - 2 * t)
        return across, y * s**3 + 1.5 * (y + v) * s * t + v * t**3


@dataclass(frozen=True)
class Picture:
    width: float
    height: float
    shapes: tuple[Shape, ...]
    edges: tuple[Edge, ...]
    not_drawn: int = 0


def smooth_path(points: Sequence[tuple[float, float]]) -> str:
    """An SVG path through points, vertical at each of them."""
    (x, y), *rest = points
    parts = [f"M{x:.1f} {y:.1f}"]
    for u, v in rest:
        half = (y + v) / 2
        parts.append(f"C{x:.1f} {half:.1f} {u:.1f} {half:.1f} {u:.1f} {v:.1f}")
        x, y = u, v
    return "".join(parts)


def draw_graph(order: GlobalOrder) -> Picture:
    """Direct effects, and relations of which only the order is known; chips follow `order.labels`.

    Edges are the direct ones; decided ancestors that may be direct causes, the likeliest and no
    more than there are labels; and pairs of the Hasse diagram without a known effect (no weight).
    `not_drawn` counts undetermined edges that are left out.
    """
    covers = dict.fromkeys(order.indices(a, d) for a, d in order.hasse().edges)
    if (direct := order.direct_effects) is None:
        return _draw_pairs(order, covers)
    known = {
        order.indices(a, d): _drawn(about) for a, d, about in direct_graph(order).edges(data=True)
    }
    sure = [pair for pair, weight in known.items() if weight["decided"]]
    likely = [pair for pair in known.keys() - sure if order.verdicts[pair] == YES]
    likely.sort(key=lambda pair: (-float(direct.log_odds[pair]), pair))
    chosen = {pair: known[pair] for pair in sure + likely[: len(order.labels)]}
    picture = _numbered(_spread_ends(_draw_pairs(order, covers | chosen)))
    return replace(picture, not_drawn=len(known) - len(chosen))


def _drawn(about: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is known of a direct effect, with its sign and the width of its line in pixels."""
    decided, value = about["verdict"] == "direct", about["weight"]
    clear = decided or not about["low"] <= 0 <= about["high"]
    sign = "plus" if value > 0 else "minus"
    width = THIN + THICK * min(abs(value), 1.0) if decided else THIN
    return {**about, "decided": decided, "sign": sign if clear else "unclear", "width": width}


def _draw_pairs(
    order: GlobalOrder, weights: Mapping[tuple[int, int], Mapping[str, Any] | None]
) -> Picture:
    pairs = sorted(weights)
    most = 22 if len(order.labels) <= MANY else 12
    chips = [_chip(label, most) for label in order.labels]
    gap = GAP_Y if order.effects is None else GAP_Y + 4 * NUMBER[1]
    drawing = lay_out([(c.width, c.height) for c in chips], pairs, gap)
    edges = tuple(
        Edge(order.labels[a], order.labels[d], route, weight=weights[a, d])
        for (a, d), route in zip(pairs, drawing.routes, strict=True)
    )
    placed = tuple(replace(c, x=x, y=y) for c, (x, y) in zip(chips, drawing.corners, strict=True))
    return Picture(drawing.width, drawing.height, placed, edges)


def _spread_ends(picture: Picture) -> Picture:
    """The picture with the ends of its edges side by side along each label, for thick arrows."""
    chips = {chip.label: chip for chip in picture.shapes}
    points = [list(edge.points) for edge in picture.edges]
    for end, beside in ((0, 1), (-1, -2)):
        rims: dict[tuple[str, float], list[int]] = {}
        for k, edge in enumerate(picture.edges):
            label = edge.ancestor if end == 0 else edge.descendant
            rims.setdefault((label, edge.points[end][1]), []).append(k)
        for (label, y), here in rims.items():
            here.sort(key=lambda k: picture.edges[k].points[beside][0])
            room = chips[label].width - 2 * PADDING
            step = min(room / len(here), 3 * PADDING)
            middle = chips[label].x + chips[label].width / 2
            for place, k in enumerate(here):
                points[k][end] = (middle + (place - (len(here) - 1) / 2) * step, y)
    edges = (
        replace(edge, points=tuple(route))
        for edge, route in zip(picture.edges, points, strict=True)
    )
    return replace(picture, edges=tuple(edges))


def _numbered(picture: Picture) -> Picture:
    """The picture with a place for the number of each decided edge whose size is measured.

    It is where it covers least of labels, other numbers, arrows' heads and the lines of other
    edges. A picture with many labels has no numbers.
    """
    if len(picture.shapes) > MANY:
        return picture
    taken = [(c.x, c.y, c.x + c.width, c.y + c.height) for c in picture.shapes]
    ends = [edge.points[-1] for edge in picture.edges]
    taken += [(x - HEAD / 2, y - HEAD, x + HEAD / 2, y) for x, y in ends]
    lines = np.array([[edge.at(share) for share in SHARES] for edge in picture.edges])
    half, edges = np.array(NUMBER), list(picture.edges)
    for k, edge in enumerate(picture.edges):
        if edge.weight is None or not edge.weight["decided"] or edge.weight["through"]:
            continue
        others = np.delete(lines, k, axis=0).reshape(-1, 2)
        boxes = np.vstack([taken, np.hstack([others - 1, others + 1])])
        at = lines[k].copy()
        at[:, 0] = np.clip(at[:, 0], half[0], picture.width - half[0])
        low = np.maximum(at[:, None] - half, boxes[:, :2])
        high = np.minimum(at[:, None] + half, boxes[:, 2:])
        covered = np.clip(high - low, 0.0, None).prod(axis=-1).sum(axis=-1)
        # The first of those that cover least.
        x, y = at[covered.argmin()].tolist()
        taken.append((x - NUMBER[0], y - NUMBER[1], x + NUMBER[0], y + NUMBER[1]))
        edges[k] = replace(edge, number_at=(x, y))
    return replace(picture, edges=tuple(edges))


def draw_piece(fragment: Fragment, says: set[tuple[str, str]]) -> Picture:
    """A client's blocks in their order, with districts and labels inside them.

    `says` are the pairs on which the client says yes; other arrows between labels are guesses.
    """
    blocks = list(fragment.block_order.topological())
    number = {block: i for i, block in enumerate(blocks)}
    covers = sorted((number[a], number[d]) for a, d in fragment.block_order.covers())
    groups = [_block(fragment, block) for block in blocks]
    drawing = lay_out([_extent(group) for group in groups], covers)
    shapes: list[Shape] = []
    for group, corner in zip(groups, drawing.corners, strict=True):
        shapes += _moved(group, *corner)
    edges = []
    for (a, d), route in zip(covers, drawing.routes, strict=True):
        above, below, single = min(blocks[a]), min(blocks[d]), len(blocks[a]) == len(blocks[d]) == 1
        stated = single and (above, below) in says
        meaning = f"{_one_of(blocks[a])} is an ancestor of {_one_of(blocks[d])}"
        guess = "best guess, not stated: " if single and not stated else ""
        edges.append(Edge(above, below, route, stated, guess + meaning))
    return Picture(drawing.width, drawing.height, tuple(shapes), tuple(edges))


def _one_of(block: frozenset[str]) -> str:
    return ("at least one of " if len(block) > 1 else "") + ", ".join(sorted(block))


def _chip(label: str, most: int = 16) -> Shape:
    shown = shorten(label, most)
    # Wide characters and emoji take two columns.
    width = max(34.0, COLUMN * cell_len(shown) + 2 * PADDING)
    return Shape("label", (label,), width, CHIP_HEIGHT, shown=shown)


def _block(fragment: Fragment, block: frozenset[str]) -> list[Shape]:
    """The shapes of a block, with its upper left corner at (0, 0)."""
    members = [d for d in fragment.districts or () if d <= block]
    members = members or [frozenset([label]) for label in block]
    parts = []
    for district in sorted(members, key=lambda d: (-len(d), min(d))):
        chips = _flow([[_chip(label)] for label in sorted(district)])
        parts.append(_framed(chips, "district", district, PADDING))
    return _framed(_flow(parts), "block", block, 2 * PADDING)


def _framed(shapes: list[Shape], kind: str, members: frozenset[str], pad: float) -> list[Shape]:
    """The shapes in a frame, if there are several members."""
    if len(members) == 1:
        return shapes
    width, height = _extent(shapes)
    frame = Shape(kind, tuple(sorted(members)), width + 2 * pad, height + 2 * pad)
    return [frame, *_moved(shapes, pad, pad)]


def _flow(groups: list[list[Shape]]) -> list[Shape]:
    """Groups side by side, in rows that make up about a square."""
    sizes = [_extent(group) for group in groups]
    area = sum((width + PADDING) * (height + PADDING) for width, height in sizes)
    widest = max(8 * CHIP_HEIGHT, 1.6 * area**0.5)
    shapes: list[Shape] = []
    x = y = row = 0.0
    for group, (width, height) in zip(groups, sizes, strict=True):
        if x and x + width > widest:
            x, y, row = 0.0, y + row + PADDING, 0.0
        shapes += _moved(group, x, y)
        x, row = x + width + PADDING, max(row, height)
    return shapes


def _extent(shapes: list[Shape]) -> tuple[float, float]:
    """Width and height of shapes whose upper left corner is at (0, 0)."""
    return max(s.x + s.width for s in shapes), max(s.y + s.height for s in shapes)


def _moved(shapes: list[Shape], x: float, y: float) -> list[Shape]:
    """The shapes, moved to the right and down."""
    return [replace(shape, x=shape.x + x, y=shape.y + y) for shape in shapes]


# -- layers ---------------------------------------------------------------------------------------


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
