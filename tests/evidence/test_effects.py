"""Estimates with the digits that their errors justify."""

from __future__ import annotations

import numpy as np

from jigsaw_crl.evidence.effects import rounded


def test_rounding_what_is_rounded_changes_nothing():
    rng = np.random.default_rng(0)
    value, error = rng.normal(size=30_000), 10.0 ** rng.uniform(-6, 2, 30_000)
    # Errors that rounding takes to a power of ten.
    error[:10_000] = 0.2 * (1.0 - 10.0 ** rng.uniform(-9, -2, 10_000))
    once = rounded(value, error)
    twice = rounded(*once)
    assert np.array_equal(once[0], twice[0])
    assert np.array_equal(once[1], twice[1])
    assert (np.abs(once[0] - value) < 0.51 * error).all()
