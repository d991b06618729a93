"""Streaming moments: one pass, whatever the chunks, to the last digits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jigsaw_crl.errors import InputError
from jigsaw_crl.moments import MOST_PARTS, Moments
from jigsaw_crl.stream import MomentStream, block_rows


def _rows(n: int, d: int, seed: int = 0, offset: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.laplace(size=(n, d)) @ rng.normal(size=(d, d)) + offset


def _assert_close(a: Moments, b: Moments, rtol: float) -> None:
    assert a.n == b.n
    size = np.abs(b.covariance).max()
    np.testing.assert_allclose(a.mean, b.mean, rtol=rtol, atol=rtol * np.sqrt(size))
    np.testing.assert_allclose(a.covariance, b.covariance, rtol=0, atol=rtol * size)
    np.testing.assert_allclose(a.third, b.third, rtol=0, atol=rtol * size**1.5 * 10)
    np.testing.assert_allclose(a.fourth, b.fourth, rtol=0, atol=rtol * np.abs(b.fourth).max())


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e8])
def test_moments_agree_with_extended_precision(offset):
    rows = _rows(30_000, 4, offset=offset)
    exact = rows.astype(np.longdouble)
    mean = exact.mean(axis=0)
    centred = exact - mean
    found = Moments.from_rows(rows)
    covariance = (centred.T @ centred / len(rows)).astype(float)
    np.testing.assert_allclose(found.mean, mean.astype(float), rtol=1e-14, atol=1e-15)
    # The rows themselves carry eps·offset; nothing beyond that may be lost.
    slack = 1e-13 + 1e-15 * np.abs(rows).max()
    np.testing.assert_allclose(found.covariance, covariance, rtol=slack)
    np.testing.assert_allclose(found.fourth, (centred**4).mean(axis=0).astype(float), rtol=slack)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_the_result_does_not_depend_on_the_chunks(data):
    d = data.draw(st.integers(1, 6))
    n = data.draw(st.integers(1, 20_000))
    rows = _rows(n, d, seed=data.draw(st.integers(0, 99)))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=12)))
    stream = MomentStream(d, parts=True)
    for chunk in np.split(rows, cuts):
        stream.add(np.asfortranarray(chunk) if data.draw(st.booleans()) else chunk)
        if stream.n:
            stream.moments()  # asking on the way changes nothing
    found, expected = stream.moments(), Moments.from_rows(rows, parts=True)
    for name in ("mean", "covariance", "third", "fourth"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert [p.n for p in found.parts] == [p.n for p in expected.parts]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 3000),
    st.integers(1, 3000),
    st.integers(1, 5),
    st.floats(-1e4, 1e4),
    st.floats(1e-3, 1e3),
)
def test_two_halves_merge_to_the_whole(n, m, d, offset, scale):
    first, second = scale * _rows(n, d, 1), scale * (_rows(m, d, 2) + 0.1) + offset * scale
    whole = Moments.from_rows(np.vstack([first, second]))
    merged = Moments.from_rows(first).merge(Moments.from_rows(second))
    _assert_close(merged, whole, 1e-12)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 400), min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_merging_does_not_depend_on_the_order(sizes, random):
    pieces = [Moments.from_rows(_rows(n, 3, seed=i)) for i, n in enumerate(sizes)]
    shuffled = pieces[:]
    random.shuffle(shuffled)

    def merged(parts: list[Moments]) -> Moments:
        total = parts[0]
        for part in parts[1:]:
            total = total.merge(part)
        return total

    _assert_close(merged(shuffled), merged(pieces), 1e-12)


def test_single_precision_rows_are_summed_in_double():
    rows = _rows(200_000, 2).astype(np.float32)
    found = Moments.from_rows(rows)
    exact = Moments.from_rows(rows.astype(np.float64))
    np.testing.assert_array_equal(found.covariance, exact.covariance)


def test_the_stretches_cover_the_rows_in_their_order():
    rows = np.arange(50_000.0)[:, None] + _rows(50_000, 1)
    parts = Moments.from_rows(rows, parts=True).parts
    assert 3 <= len(parts) <= MOST_PARTS
    assert sum(p.n for p in parts) == 50_000
    means = [p.mean[0] for p in parts]
    assert means == sorted(means)


def test_merged_stretches_stay_few():
    a = Moments.from_rows(_rows(4000, 2), parts=True)
    b = Moments.from_rows(_rows(6000, 2, 1), parts=True)
    merged = a.merge(b)
    assert len(merged.parts) <= MOST_PARTS
    assert sum(p.n for p in merged.parts) == 10_000


def test_stretches_are_kept_only_when_asked_for():
    assert Moments.from_rows(_rows(5000, 2)).parts == ()


def test_an_empty_stream_has_no_moments():
    with pytest.raises(InputError, match="no rows"):
        MomentStream(3).moments()


def test_rows_of_another_width_are_refused():
    with pytest.raises(InputError, match="3 features"):
        MomentStream(3).add(np.zeros((2, 4)))


def test_population_moments_do_not_merge():
    exact = Moments(None, np.zeros(2), np.eye(2))
    with pytest.raises(InputError, match="population"):
        exact.merge(Moments.from_rows(_rows(5, 2)))


def test_merging_without_higher_moments_gives_none():
    plain = Moments(5, np.zeros(2), np.eye(2))
    assert plain.merge(Moments.from_rows(_rows(5, 2))).fourth is None


def test_a_block_has_at_least_as_many_rows_as_features():
    assert all(block_rows(d) >= d for d in (1, 10, 300, 400, 5000))
