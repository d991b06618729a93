"""The page's pictures as shapes: the global Hasse diagram, and one picture per client.

They are plain data: the template turns them into SVG, `figures` into matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jigsaw_crl.assembly import GlobalOrder
from jigsaw_crl.assembly.panel import read_fragments
from jigsaw_crl.assembly.verdict import SAYS_YES
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.report.layout import lay_out, shorten, text_width

__all__ = ["Chip", "Edge", "Outline", "Picture", "draw_hasse", "draw_piece", "smooth_path"]

CHIP_HEIGHT, PADDING, SPACE = 26.0, 9.0, 8.0
WIDEST_GROUP = 230.0


@dataclass(frozen=True)
class Chip:
    """A label: upper left corner, size, what is shown and the whole label."""

    x: float
    y: float
    width: float
    height: float
    shown: str
    label: str


@dataclass(frozen=True)
class Outline:
    """A frame around members: a block or a district."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    members: tuple[str, ...]


@dataclass(frozen=True)
class Edge:
    """An edge from ancestor to descendant (labels, or any member of a block), and its points.

    `stated` is false where less is known than that the one label is an ancestor of the other:
    between groups of labels, and where the client cannot say. `meaning` is what is known.
    """

    ancestor: str
    descendant: str
    points: tuple[tuple[float, float], ...]
    stated: bool = True
    meaning: str = ""

    @property
    def path(self) -> str:
        return smooth_path(self.points)


@dataclass(frozen=True)
class Picture:
    width: float
    height: float
    chips: tuple[Chip, ...]
    edges: tuple[Edge, ...]
    outlines: tuple[Outline, ...] = ()
    layers: tuple[int, ...] = ()


def smooth_path(points: Sequence[tuple[float, float]]) -> str:
    """An SVG path through points, vertical at each of them."""
    (x, y), *rest = points
    parts = [f"M{x:.1f} {y:.1f}"]
    for u, v in rest:
        half = (y + v) / 2
        parts.append(f"C{x:.1f} {half:.1f} {u:.1f} {half:.1f} {u:.1f} {v:.1f}")
        x, y = u, v
    return "".join(parts)


def draw_hasse(order: GlobalOrder) -> Picture:
    """The Hasse diagram of the decided pairs; chips follow `order.labels`."""
    position = {label: i for i, label in enumerate(order.labels)}
    graph = order.hasse()
    pairs = sorted((position[a], position[d]) for a, d in graph.edges if a != d)
    most = 22 if len(order.labels) <= 60 else 12
    chips = [_chip(label, most) for label in order.labels]
    drawing = lay_out([(c.width, c.height) for c in chips], pairs)
    edges = tuple(
        Edge(order.labels[a], order.labels[d], route)
        for (a, d), route in zip(pairs, drawing.routes, strict=True)
    )
    corners = (box.corner for box in drawing.boxes)
    placed = tuple(replace(c, x=x, y=y) for c, (x, y) in zip(chips, corners, strict=True))
    return Picture(drawing.width, drawing.height, placed, edges, layers=drawing.layer)


def draw_piece(fragment: Fragment) -> Picture:
    """A client's blocks in their order, with districts and labels inside them."""
    blocks = list(fragment.block_order.topological())
    number = {block: i for i, block in enumerate(blocks)}
    covers = sorted((number[a], number[d]) for a, d in fragment.block_order.covers())
    groups = [_block(fragment, block) for block in blocks]
    drawing = lay_out([(g.width, g.height) for g in groups], covers)
    chips: list[Chip] = []
    outlines: list[Outline] = []
    for group, box in zip(groups, drawing.boxes, strict=True):
        moved = _moved(group, *box.corner)
        chips += moved.chips
        outlines += moved.outlines
    (claims,) = read_fragments([fragment]).claims
    names = sorted(fragment.labels)
    said = np.argwhere(claims.stance == SAYS_YES).tolist()
    says = {(names[i], names[j]) for i, j in said}
    edges = tuple(
        _block_edge(says, blocks[a], blocks[d], route)
        for (a, d), route in zip(covers, drawing.routes, strict=True)
    )
    return Picture(drawing.width, drawing.height, tuple(chips), edges, tuple(outlines))


def _block_edge(
    says: set[tuple[str, str]],
    above: frozenset[str],
    below: frozenset[str],
    route: tuple[tuple[float, float], ...],
) -> Edge:
    """The edge between two blocks; `says` are the pairs on which the client says yes."""

    def one_of(block: frozenset[str]) -> str:
        return ("at least one of " if len(block) > 1 else "") + ", ".join(sorted(block))

    meaning = f"{one_of(above)} is an ancestor of {one_of(below)}"
    if len(above) == len(below) == 1 and (min(above), min(below)) not in says:
        return Edge(min(above), min(below), route, False, f"best guess, not stated: {meaning}")
    return Edge(min(above), min(below), route, len(above) == len(below) == 1, meaning)


def _chip(label: str, most: int = 16) -> Chip:
    shown = shorten(label, most)
    return Chip(0.0, 0.0, max(34.0, text_width(shown) + 2 * PADDING), CHIP_HEIGHT, shown, label)


def _block(fragment: Fragment, block: frozenset[str]) -> Picture:
    """The inside of a block, with its upper left corner at (0, 0)."""
    members = [d for d in fragment.districts or () if d <= block]
    if not members:
        members = [frozenset([label]) for label in sorted(block)]
    parts = [_district(d) for d in sorted(members, key=lambda d: (-len(d), min(d)))]
    picture = _flow(parts)
    if len(block) == 1:
        return picture
    return _framed(picture, "block", block, 2 * PADDING)


def _district(district: frozenset[str]) -> Picture:
    chips = [_chip(label) for label in sorted(district)]
    picture = _flow([Picture(c.width, c.height, (c,), ()) for c in chips])
    return picture if len(chips) == 1 else _framed(picture, "district", district, PADDING)


def _framed(picture: Picture, kind: str, members: frozenset[str], pad: float) -> Picture:
    inner = _moved(picture, pad, pad)
    width, height = picture.width + 2 * pad, picture.height + 2 * pad
    frame = Outline(kind, 0.0, 0.0, width, height, tuple(sorted(members)))
    return Picture(width, height, inner.chips, (), (frame, *inner.outlines))


def _flow(parts: list[Picture]) -> Picture:
    """Parts side by side, in rows that make up about a square."""
    area = sum((p.width + SPACE) * (p.height + SPACE) for p in parts)
    widest = max(WIDEST_GROUP, 1.6 * area**0.5, *(p.width for p in parts))
    chips: list[Chip] = []
    outlines: list[Outline] = []
    x = y = row = width = 0.0
    for part in parts:
        if x and x + part.width > widest:
            x, y, row = 0.0, y + row + SPACE, 0.0
        moved = _moved(part, x, y)
        chips += moved.chips
        outlines += moved.outlines
        width, row = max(width, x + part.width), max(row, part.height)
        x += part.width + SPACE
    return Picture(width, y + row, tuple(chips), (), tuple(outlines))


def _moved(picture: Picture, x: float, y: float) -> Picture:
    """The picture's chips and outlines, moved to the right and down."""
    return replace(
        picture,
        chips=tuple(replace(c, x=c.x + x, y=c.y + y) for c in picture.chips),
        outlines=tuple(replace(o, x=o.x + x, y=o.y + y) for o in picture.outlines),
    )
