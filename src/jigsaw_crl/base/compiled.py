"""Functions compiled by numba and cached on disk for the next process.

Importing this module loads numba (about half a second), so modules that use it are imported where
they are needed. A person who waits at a terminal or in a notebook is told when functions are
compiled, once per process; nothing is said when they come from the cache.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numba as nb
from numba.core import event

__all__ = ["COMPILING", "compiled"]

COMPILING = "jigsaw: compiling functions for this machine; it takes 10 to 30 seconds, once"


class _Announcement(event.Listener):
    """Says that functions are compiled, when the first one is."""

    def on_start(self, event: object) -> None:
        del event
        if _announced or not (sys.stderr.isatty() or "ipykernel" in sys.modules):
            return
        _announced.append(COMPILING)
        print(COMPILING, file=sys.stderr, flush=True)

    def on_end(self, event: object) -> None:
        del event


_announced: list[str] = []
_register: Any = event.register
_register("numba:compile", _Announcement())


def compiled(*signatures: Any, kept: bool = True, **options: Any) -> Any:
    """Decorator: `numba.njit` that releases the GIL and divides by zero as numpy does.

    Without a writable cache folder (a container without a home, for instance) every process
    compiles for itself.

    Parameters
    ----------
    *signatures
        Types of the arguments; compiled at the first call if there are none.
    kept : bool
        Cache on disk. Use False for functions that only compiled functions call: they become part
        of their callers, and two processes that cache several signatures of one function at the
        same time can corrupt its index.
    **options
        Passed on to `numba.njit`.
    """
    settings = {"nogil": True, "error_model": "numpy", **options}

    def decorate(function: Callable[..., Any]) -> Any:
        jit: Any = nb.njit
        try:
            return jit(*signatures, cache=kept, **settings)(function)
        except RuntimeError:
            return jit(*signatures, **settings)(function)

    return decorate
