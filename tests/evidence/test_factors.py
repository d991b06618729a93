"""Log Bayes factors in memory and pickled."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from .test_pooled import random_factors


@pytest.mark.parametrize("coarse", [True, False])
def test_pickled_factors_come_back_as_they_were(coarse):
    factors = random_factors(np.random.default_rng(0), 40)
    factors = factors.coarse() if coarse else factors
    data = pickle.dumps(factors, protocol=pickle.HIGHEST_PROTOCOL)
    again = pickle.loads(data)
    for name in ("ancestor", "district", "lean", "settled"):
        one, other = getattr(factors, name), getattr(again, name)
        assert (one.dtype, one.tobytes()) == (other.dtype, other.tobytes())
        assert not other.flags.writeable
    assert (again.scales, again.single) == (factors.scales, factors.single)
    # Two scales, district and lean in 2 bytes each, settled in one; 8 bytes where they do not fit.
    assert len(data) / 1600 < (9.5 if coarse else 33.5)


def test_what_16_bits_cannot_say_is_kept_as_it_is():
    factors = random_factors(np.random.default_rng(1), 4).coarse()
    for value in (-0.0, 4000.0):
        table = np.array(factors.ancestor)
        table[0, 1, 2] = value
        changed = type(factors)(factors.scales, table, factors.district)
        again = pickle.loads(pickle.dumps(changed))
        assert again.ancestor.tobytes() == changed.ancestor.tobytes()
