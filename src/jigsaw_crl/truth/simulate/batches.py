"""Rows in batches whose means are offset: which regime is measured in which batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError, choose
from jigsaw_crl.moments.regime import Moments

__all__ = ["LAYOUTS", "Batches"]

LAYOUTS = {name: name for name in ("own", "apart", "crossed")}


@dataclass(frozen=True)
class Batches:
    """Batches of rows, each with an offset of its own in every feature.

    Parameters
    ----------
    offset : float
        Standard deviation of the offsets, in standard deviations of the feature in the control.
    layout : {"own", "apart", "crossed"}
        - "own": every regime has a batch of its own, with an equal share of the control rows;
        - "apart": every regime has a batch of its own without control rows, and the control rows
          are spread over `count` other batches;
        - "crossed": each of `count` batches has an equal share of every regime.
    count : int
    told : bool
        False if the learner does not know which row is in which batch.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> batches = jc.simulate.Batches(0.3, "crossed", count=4)
    >>> world = jc.simulate.setting("A", 0)
    >>> world.client(0, 1_000, batches=batches).batches
    ('b1', 'b2', 'b3', 'b4')
    """

    offset: float
    layout: str = "own"
    count: int = 12
    told: bool = True

    def __post_init__(self) -> None:
        choose(self.layout, LAYOUTS, "layout of batches")
        if not 0 <= self.offset < np.inf:
            raise InputError(f"an offset cannot be {self.offset}", "Pass a size of at least 0.")
        if self.count < 1:
            raise InputError(f"there cannot be {self.count} batches", "Pass at least 1.")

    def total(self, regimes: int) -> int:
        """Number of batches of a client with so many regimes beside the control."""
        return {"own": regimes, "apart": regimes + self.count, "crossed": self.count}[self.layout]

    def offsets(self, regimes: int, spread: FloatArray, rng: np.random.Generator) -> FloatArray:
        """One offset per batch, shape (batches, n_features)."""
        draws = rng.standard_normal((self.total(regimes), len(spread)))
        return np.asarray(self.offset * spread * draws)

    def members(self, regime: int, regimes: int) -> Sequence[int]:
        """Batches of a regime, the control being -1; its rows are spread evenly over them."""
        if self.layout == "crossed":
            return range(self.count)
        if regime >= 0:
            return (regime,)
        return range(regimes) if self.layout == "own" else range(regimes, regimes + self.count)

    @staticmethod
    def sizes(n: int, members: Sequence[int]) -> list[int]:
        """How many of n rows are in each batch."""
        return [len(part) for part in np.array_split(np.arange(n), len(members))]

    def moments(
        self, draw: Callable[[int], Moments], n: int, members: Sequence[int], offsets: FloatArray
    ) -> Moments:
        """Moments of n rows in some batches; `draw` gives those of rows without offsets."""
        found = {}
        for batch, size in zip(members, self.sizes(n, members), strict=True):
            if size:
                m = draw(size)
                mean = m.mean + offsets[batch]
                found[f"b{batch + 1}"] = Moments(size, mean, m.covariance)
        return Moments.of_batches(found) if self.told else reduce(Moments.merge, found.values())
