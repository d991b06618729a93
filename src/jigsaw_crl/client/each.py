"""Moments of every regime of a client, computed in parallel where it pays."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from jigsaw_crl.base.threads import allowed_threads, one_thread
from jigsaw_crl.moments.regime import Moments

__all__ = ["moments_of_each"]

# With at least this many values (some hundredths of a second) regimes are summed in parallel.
PARALLEL_VALUES = 10_000_000
# Data of one regime, the regime's name, and its sample size or its batches if given.
Given = tuple[Any, str, Any]


def moments_of_each(
    compute: Callable[[Any, str, Any], Moments], given: list[Given]
) -> list[Moments]:
    """Moments of each regime, computed in parallel if there are many values."""
    workers = 1
    if sum(getattr(x, "size", 0) for x, _, _ in given) >= PARALLEL_VALUES:
        workers = min(allowed_threads(), len(given))
    if workers == 1:
        return [compute(*one) for one in given]
    with one_thread(), ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda one: compute(*one), given))
