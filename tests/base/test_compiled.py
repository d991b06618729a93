"""Compiled functions without a cache on disk."""

from __future__ import annotations

from numba.core import caching

from jigsaw_crl.base.compiled import compiled


def test_functions_are_compiled_even_if_no_cache_folder_is_writable(monkeypatch):
    # Without a writable folder numba finds no locator for its cache.
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])

    @compiled()
    def half(x):
        return x / 2

    assert half(3.0) == 1.5
    assert half.signatures  # it was compiled, not interpreted
