"""The threshold τ: default, validation and calibration on simulated runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from numbers import Real

import numpy as np

from jigsaw_crl.base.errors import InputError

__all__ = ["DEFAULT_TAU", "TAU_GRID", "calibrate_tau", "check_tau"]

# The value the paper recommends without calibration, and the grid it calibrates on.
DEFAULT_TAU = 0.05
TAU_GRID: tuple[float, ...] = (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.10)


def check_tau(tau: object, *, client: str | None = None) -> float:
    """τ as a float, the default for None; raises an `InputError` unless 0 < τ < 1."""
    if tau is None:
        return DEFAULT_TAU
    if isinstance(tau, bool) or not isinstance(tau, Real) or not 0.0 < float(tau) < 1.0:
        raise InputError(
            f"tau is {tau!r}",
            f"Pass a number strictly between 0 and 1; the paper recommends {DEFAULT_TAU}.",
            client=client,
        )
    return float(tau)


def calibrate_tau(
    runs: Iterable[Callable[[float], float]], grid: Sequence[float] = TAU_GRID
) -> float:
    """The τ of the grid with the highest mean score over independent runs.

    The paper's protocol uses, for each sample size, ten extra runs of data generation and
    estimation with `score = E1 − E2 − E3`.

    Parameters
    ----------
    runs : iterable of callables
        Each takes τ and returns its score on one data set; larger is better.
    grid : sequence of float
        The candidates, by default 0.01, 0.02, …, 0.10.

    Returns
    -------
    float
        The best candidate; ties go to the one nearest to the default 0.05, then to the smaller.

    Examples
    --------
    >>> from jigsaw_crl.baseline import calibrate_tau
    >>> calibrate_tau([lambda tau: -abs(tau - 0.02), lambda tau: -((tau - 0.04) ** 2)])
    0.02
    """
    candidates = [check_tau(tau) for tau in grid]
    if not candidates:
        raise InputError("the grid of tau is empty", "Pass at least one candidate.")
    scores = np.array([[float(run(tau)) for tau in candidates] for run in runs])
    if scores.size == 0:
        raise InputError("there is no run to calibrate tau on", "Pass at least one run.")
    if not np.isfinite(scores).all():
        raise InputError("a run scored nan or infinity", "Return a finite score from every run.")
    # math.fsum: means, and therefore ties, do not depend on the order of the runs.
    means = [math.fsum(column) / len(column) for column in scores.T.tolist()]
    best = max(means)
    ties = [tau for tau, mean in zip(candidates, means, strict=True) if mean == best]
    return min(ties, key=lambda tau: (round(abs(tau - DEFAULT_TAU), 12), tau))
