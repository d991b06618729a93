"""Estimates with the digits that their errors justify."""

import numpy as np

from jigsaw_crl.evidence.effects import Sizes


def test_rounding_what_is_rounded_changes_nothing():
    rng = np.random.default_rng(0)
    value, error = rng.normal(size=30_000), 10.0 ** rng.uniform(-6, 2, 30_000)
    # Errors that rounding takes to a power of ten.
    error[:10_000] = 0.2 * (1.0 - 10.0 ** rng.uniform(-9, -2, 10_000))
    once = Sizes(value, error)
    twice = Sizes(once.value, once.error)
    assert np.array_equal(once.value, twice.value)
    assert np.array_equal(once.error, twice.error)
    assert (np.abs(once.value - value) < 0.51 * error).all()
