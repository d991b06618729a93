"""What several clients say together about every pair.

Some unknowns belong to a client (are i and j in one district there?) and are averaged over at each
client. Others belong to the pair or to a target, and are the same at all clients: the scale of an
effect, and whether a target's second direction was missed. Clients are therefore added up for each
scale and for leaning, and these unknowns are averaged over once, after pooling.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jigsaw_crl.evidence.priors import FIXED, MISSED, OPEN

__all__ = ["Pooled", "unrelated"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
CountArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Pooled:
    """Log Bayes factors against "unrelated", of one client or summed over several.

    Parameters
    ----------
    ancestor : array, shape (n_scales, p, p)
        "Row is an ancestor of column", for each effect scale.
    lean : array, shape (p, p)
        "Unrelated, but a line leans".
    in_doubt : array of int or bool, shape (p, p)
        Number of clients at which a target of the pair shows a single direction.
    single : array of int or bool, shape (p, p)
        The same for the column's target alone.
    """

    ancestor: FloatArray
    lean: FloatArray
    in_doubt: CountArray | BoolArray
    single: CountArray | BoolArray

    @classmethod
    def zero(cls, n_scales: int, p: int) -> Pooled:
        """No evidence about p labels."""
        counts = np.zeros((p, p), dtype=np.int32)
        return cls(np.zeros((n_scales, p, p)), np.zeros((p, p)), counts, counts.copy())

    @classmethod
    def averaging_districts(cls, own: Pooled, district: FloatArray) -> tuple[Pooled, BoolArray]:
        """See `BayesFactors.by_district`."""
        silent = np.asarray(np.isnan(own.ancestor).any(axis=0), dtype=np.bool_)
        np.fill_diagonal(silent, True)
        # A client that cannot speak of districts has none to allow for.
        open_ = np.log(OPEN) + np.where(np.isnan(district), -np.inf, district)

        def averaged(factor: FloatArray) -> FloatArray:
            fixed = np.log(FIXED) + np.nan_to_num(factor, nan=0.0)
            x = np.logaddexp(fixed, open_) - np.logaddexp(np.log(FIXED), open_)
            return np.where(silent, 0.0, x)

        evidence = cls(
            averaged(own.ancestor), averaged(own.lean), own.in_doubt & ~silent, own.single & ~silent
        )
        return evidence, ~silent

    @classmethod
    def sum(cls, n_scales: int, p: int, parts: Iterable[tuple[float, IntArray, Pooled]]) -> Pooled:
        """Weighted sum over clients: (weight, positions of its labels, evidence) each."""
        total = cls.zero(n_scales, p)
        for weight, members, evidence in parts:
            total._add(members, evidence, weight)
        return total

    def minus(self, parts: Iterable[tuple[float, IntArray, Pooled]]) -> Pooled:
        """The sum without some of its parts."""
        rest = self + Pooled.zero(*self.ancestor.shape[:2])
        for weight, members, evidence in parts:
            rest._add(members, evidence, weight, sign=-1)
        return rest

    def _add(self, members: IntArray, evidence: Pooled, weight: float, sign: int = 1) -> None:
        if weight == 0.0:
            return
        grid = members[:, None], members[None, :]
        self.ancestor[:, grid[0], grid[1]] += sign * weight * evidence.ancestor
        self.lean[grid] += sign * weight * evidence.lean
        self.in_doubt[grid] += sign * evidence.in_doubt.astype(np.int32)
        self.single[grid] += sign * evidence.single.astype(np.int32)

    def __add__(self, other: Pooled) -> Pooled:
        """Evidence of both, about the same labels."""
        return Pooled(
            self.ancestor + other.ancestor,
            self.lean + other.lean,
            self.in_doubt.astype(np.int32) + other.in_doubt.astype(np.int32),
            self.single.astype(np.int32) + other.single.astype(np.int32),
        )

    def of(self, members: IntArray) -> Pooled:
        """The evidence about some labels, in that order."""
        grid = np.ix_(members, members)
        return Pooled(
            np.ascontiguousarray(self.ancestor[:, members[:, None], members[None, :]]),
            self.lean[grid],
            self.in_doubt[grid],
            self.single[grid],
        )

    def at_scales(self, n_scales: int) -> Pooled:
        """The same log-odds at every one of `n_scales` scales, for pooling with other clients."""
        flat = np.broadcast_to(self.log_odds, (n_scales, *self.lean.shape)).copy()
        nothing = Pooled.zero(0, len(self.lean))
        return Pooled(flat, nothing.lean, nothing.in_doubt, nothing.single)

    @property
    def log_odds(self) -> FloatArray:
        """ "Row is an ancestor of column" against "unrelated", shape (p, p); NaN stays NaN.

        With `A = log mean_τ e^{l_τ}` and m = MISSED where a target is in doubt (0 elsewhere),

            log[(1 − m) e^A + m e^{max(A, lean)}] − log[(1 − m) + m e^lean] ,

        plus log m where the column shows a single direction. An ancestor's line can lean as well:
        what a lean explains counts neither for nor against.
        """
        with np.errstate(invalid="ignore"):
            mean = np.logaddexp.reduce(self.ancestor, axis=0) - np.log(len(self.ancestor))
        mean = _leaning_or_not(mean, np.fmax(mean, self.lean), self.in_doubt)
        return np.asarray(
            mean - unrelated(self.lean, self.in_doubt) + np.log(MISSED) * (self.single > 0)
        )


def unrelated(lean: FloatArray, in_doubt: CountArray | BoolArray) -> FloatArray:
    """Log weight of "unrelated", leaning or not, against "unrelated" and not leaning."""
    return _leaning_or_not(np.zeros_like(lean), lean, in_doubt)


def _leaning_or_not(
    plain: FloatArray, leaning: FloatArray, in_doubt: CountArray | BoolArray
) -> FloatArray:
    """`log[(1 − m) e^plain + m e^leaning]` with m = MISSED where in doubt; NaN in plain stays."""
    with np.errstate(invalid="ignore"):
        mixed = np.logaddexp(plain + np.log(1.0 - MISSED), np.nan_to_num(leaning) + np.log(MISSED))
    return np.asarray(np.where(in_doubt > 0, mixed, plain))
