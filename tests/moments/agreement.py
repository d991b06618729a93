"""Skewed rows, and two ways in which moments can agree."""

import numpy as np


def laplace_rows(n, d, seed=0, offset=0.0):
    rng = np.random.default_rng(seed)
    return rng.laplace(size=(n, d)) @ rng.normal(size=(d, d)) + offset


def assert_close(a, b, rtol):
    """Equal up to `rtol`, relative to the spread of the rows."""
    assert a.n == b.n
    size = np.abs(b.covariance).max()
    np.testing.assert_allclose(a.mean, b.mean, rtol=rtol, atol=rtol * np.sqrt(size))
    np.testing.assert_allclose(a.covariance, b.covariance, rtol=0, atol=rtol * size)
    np.testing.assert_allclose(a.third, b.third, rtol=0, atol=rtol * size**1.5 * 10)
    np.testing.assert_allclose(a.fourth, b.fourth, rtol=0, atol=rtol * np.abs(b.fourth).max())
