"""Work that runs at once, and limits on the threads of linear algebra.

The matrices are small or many, so clients run in parallel, not parts of a product.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import scipy.linalg  # noqa: F401 (loads a BLAS of its own, which the controller must find)
from threadpoolctl import ThreadpoolController

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.terminal import counted


@cache
def _libraries() -> Any:
    """The BLAS libraries of this process; finding them takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


def in_parallel(n_jobs: int, function: Any, arguments: list[tuple[Any, ...]]) -> list[Any]:
    """`function` of every tuple of arguments, in their order.

    Linear algebra runs in one thread here and in every worker: clients are what runs at once, so
    threads would only compete, and sums split between threads differ in their last digit. An
    `InputError` is raised unless `n_jobs` is a whole number above 0, or −1 (one job per core).
    """
    if type(n_jobs) is not int or not (n_jobs > 0 or n_jobs == -1):
        raise InputError(f"n_jobs is {n_jobs!r}", "Pass a number of jobs, or -1 for all cores.")
    if n_jobs == 1 or len(arguments) < 2:
        with _libraries().limit(limits=1):
            return [function(*a) for a in counted(arguments, len(arguments))]
    # Imported here for start-up time: most runs use one process.
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend="loky", inner_max_num_threads=1):
        results = Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(function)(*a) for a in arguments
        )
        return list(counted(results, len(arguments)))
