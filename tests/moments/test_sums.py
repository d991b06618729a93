"""Streaming moments do not depend on chunks or layout, and lose no digits."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.moments import accumulator as sums_module
from jigsaw_crl.moments.accumulator import FEWEST_STRETCH_ROWS, Accumulator
from jigsaw_crl.moments.checks import LARGEST_VALUE
from jigsaw_crl.moments.regime import MOST_PARTS, Moments

from ..test_public_objects import assert_equal
from .agreement import laplace_rows


def block_rows(d):
    return Accumulator(d).block


@given(st.data())
def test_the_result_does_not_depend_on_the_chunks(data):
    d = data.draw(st.integers(1, 6))
    n = data.draw(st.integers(1, 20_000))
    rows = laplace_rows(n, d, seed=data.draw(st.integers(0, 99)))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=12)))
    stream = Accumulator(d, most=MOST_PARTS)
    for chunk in np.split(rows, cuts):
        stream.add(np.asfortranarray(chunk) if data.draw(st.booleans()) else chunk)
        if stream.n:
            stream.moments()  # moments on the way change nothing
    assert_equal(stream.moments(), Moments.from_rows(rows, parts=True))


LAYOUTS = {
    "columns": np.asfortranarray,
    "every other column": lambda rows: np.repeat(rows, 2, axis=1)[:, ::2],
    "backwards": lambda rows: rows[::-1].copy()[::-1],
    "single, columns": lambda rows: np.asfortranarray(rows.astype(np.float32)),
    "other byte order": lambda rows: rows.astype(">f8"),
    "whole numbers": lambda rows: rows.astype(np.int32),
    "lists": lambda rows: rows.tolist(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("blocks", "d"), [(0.01, 3), (2.3, 3), (1.6, 300)])
def test_the_result_does_not_depend_on_layout_or_type(layout, blocks, d):
    # Whole numbers below 2**24: the same values in every type.
    rows = np.round(1e4 * laplace_rows(int(blocks * block_rows(d)), d))
    expected = Moments.from_rows(rows, parts=True)
    assert_equal(Moments.from_rows(LAYOUTS[layout](rows), parts=True), expected)


def _exact(rows):
    """Mean, then second, third and fourth central moments of each column, and Σ|x−μ|ᵏ/n."""
    found = []
    for column in rows.T.tolist():
        values = [Fraction(v) for v in column]
        mean = sum(values) / len(values)
        powers = [[(v - mean) ** k for v in values] for k in (2, 3, 4)]
        moments = [sum(p) / len(p) for p in powers]
        sizes = [sum(abs(v) for v in p) / len(p) for p in powers]
        found.append([mean, *moments, *sizes])
    return found


def _gap(value, truth):
    return abs(float(Fraction(float(value)) - truth))


def _hard_rows(case, n):
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(n, 3))
    if case == "far from zero":
        rows += [1e9, -1e12, 3e5]
    elif case == "outliers at the ends":  # where the typical value is looked for
        for start in range(0, n, block_rows(3)):
            last = min(start + block_rows(3), n) - 1
            rows[[start, last]] = 1e6
    elif case == "a jump":
        rows[n // 2 :] += 1e7
    elif case == "scales":
        rows *= [1e-60, 1e60, 1e-8]
    elif case == "nearly constant":
        rows = 1 + 1e-12 * rows
    return rows


@pytest.mark.parametrize("blocks", [0.2, 2.5])
@pytest.mark.parametrize(
    "case", ["far from zero", "outliers at the ends", "a jump", "scales", "nearly constant"]
)
def test_moments_agree_with_exact_sums_on_hard_rows(case, blocks, monkeypatch):
    # Blocks of 512 rows, so that exact sums over several blocks are affordable.
    monkeypatch.setattr(sums_module, "MOST_BLOCK_ROWS", 512)
    assert block_rows(3) == 512
    rows = _hard_rows(case, int(blocks * 512))
    found = Moments.from_rows(rows)
    # A typical value √n deviations off costs at least n·eps; others cost a few eps.
    eps = np.finfo(float).eps * (10 * len(rows) if case.startswith("outliers") else 50)
    exact = _exact(rows)
    for j, (mean, *powers) in enumerate(exact):
        spread = float(powers[0]) ** 0.5
        assert _gap(found.mean[j], mean) <= eps * (abs(float(mean)) + spread)
        values = found.covariance[j, j], found.third[j], found.fourth[j]
        for value, truth, size in zip(values, powers[:3], powers[3:], strict=True):
            assert _gap(value, truth) <= eps * float(size)
    (a, variance, *_), (b, other, *_) = exact[:2]
    pairs = rows[:, :2].tolist()
    truth = sum((Fraction(x) - a) * (Fraction(y) - b) for x, y in pairs) / len(rows)
    assert _gap(found.covariance[0, 1], truth) <= eps * float(variance) ** 0.5 * float(other) ** 0.5


@pytest.mark.parametrize("d", [1, 36])
@pytest.mark.parametrize("blocks", [0.3, 2.4])
@pytest.mark.parametrize("value", [np.nan, -np.inf, -1.1e70, 1e300])
def test_a_bad_value_is_refused_wherever_it_is(d, blocks, value):
    rows = laplace_rows(int(blocks * block_rows(d)), d)
    what = (
        f"the values reach {abs(value):.3g}, whose fourth power"
        if np.isfinite(value)
        else f"1 of {rows.size} values are missing or infinite"
    )
    for i, j in ((0, d - 1), (len(rows) // 2, 0), (len(rows) - 1, 0)):
        kept, rows[i, j] = rows[i, j], value
        with pytest.raises(InputError, match=re.escape(what)):
            Moments.from_rows(rows)
        rows[i, j] = kept


@pytest.mark.parametrize("blocks", [0.3, 2.4])
def test_the_largest_value_allowed_is_allowed(blocks):
    rows = laplace_rows(int(blocks * block_rows(3)), 3)
    rows[0] = rows[7] = LARGEST_VALUE
    rows[-1] = -LARGEST_VALUE
    found = Moments.from_rows(rows)
    assert np.isfinite(found.fourth).all()
    rows[7, 1] = np.nextafter(LARGEST_VALUE, np.inf)
    with pytest.raises(InputError, match="fourth power"):
        Moments.from_rows(rows)


@pytest.mark.parametrize("d", [1, 36, 200])
@pytest.mark.parametrize("blocks", [0.01, 0.999, 1.001, 7.3, 23.6])
def test_stretches_are_as_many_as_allowed_and_about_equally_long(d, blocks):
    n = max(int(blocks * block_rows(d)), 1)
    sizes = [p.n for p in Moments.from_rows(laplace_rows(n, d), parts=True).parts]
    assert sum(sizes) == n
    assert len(sizes) == max(min(MOST_PARTS, n // FEWEST_STRETCH_ROWS), 1)
    assert max(sizes) <= 4 * min(sizes)


def test_an_empty_stream_has_no_moments_and_takes_no_rows_of_another_width():
    with pytest.raises(InputError, match="no rows"):
        Accumulator(3).moments()
    with pytest.raises(InputError, match="3 features"):
        Accumulator(3).add(np.zeros((2, 4)))
