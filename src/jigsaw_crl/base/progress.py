"""How far a loop is: `counted` tells it, and `terminal.working` shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import TypeVar

__all__ = ["SHOWN", "counted"]

T = TypeVar("T")

# Called with the steps done and their number; None where nobody looks.
SHOWN: ContextVar[Callable[[int, int], None] | None] = ContextVar("shown", default=None)


def counted(items: Iterable[T], total: int) -> Iterator[T]:
    """The items, while the progress of the command moves with each of them.

    Examples
    --------
    >>> from jigsaw_crl.base.progress import SHOWN, counted
    >>> steps = []
    >>> token = SHOWN.set(lambda done, total: steps.append((done, total)))
    >>> list(counted("ab", 2)), steps
    (['a', 'b'], [(0, 2), (1, 2), (2, 2)])
    >>> SHOWN.reset(token)
    """
    show = SHOWN.get()
    for done, item in enumerate(items):
        if show is not None:
            show(done, total)
        yield item
    if show is not None:
        show(total, total)
