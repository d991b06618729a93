"""Moments of rows with missing values, and what these cost."""

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.moments.incomplete import filled
from jigsaw_crl.moments.regime import Moments


def mixed(rng, n, noise, latents=4, d=7):
    """Rows, and W that whitens them along their leading directions."""
    G = np.random.default_rng(5).normal(size=(d, latents))
    C = G @ G.T + noise * np.eye(d)
    V = np.linalg.eigh(C)[1][:, -latents:]
    W = np.linalg.inv(np.linalg.cholesky(V.T @ C @ V)) @ V.T
    rows = rng.normal(size=(n, latents)) @ G.T + np.sqrt(noise) * rng.normal(size=(n, d)) + 3
    return rows, W


def holes(rng, rows, share):
    return np.where(rng.random(rows.shape) < share, np.nan, rows)


def test_values_that_the_others_determine_are_found_again_at_no_cost():
    rng = np.random.default_rng(0)
    rows, _ = mixed(rng, 500, 0.0)
    with_holes = rows.copy()
    with_holes[::3, 2] = np.nan
    with_holes[1::5, 6] = np.nan
    found, complete = filled(with_holes, np.zeros(500, dtype=int), 4), Moments.from_rows(rows)
    assert found.n == 500
    assert found.mean == pytest.approx(complete.mean, abs=1e-6)
    assert found.covariance == pytest.approx(complete.covariance, abs=1e-5)


def test_a_feature_that_nothing_else_tells_costs_its_missing_rows():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(4_000, 1)) @ [[1.0, 0.0]] + rng.normal(size=(4_000, 1)) @ [[0.0, 1.0]]
    rows[:2_000, 1] = np.nan
    found = filled(rows, np.zeros(4_000, dtype=int), 2)
    # All rows tell the mean of x1, half of them that of x2. Second moments cost 5/3, and the square
    # of what means cost is never less.
    assert found.incomplete.mean == pytest.approx((1 + 2) / 2, rel=0.01)
    assert 5 / 3 < 4_000 / found.n < 2.3


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "share"), [(0.01, 0.2), (0.5, 0.05)])
def test_errors_are_as_large_as_stated(noise, share):
    n, squares, of_mean, of_complete = 600, [], [], []
    upper = np.triu_indices(4)
    scale = np.where(upper[0] == upper[1], 2.0, 1.0)
    for seed in range(60):
        rng = np.random.default_rng([8_100, seed])
        rows, W = mixed(rng, n, noise)
        found = filled(holes(rng, rows, share), np.arange(n) // 75, 4)
        away = (W @ found.covariance @ W.T - np.eye(4))[upper]
        squares.append(np.mean(away**2 / scale) * found.n)
        of_mean.append(np.mean((W @ (found.mean - 3)) ** 2) * n / found.incomplete.mean)
        of_complete.append(found.n / n)
    # Means of 60 studies with 10 and 4 squares each: standard errors of about .06 and .09.
    assert np.mean(squares) == pytest.approx(1, abs=0.2)
    assert np.mean(of_mean) == pytest.approx(1, abs=0.3)
    assert 0.5 < np.mean(of_complete) < 1


def client(missing, share=0.2, **asked):
    rng = np.random.default_rng(3)
    G = rng.normal(size=(8, 3))

    def rows(gain):
        x = (rng.normal(size=(2_000, 3)) * gain) @ G.T + 0.3 * rng.normal(size=(2_000, 8))
        return holes(rng, x, share)

    regimes = {f"z{j}": rows(1 + 2 * np.eye(3)[j]) for j in range(3)}
    return jc.Client.from_samples(
        "lab", observational=rows(1), interventions=regimes, missing=missing, **asked
    )


def test_what_cannot_be_filled_is_refused():
    rows = np.random.default_rng(0).normal(size=(50, 4))
    rows[5:, 2] = np.nan
    with pytest.raises(jc.InputError, match=r"regime 'pump'.*feature 3 has 5 values in 50 rows"):
        jc.Client.from_samples(
            "lab",
            observational=np.random.default_rng(1).normal(size=(50, 4)),
            interventions={"pump": rows},
            missing="em",
        )
    for other in ({"trim": 0.1}, {"batch": {"control": "a", "z0": "a", "z1": "a", "z2": "a"}}):
        with pytest.raises(jc.InputError, match="cannot be combined with"):
            client("em", **other)
    with pytest.raises(jc.InputError, match="missing is 'guess'"):
        client("guess")
