"""How probable each pair is, and orders drawn with exactly these probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jigsaw_crl.assembly.posterior.agreement import Convergence
from jigsaw_crl.assembly.posterior.walk import Words
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray

__all__ = ["Posterior"]


@dataclass(frozen=True, eq=False)
class Posterior:
    """The probability of every ordered pair, and the orders that it is the frequency in.

    Of a few labels all orders are weighed, and both are exact. Otherwise the probabilities come
    from all sweeps of several chains, and the orders are some of those sweeps, evenly spaced.

    Parameters
    ----------
    probability : array, shape (p, p)
    chains : array, shape (n_chains, p, p)
        The same from each chain alone.
    convergence : Convergence
    orders : array of uint64, shape (n, p, words), or of bool, shape (n, p, p)
        Descendants of each label, as bit sets if they were sampled; the labels in the order of
        `listed`.
    listed : array of int, shape (p,)
    shares : array, shape (n,), or None
        Probability of each of the orders, if they are not all equal.
    """

    probability: FloatArray
    chains: FloatArray
    convergence: Convergence
    orders: Words | BoolArray
    listed: IntArray
    shares: FloatArray | None = None

    def sample(self, n: int, *, seed: int | Sequence[int] = 0) -> list[BoolArray]:
        """`n` orders drawn at random, shape (p, p) each; none twice while there are others left."""
        rng = np.random.default_rng(seed)
        total = len(self.orders)
        if self.shares is not None:
            return [self.order(k) for k in rng.choice(total, size=n, p=self.shares).tolist()]
        turns = [rng.permutation(total) for _ in range(-(-n // total))]
        return [self.order(k) for turn in turns for k in turn.tolist()][:n]

    def order(self, k: int) -> BoolArray:
        """One of the orders, shape (p, p)."""
        if self.orders.dtype == bool:
            return np.array(self.orders[k])
        # Imported here because it loads the compiler.
        from jigsaw_crl.base.bitsets import unpack

        p = len(self.listed)
        out = np.zeros((p, p), dtype=bool)
        out[np.ix_(self.listed, self.listed)] = unpack(self.orders[k], p)
        return out
