"""Do the chains agree? Judged from their halves, and pair by pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jigsaw_crl.assembly.posterior.walk import Words
from jigsaw_crl.assembly.verdict import CERTAIN_NO, CERTAIN_YES, EACH_NO, EACH_YES
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.frozen import CLOSED
from jigsaw_crl.base.text import pluralise

__all__ = ["Convergence", "Halves"]

# Chains agree when split-R̂ of the score is below R_HAT and the standard error of every probability
# is below ERROR, which is too small to move a probability across both thresholds of a verdict.
R_HAT, ERROR = 1.05, 0.03
# Least variance of the score within a half. Halves that each stay at one order differ by nothing
# that matters if their scores differ by less than its root, and R̂ stays finite if by more.
FLAT = 1e-3
# Of many labels, the pairs on which chains differ are set aside instead. The others agree if there
# are few of those: at most this share of the pairs that have evidence.
MOST_DISPUTED = 0.001


@dataclass(frozen=True)
class Convergence:
    """Whether the chains agree, and how long they ran.

    Parameters
    ----------
    converged : bool
    r_hat : float
        Split-R̂ of the log posterior over the chains' halves; 1 when they agree.
    worst_error : float
        Largest standard error of a pair's probability, from the spread between half-chains. Of many
        labels only pairs count that have evidence and are not disputed.
    sweeps : int
        Recorded sweeps per chain.
    chains : int
        0 if all orders were weighed.
    disputed : tuple of (int, int)
        Of many labels: pairs with evidence that one chain would decide and another would not. They
        are undetermined.
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
class Halves:
    """What two halves of every chain say: the first halves of all chains, then the second ones.

    Parameters
    ----------
    traces : list of array, shape (sweeps,)
        The score after each sweep.
    means : list of array, shape (p, p)
        Share of the sweeps in which the order had each pair.
    orders : list of array of uint64, shape (n, p, words)
        Some of the orders as bit sets, evenly spaced.
    """

    traces: list[FloatArray]
    means: list[FloatArray]
    orders: list[Words]

    def mean(self) -> FloatArray:
        """Probability of every pair."""
        return sum(self.means[1:], self.means[0]) / len(self.means)

    def alone(self) -> FloatArray:
        """The same from each chain, shape (n_chains, p, p)."""
        n = len(self.means) // 2
        return np.array([(self.means[k] + self.means[k + n]) / 2 for k in range(n)])

    def kept(self) -> Words:
        """All the orders, shape (n, p, words)."""
        return np.concatenate(self.orders)

    def then(self, more: Halves) -> Halves:
        """These halves as the first, and as many further sweeps of every chain as the second."""
        n = len(more.means)
        pairs = list(zip(self.orders[:n], self.orders[n:], strict=True))
        spaced = np.linspace(0, 2 * len(self.orders[0]) - 1, len(more.orders[0])).astype(int)
        return Halves(
            [np.concatenate(both) for both in zip(self.traces[:n], self.traces[n:], strict=True)]
            + more.traces,
            [*self.alone(), *more.means],
            [np.concatenate(both)[spaced] for both in pairs] + more.orders,
        )

    def error(self) -> FloatArray:
        """Standard error of every probability."""
        mean = self.mean()
        spread = sum((m - mean) ** 2 for m in self.means) / (len(self.means) - 1)
        return np.asarray(np.sqrt(spread / len(self.means)))

    def convergence(self, judged: BoolArray | None) -> Convergence:
        """Do the chains agree: on all pairs, or of many labels on those that are judged?"""
        r_hat, error = split_r_hat(self.traces), self.error()
        sweeps, chains = 2 * len(self.traces[0]), len(self.means) // 2
        if judged is None:
            worst = float(np.max(error, initial=0.0))
            agreed = r_hat <= R_HAT and worst <= ERROR
            return Convergence(agreed, r_hat, worst, sweeps, chains)
        disputed = judged & _disputed(self.alone())
        worst = float(np.max(error[judged & ~disputed], initial=0.0))
        few = int(disputed.sum()) <= MOST_DISPUTED * int(judged.sum())
        pairs = tuple((int(a), int(d)) for a, d in np.argwhere(disputed))
        return Convergence(r_hat <= R_HAT and few, r_hat, worst, sweeps, chains, pairs)


def _disputed(alone: FloatArray) -> BoolArray:
    """Pairs that one chain would decide, and another one not even nearly."""
    least, most = alone.min(axis=0), alone.max(axis=0)
    yes, no = (most > CERTAIN_YES) & (least < EACH_YES), (least < CERTAIN_NO) & (most > EACH_NO)
    return np.asarray(yes | no)


def split_r_hat(traces: list[FloatArray]) -> float:
    """Potential scale reduction of equally long sequences (the chains' halves)."""
    means = np.array([t.mean() for t in traces])
    within = max(float(np.mean([t.var() for t in traces])), FLAT)
    return float(np.sqrt((within + float(means.var(ddof=1))) / within))
