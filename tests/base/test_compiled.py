"""Compiled functions where nothing can be kept on disk."""

from __future__ import annotations

from numba.core import caching

from jigsaw_crl.base.compiled import compiled


def test_functions_are_compiled_where_no_folder_can_be_written(monkeypatch):
    # What numba does where no folder can be written: no locator takes the file.
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])

    @compiled()
    def half(x):
        return x / 2

    assert half(3.0) == 1.5
    assert half.signatures  # it was compiled, not interpreted
