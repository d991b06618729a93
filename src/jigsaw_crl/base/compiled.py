"""Functions compiled when they are first called, and kept on disk for the next process.

Importing this module loads the compiler; modules that need it are imported where they are used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba as nb

__all__ = ["compiled"]


def compiled(*signatures: Any, kept: bool = True, **options: Any) -> Any:
    """A decorator: `numba.njit` without the interpreter's lock, dividing as numpy does.

    `kept=False` for functions that only compiled ones call: they become part of their callers. They
    also come with several types of arguments, and two processes that fill the disk's index of
    such a function at once can mix them up; a function with one type cannot be mixed up.

    Where neither the package's folder nor the user's cache can be written to (a container without
    a home, say), every process compiles for itself.
    """
    settings = {"nogil": True, "error_model": "numpy", **options}

    def decorate(function: Callable[..., Any]) -> Any:
        jit: Any = nb.njit
        try:
            return jit(*signatures, cache=kept, **settings)(function)
        except RuntimeError:
            return jit(*signatures, **settings)(function)

    return decorate
