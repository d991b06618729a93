"""Moments of rows that come in batches: covariances within them, and what a batch costs."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.moments.regime import Moments

seeds = st.integers(0, 2**32 - 1)


def batches_of(seed, sizes, d=3):
    rng = np.random.default_rng(seed)
    return {f"b{i}": rng.normal(size=(n, d)) + 5 * rng.normal(size=d) for i, n in enumerate(sizes)}


def within(rows):
    return Moments.of_batches({b: Moments.from_rows(x, parts=True) for b, x in rows.items()})


@given(seeds, st.lists(st.integers(1, 30), min_size=1, max_size=5))
def test_the_covariance_is_about_each_batchs_own_mean_and_a_batch_costs_a_row(seed, sizes):
    rows = batches_of(seed, sizes)
    m = within(rows)
    residuals = np.vstack([x - x.mean(axis=0) for x in rows.values()])
    assert m.rows == sum(sizes)
    assert m.n == sum(sizes) - len(sizes) + 1
    np.testing.assert_allclose(m.n * m.covariance, residuals.T @ residuals, atol=1e-9)
    np.testing.assert_allclose(m.mean, np.vstack(list(rows.values())).mean(axis=0), atol=1e-12)
    assert [(b.name, b.n) for b in m.batches] == [(f"b{i}", n) for i, n in enumerate(sizes)]


@given(seeds, st.integers(1, 40))
def test_merged_moments_are_those_of_all_rows_of_every_batch(seed, cut):
    rows = batches_of(seed, [41, 20, 30])
    first = {"b0": rows["b0"][:cut], "b1": rows["b1"]}
    second = {"b0": rows["b0"][cut:], "b2": rows["b2"]}
    merged, whole = within(first).merge(within(second)), within(rows)
    assert (merged.n, merged.rows) == (whole.n, whole.rows)
    np.testing.assert_allclose(merged.covariance, whole.covariance, atol=1e-10)
    np.testing.assert_allclose(merged.mean, whole.mean, atol=1e-10)
    for a, b in zip(merged.batches, whole.batches, strict=True):
        assert (a.name, a.n) == (b.name, b.n)
        np.testing.assert_allclose(a.mean, b.mean, atol=1e-10)


def test_stretches_of_the_rows_do_not_show_the_offsets_of_batches():
    m = within(batches_of(1, [400, 400]))
    steps = [np.linalg.norm(part.mean - m.mean) * np.sqrt(part.n) for part in m.parts]
    assert len(steps) > 2
    assert max(steps) < 5


def test_merged_moments_are_trimmed_if_either_is():
    rows = batches_of(0, [8, 9])
    trimmed = replace(within(rows), trimmed=True)
    assert trimmed.merge(within(rows)).trimmed
    assert within(rows).merge(trimmed).trimmed
    assert not within(rows).merge(within(rows)).trimmed
