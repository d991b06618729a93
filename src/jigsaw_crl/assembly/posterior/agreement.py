"""Do the chains agree? Judged from their halves, and pair by pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jigsaw_crl.assembly.posterior.walk import Words
from jigsaw_crl.assembly.verdict import disputed
from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.frozen import CLOSED
from jigsaw_crl.base.text import pluralise

__all__ = ["Convergence", "Record", "split_r_hat"]

# Chains agree when split-R̂ of the score is below R_HAT and the standard error of every probability
# is below ERROR, which is too small to move a probability across both thresholds of a verdict.
R_HAT, ERROR = 1.05, 0.03
# Least variance of the score within a half. Halves that each stay at one order differ by nothing
# that matters if their scores differ by less than its root, and R̂ stays finite if by more.
FLAT = 1e-3
# Share of the pairs that may have a larger error, or be disputed and so undetermined: of up to 31
# labels none.
MOST_UNSURE = 0.001


@dataclass(frozen=True)
class Convergence:
    """Whether the chains agree, and how long they ran.

    Parameters
    ----------
    converged : bool
    r_hat : float
        Split-R̂ of the log posterior over the chains' halves; 1 when they agree.
    worst_error : float
        Largest standard error of a pair's probability, from the spread between half-chains;
        disputed pairs do not count.
    sweeps : int
        Recorded sweeps per chain.
    chains : int
        0 if all orders were weighed.
    disputed : tuple of (int, int)
        Pairs that one chain would decide and another would not. They are undetermined.
    """

    __pydantic_config__: ClassVar = CLOSED

    converged: bool
    r_hat: float
    worst_error: float
    sweeps: int
    chains: int
    disputed: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        pairs = tuple((int(a), int(d)) for a, d in self.disputed)
        object.__setattr__(self, "disputed", pairs)

    def __str__(self) -> str:
        if self.chains == 0:
            return "all orders were weighed"
        what = "agree" if self.converged else "do not agree yet"
        apart = ""
        if self.disputed:
            pairs = pluralise(len(self.disputed), "pair")
            apart = f" except on {pairs}" if self.converged else f", on {pairs} in particular"
        return (
            f"{self.chains} chains of {self.sweeps} sweeps {what}{apart} (split-R̂ "
            f"{self.r_hat:.3f}, largest error of a probability {self.worst_error:.3f})"
        )


@dataclass(frozen=True, eq=False)
class Record:
    """What the halves of every chain say; the second half is as long as the first.

    Parameters
    ----------
    traces : array, shape (halves, n_chains, sweeps)
        The score after each sweep.
    means : array, shape (halves, n_chains, p, p)
        Share of the sweeps in which the order had each pair.
    orders : array of uint64, shape (halves, n_chains, n, p, words)
        Some of the orders as bit sets, evenly spaced.
    """

    traces: FloatArray
    means: FloatArray
    orders: Words

    def mean(self) -> FloatArray:
        """Probability of every pair."""
        return np.asarray(self.means.mean(axis=(0, 1)))

    def alone(self) -> FloatArray:
        """The same from each chain, shape (n_chains, p, p)."""
        return np.asarray(self.means.mean(axis=0))

    def then(self, more: Record) -> Record:
        """This record as the first half, and as many further sweeps as the second one."""
        both = np.concatenate(list(self.orders), axis=1)
        spaced = np.linspace(0, both.shape[1] - 1, more.orders.shape[2]).astype(int)
        return Record(
            np.stack([np.concatenate(list(self.traces), axis=1), more.traces[0]]),
            np.stack([self.alone(), more.means[0]]),
            np.stack([both[:, spaced], more.orders[0]]),
        )

    def convergence(self) -> Convergence:
        """Do the chains agree?"""
        halves, chains, sweeps = self.traces.shape
        mean, n = self.mean(), halves * chains
        spread = sum((m - mean) ** 2 for half in self.means for m in half) / (n - 1)
        error = np.sqrt(spread / n)
        alone = self.alone()
        apart = disputed(alone.min(axis=0), alone.max(axis=0))
        unsure = apart | (error > ERROR)
        r_hat = split_r_hat(self.traces.reshape(n, sweeps))
        agreed = r_hat <= R_HAT and unsure.sum() <= MOST_UNSURE * unsure.size
        pairs = tuple((int(a), int(d)) for a, d in np.argwhere(apart))
        worst = float(np.max(error[~apart], initial=0.0))
        return Convergence(bool(agreed), r_hat, worst, halves * sweeps, chains, pairs)


def split_r_hat(traces: FloatArray) -> float:
    """Potential scale reduction of the chains' halves, shape (n, sweeps)."""
    within = max(float(traces.var(axis=1).mean()), FLAT)
    return float(np.sqrt((within + float(traces.mean(axis=1).var(ddof=1))) / within))
