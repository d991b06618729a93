"""Arrays of frozen objects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from jigsaw_crl.base.frozen import ReadOnlyArrays


@dataclass(frozen=True, eq=False)
class Holder(ReadOnlyArrays):
    value: np.ndarray

    def __post_init__(self) -> None:
        self._copy_read_only("value")


def test_arrays_are_copied_unless_nobody_can_change_them():
    x = np.arange(6.0)
    view = x[:3]
    view.flags.writeable = False
    for given in (x, view, np.arange(3)):
        held = Holder(given).value
        assert held is not given
        assert not np.shares_memory(held, x)
        with pytest.raises(ValueError, match="read-only"):
            held[0] = 1.0
    assert Holder(held).value is held
