"""Layered drawings: nothing overlaps, ancestors are above, lines start and end at their boxes."""

from collections import namedtuple
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from jigsaw_crl.report.drawing import lay_out, shorten


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 14))
    pairs = list(combinations(range(n), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=25)) if pairs else []
    names = draw(st.permutations(range(n)))
    sizes = draw(st.lists(st.tuples(st.floats(10, 120), st.floats(10, 60)), min_size=n, max_size=n))
    return sizes, [(names[a], names[d]) for a, d in edges]


Box = namedtuple("Box", "x y width height")


def boxes_of(drawing, sizes):
    """Boxes by their centres."""
    corners = zip(drawing.corners, sizes, strict=True)
    return [Box(x + w / 2, y + h / 2, w, h) for (x, y), (w, h) in corners]


def assert_apart(boxes):
    for one, other in combinations(boxes, 2):
        assert (
            abs(one.x - other.x) >= (one.width + other.width) / 2 - 1e-6
            or abs(one.y - other.y) >= (one.height + other.height) / 2
        )


WIDE = [(118.0, 24.0), (10.0, 40.0)]


@given(graphs())
# Numbers of boxes without an edge lie between those with one, where bends used to get them.
@example(([(40.0, 20.0)] * 7, [(5, 6), (5, 4), (4, 6)]))
@example(([(40.0, 20.0)] * 7, [(0, 5), (1, 3), (3, 2), (3, 6), (4, 1), (4, 2)]))
@example(([(40.0, 20.0)] * 6, [(0, 3), (1, 5), (2, 1), (4, 1), (4, 2), (4, 5)]))
# Folded layers of boxes that differ in width, crossed by long edges.
@example((WIDE * 27, [(0, i) for i in range(1, 50)] + [(0, 51), (51, 52), (52, 53), (0, 53)]))
def test_boxes_do_not_overlap_and_ancestors_are_above(graph):
    sizes, edges = graph
    drawing = lay_out(sizes, edges)
    boxes = boxes_of(drawing, sizes)
    assert_apart(boxes)
    for (a, d), route in zip(edges, drawing.routes, strict=True):
        assert boxes[a].y < boxes[d].y
        assert route[0] == pytest.approx((boxes[a].x, boxes[a].y + boxes[a].height / 2))
        assert route[-1] == pytest.approx((boxes[d].x, boxes[d].y - boxes[d].height / 2))
        assert [y for _, y in route] == sorted(y for _, y in route)
    for box in boxes:
        assert box.x - box.width / 2 >= 0
        assert box.x + box.width / 2 <= drawing.width
        assert box.y + box.height / 2 <= drawing.height


def test_a_graph_full_of_cycles_is_drawn():
    rng = np.random.default_rng(0)
    for _ in range(50):
        edges = [(int(a), int(d)) for a, d in np.argwhere(rng.random((9, 9)) < 0.4)]
        drawing = lay_out([(40, 20)] * 9, edges)
        boxes = boxes_of(drawing, [(40, 20)] * 9)
        assert_apart(boxes)
        for (a, d), route in zip(edges, drawing.routes, strict=True):
            assert abs(route[0][1] - boxes[a].y) == 10
            assert abs(route[-1][1] - boxes[d].y) == 10


@pytest.mark.parametrize("text", ["short", "x" * 200, "🧩" * 40, "né\u0301" * 30, "a\nb"])
def test_a_shortened_text_fits(text):
    shown = shorten(text, 12)
    assert cell_len(shown) <= 12
    assert "\n" not in shown
    assert shown == " ".join(text.split()) or shown.endswith("…")
