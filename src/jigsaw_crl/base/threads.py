"""Limits on the threads of linear algebra.

The matrices are small or many, so clients and regimes run in parallel, not parts of a product.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import scipy.linalg  # noqa: F401 (loads a BLAS of its own, which the controller must find)
from threadpoolctl import ThreadpoolController

__all__ = ["allowed_threads", "one_thread"]


@cache
def _libraries() -> Any:
    """The BLAS libraries of this process; finding them takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


def one_thread() -> Any:
    """A context manager that runs linear algebra in one thread; entering it takes microseconds."""
    return _libraries().limit(limits=1)


def allowed_threads() -> int:
    """Number of threads that linear algebra may use (at least 1)."""
    return int(min((library["num_threads"] for library in _libraries().info()), default=1))
