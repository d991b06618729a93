"""Names of the array types in signatures: numpy arrays by the kind of number they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike as ArrayLike

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]

# Rows or pairs whose small matrices are computed at once: they then stay in a core's cache.
TOGETHER = 1000
