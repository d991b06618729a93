"""How many threads does linear algebra use?

Our matrices are small, or many: what runs at once is clients or regimes, not parts of a product.
"""

from __future__ import annotations

from functools import cache
from typing import Any

__all__ = ["allowed_threads", "one_thread"]


@cache
def _libraries() -> Any:
    """The linear algebra libraries of this process; looking for them takes milliseconds."""
    import scipy.linalg  # noqa: F401 (brings a library of its own)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def one_thread() -> Any:
    """A context in which linear algebra runs in one thread; it costs microseconds."""
    return _libraries().limit(limits=1)


def allowed_threads() -> int:
    """Threads that the user, or the machine, allows linear algebra; at least one."""
    return int(min((library["num_threads"] for library in _libraries().info()), default=1))
