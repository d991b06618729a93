"""Moments of a regime and the linear algebra that is done with them."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.moments.regime import MOST_PARTS, Moments

from ..test_public_objects import assert_equal
from .agreement import assert_close, laplace_rows


@given(
    st.lists(st.integers(1, 2000), min_size=2, max_size=5),
    st.integers(1, 5),
    st.floats(-1e4, 1e4),
    st.floats(1e-3, 1e3),
    st.randoms(use_true_random=False),
)
def test_merged_moments_are_those_of_all_rows_in_any_order(sizes, d, offset, scale, random):
    pieces = [scale * laplace_rows(n, d, i, offset * i) for i, n in enumerate(sizes)]
    whole = Moments.from_rows(np.vstack(pieces))
    random.shuffle(pieces)
    merged = functools.reduce(Moments.merge, map(Moments.from_rows, pieces))
    assert_close(merged, whole, 1e-11)


@given(st.lists(st.integers(1, 6000), min_size=2, max_size=6))
def test_merged_parts_stay_few_and_cover_all_rows(sizes):
    pieces = [Moments.from_rows(laplace_rows(n, 2, i), parts=True) for i, n in enumerate(sizes)]
    merged = functools.reduce(Moments.merge, pieces)
    assert len(merged.parts) <= MOST_PARTS
    assert_close(functools.reduce(Moments.merge, merged.parts), merged, 1e-11)


@given(st.data())
def test_selected_moments_are_those_of_the_selected_columns(data):
    d = data.draw(st.integers(1, 6))
    rows = np.round(100 * laplace_rows(300, d))
    moments = Moments.from_rows(rows, parts=True)
    order = np.array(data.draw(st.permutations(range(d)))[: data.draw(st.integers(1, d))])
    assert_close(moments.select(order), Moments.from_rows(rows[:, order]), 1e-12)
    mask = np.isin(np.arange(d), order)
    assert_equal(moments.select(mask), moments.select(np.flatnonzero(mask)))
    assert [p.n for p in moments.select(mask).parts] == [p.n for p in moments.parts]


def test_moments_that_do_not_fit_are_not_merged():
    estimate = Moments(5, np.zeros(2), np.eye(2))
    with pytest.raises(InputError, match="population"):
        estimate.merge(Moments(None, np.zeros(2), np.eye(2)))
    with pytest.raises(InputError, match="2 and of 3 features"):
        estimate.merge(Moments(5, np.zeros(3), np.eye(3)))
