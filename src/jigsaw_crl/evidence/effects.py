"""What one client says about the size of effects.

`Sizes` is a table of estimates with their errors, for every ordered pair of labels. A client has up
to three of them: total effects and what interventions did as applied, both from hard interventions
(T8), and, from any intervention, how much of what changed in the descendant's equation belongs to
the ancestor, which bounds the effect that a "no" leaves open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.frozen import ReadOnlyArrays

if TYPE_CHECKING:
    import pandas as pd

# What the number of an effect is. In a system that is not linear it depends on the dose.
TOTAL, AT_DOSE = "total effect", "average effect at this dose"

# Half of a 95 % interval in standard errors.
INTERVAL = 1.959964


@dataclass(frozen=True, eq=False)
class Sizes(ReadOnlyArrays):
    """Estimates for ordered pairs, rows the ancestor (cause), columns the descendant (effect).

    Parameters
    ----------
    value, error : array, shape (p, p)
        Estimate and standard error; NaN where the client cannot say, error 0 for exact moments.
    """

    value: FloatArray
    error: FloatArray

    def __post_init__(self) -> None:
        # A fragment says no more about the data than it must, and equals the one in its file: the
        # digits are those that the errors justify, a twentieth of an error. Exact values (error 0)
        # keep twelve.
        value, error = np.asarray(self.value, float), np.asarray(self.error, float)
        kept = error
        # Rounding may take an error to a power of ten, which justifies one digit less: rounding
        # what is rounded must change nothing.
        for _ in range(2):
            with np.errstate(divide="ignore", invalid="ignore"):
                digits = np.where(kept > 0, np.ceil(np.log10(20.0 / kept) - 1e-9), 12.0)
            step = 10.0 ** -np.clip(np.nan_to_num(digits, nan=12.0), 0.0, 12.0)
            kept = (np.round(error / step) * step).round(12)
        object.__setattr__(self, "value", (np.round(value / step) * step).round(12))
        object.__setattr__(self, "error", kept)
        self._copy_read_only("value", "error")

    @property
    def known(self) -> BoolArray:
        """Pairs with an estimate."""
        return np.asarray(~np.isnan(self.value))


@dataclass(frozen=True, eq=False)
class Effects(ReadOnlyArrays):
    """Effects that a client's hard interventions reveal."""

    hard: tuple[bool, ...]  # as declared
    # 1 if a shift of the mean shows in which direction a label's own intervention moved it, else 0.
    # A latent counts as growing in that direction, or as `up` says; otherwise in the one in which
    # the sensor rises that carries most of it.
    moved: tuple[int, ...]
    # Total effect of the row on the column, in standard deviations of both in the control.
    total: Sizes
    # What the row's intervention, as it was applied, did to the column, in standard deviations of
    # the column in the control. The diagonal has the doses, where they are known.
    applied: Sizes
    # Labels whose direction is that in which a sensor that the user named rises: 1, or −1 if the
    # label's own intervention moved it the other way; 0 for all others. Empty if none is named.
    up: tuple[int, ...] = ()

    def without(self, labels: BoolArray) -> Effects:
        """The same, with the interventions on some labels (a mask) counted as soft."""
        hard = np.array(self.hard) & ~labels
        total, applied = (
            Sizes(*(np.where(keep, x, np.nan) for x in (sizes.value, sizes.error)))
            for sizes, keep in (
                (self.total, hard & hard[:, None]),
                (self.applied, np.broadcast_to(hard, self.total.value.shape)),
            )
        )
        return Effects(tuple(hard.tolist()), self.moved, total, applied, self.up)

    def frame(self, labels: tuple[str, ...]) -> pd.DataFrame:
        """Total effects as a table with the columns of `Result.effects`; see `Fragment.effects`.

        Where there are none because the system is not linear, what interventions did as applied.
        """
        import pandas as pd  # here for start-up time

        at_dose = not self.total.known.any()
        sizes = self.applied if at_dose else self.total
        a, d = np.nonzero(sizes.known & ~np.eye(len(labels), dtype=bool))
        value, error = sizes.value[a, d], sizes.error[a, d]
        names = np.array(labels, dtype=object)
        clear = np.abs(value) > np.maximum(4.0 * error, 1e-6)
        none = (error == 0) & ~clear
        return pd.DataFrame(
            {
                "cause": names[a],
                "effect": names[d],
                "total": value,
                "standard_error": error,
                "low": value - INTERVAL * error,
                "high": value + INTERVAL * error,
                "sites": 1,
                "heterogeneity_p": np.nan,
                "verdict": np.where(
                    clear, "ancestor", np.where(none, "not ancestor", "undetermined")
                ),
                "kind": AT_DOSE if at_dose else TOTAL,
            }
        )
