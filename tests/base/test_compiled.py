"""Compiled functions without a cache on disk."""

from __future__ import annotations

import numba
import pytest

from jigsaw_crl.base.compiled import compiled


def test_functions_are_compiled_even_if_they_cannot_be_cached():
    # numba cannot cache a function that comes from no file.
    namespace: dict = {}
    exec("def half(x):\n    return x / 2", namespace)
    with pytest.raises(RuntimeError, match="cannot cache"):
        numba.njit(cache=True)(namespace["half"])
    half = compiled()(namespace["half"])
    assert half(3.0) == 1.5
    assert half.signatures  # it was compiled, not interpreted
