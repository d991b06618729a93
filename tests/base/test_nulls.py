"""The nulls by which findings are judged, against simulated samples."""

import numpy as np
import pytest

from jigsaw_crl.base.nulls import mean_square_edge, noise_edge, ratio_edges, shift_edge


@pytest.mark.parametrize(
    ("p", "m", "n"),
    [(2, 50, 80), (12, 100, 1000), (20, 100, 14), (5, 500, 3)],
)
def test_the_null_of_a_ratio_of_covariances_is_calibrated(p, m, n):
    rng = np.random.default_rng(p)
    low, high = ratio_edges(p, m, n, 0.05)
    below = above = 0
    for _ in range(600):
        a, b = rng.normal(size=(m, p)), rng.normal(size=(n, p))
        values = np.linalg.eigvals(np.linalg.solve(a.T @ a / m, b.T @ b / n)).real
        below += values.min() < low
        above += values.max() > high
    # 5 % of 600 is 30, with a standard deviation of 5.3; the approximation errs on the safe side.
    assert 12 <= above <= 46
    if n > p:
        assert 12 <= below <= 46
    else:  # open below
        assert 0 < low < 1e-300
        assert ratio_edges(p, n, m, 0.05)[1] == np.inf


def test_the_null_of_pure_noise_is_calibrated():
    rng = np.random.default_rng(0)
    edge = noise_edge(4, 200, 0.05)
    rows = rng.normal(size=(800, 200, 4))
    largest = np.linalg.eigvalsh(np.swapaxes(rows, 1, 2) @ rows / 200)[:, -1]
    assert 20 <= np.count_nonzero(largest > edge) <= 60


@pytest.mark.parametrize(("p", "n0", "n"), [(2, 30, 80), (8, 60, 40)])
def test_the_null_of_a_shift_of_the_mean_is_calibrated(p, n0, n):
    rng = np.random.default_rng(p)
    edge, beyond = shift_edge(p, n0 - 1, 0.05), 0
    for _ in range(800):
        a, b = rng.normal(size=(n0, p)), rng.normal(size=(n, p))
        d = b.mean(axis=0) - a.mean(axis=0)
        beyond += d @ np.linalg.solve(np.cov(a.T), d) / (1 / n0 + 1 / n) > edge
    # 5 % of 800 is 40, with a standard deviation of 6.2.
    assert 18 <= beyond <= 62


@pytest.mark.parametrize("regimes", [2, 7, 20])
def test_the_null_of_shifts_that_share_the_error_of_the_control_is_calibrated(regimes):
    rng = np.random.default_rng(regimes)
    R = (np.eye(regimes) + 1.0) / 2.0
    parts = np.linalg.eigvalsh(R)
    squares = rng.chisquare(3, size=(400_000, regimes)) @ parts / (3 * regimes)
    above = np.count_nonzero(squares > mean_square_edge(parts, 3, 1e-3))
    assert 330 < above < 500
