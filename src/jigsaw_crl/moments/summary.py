"""Moments of some rows as plain numbers, and how those of two sets of rows are merged."""

from __future__ import annotations

from typing import NamedTuple, Protocol, Self, TypeVar

import numpy as np

from jigsaw_crl.base.arrays import FloatArray

__all__ = ["MOST_PARTS", "Summary", "coarsened"]

# Eight stretches show a trend or a jump, and cost eight matrices.
MOST_PARTS = 8


class Summary(NamedTuple):
    """Size, mean, covariance (divisor n), third and fourth central moments of some rows."""

    n: int
    mean: FloatArray
    covariance: FloatArray
    third: FloatArray | None
    fourth: FloatArray | None

    def read_only(self) -> Summary:
        """The same, its arrays made read-only, so that they need not be copied."""
        for array in self[1:]:
            if isinstance(array, np.ndarray):
                array.flags.writeable = False
        return self

    def merge(self, other: Summary) -> Summary:
        """Summary of both sets of rows together; higher moments only where both have them."""
        n = self.n + other.n
        here, there = self.n / n, other.n / n
        both = here * there
        shift = other.mean - self.mean
        mean = self.mean + there * shift
        covariance = here * self.covariance + there * other.covariance
        covariance += both * np.outer(shift, shift)
        if self.third is None or other.third is None or self.fourth is None or other.fourth is None:
            return Summary(n, mean, covariance, None, None)
        var_a, var_b = np.diagonal(self.covariance), np.diagonal(other.covariance)
        third = here * self.third + there * other.third + both * (here - there) * shift**3
        third += 3 * both * shift * (var_b - var_a)
        fourth = here * self.fourth + there * other.fourth
        fourth += both * (here**2 - both + there**2) * shift**4
        fourth += 6 * both * shift**2 * (here * var_b + there * var_a)
        fourth += 4 * both * shift * (other.third - self.third)
        return Summary(n, mean, covariance, third, fourth)


class _Mergeable(Protocol):
    def merge(self, other: Self, /) -> Self: ...


_M = TypeVar("_M", bound=_Mergeable)


def coarsened(parts: tuple[_M, ...], most: int = MOST_PARTS) -> tuple[_M, ...]:
    """Merge neighbouring parts in pairs until at most `most` are left."""
    while len(parts) > most:
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        parts = tuple(p[0] if len(p) == 1 else p[0].merge(p[1]) for p in pairs)
    return parts
