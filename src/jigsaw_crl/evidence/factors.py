"""What one client says about its pairs: log Bayes factors."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.frozen import ReadOnlyArrays
from jigsaw_crl.evidence.hypotheses import Hypotheses
from jigsaw_crl.evidence.pooled import Pooled, unrelated
from jigsaw_crl.evidence.priors import IN_DISTRICT, PAIR_COST

__all__ = ["DECIMALS", "BayesFactors"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# Evidence is kept to four decimals: far below any decision's margin. A fragment read from a file
# then equals the one in memory, and says no more about the data than it must.
DECIMALS = 4


@dataclass(frozen=True, eq=False)
class BayesFactors(ReadOnlyArrays):
    """Log Bayes factors of one client's pairs; NaN where the client cannot say.

    Parameters
    ----------
    scales : tuple of float
        The effect scales τ.
    ancestor : array, shape (n_scales, p, p)
        `ancestor[s, a, d]`: "a is an ancestor of d, with an effect of scale τ_s" against
        "unrelated".
    district : array, shape (p, p)
        "Same district" against "unrelated"; symmetric.
    lean : array, shape (p, p), optional
        "Unrelated, but a line leans" against "unrelated" (see `priors.MISSED`); symmetric, zeros
        by default.
    single : tuple of bool, optional
        Labels whose intervention moved a single direction; none by default.
    """

    scales: tuple[float, ...]
    ancestor: FloatArray
    district: FloatArray
    lean: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    single: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        if not np.size(self.lean):
            object.__setattr__(self, "lean", np.zeros_like(self.district))
        if not self.single:
            object.__setattr__(self, "single", (False,) * len(self.district))
        for name in ("ancestor", "district", "lean"):
            value = np.round(np.array(getattr(self, name), dtype=np.float64), DECIMALS)
            value.flags.writeable = False
            object.__setattr__(self, name, value)

    @classmethod
    def of(
        cls, factors: FloatArray, hypotheses: Hypotheses, single: tuple[bool, ...]
    ) -> BayesFactors:
        """From the factors of every hypothesis, shape (n_hypotheses, p, p)."""
        (district,) = hypotheses.where("district")
        (lean,) = hypotheses.where("leaning")
        return cls(
            hypotheses.scales,
            factors[hypotheses.where("ancestor")],
            factors[district],
            factors[lean],
            single,
        )

    @property
    def own(self) -> Pooled:
        """The factors as evidence of one client, districts aside."""
        single = np.array(self.single)
        column = np.broadcast_to(single, self.district.shape)
        return Pooled(self.ancestor, self.lean, single[:, None] | single, column)

    @property
    def log_odds(self) -> FloatArray:
        """ "Row is an ancestor of column" against "unrelated", shape (p, p)."""
        return self.own.log_odds

    @property
    def district_log_odds(self) -> FloatArray:
        """ "Same district" against "unrelated", shape (p, p)."""
        own = self.own
        return self.district - unrelated(own.lean, own.in_doubt)

    def summary(self) -> FloatArray:
        """Log-odds that the row is an ancestor of the column against all else, shape (p, p).

        Each relation (either direction, same district) starts `PAIR_COST` below "unrelated",
        effect scales are averaged, and a district leaves ancestry at its prior.
        """
        inside = self.district_log_odds - PAIR_COST
        yes = self.log_odds - PAIR_COST
        with np.errstate(invalid="ignore"):  # NaN means "cannot say", and stays NaN
            for_it = np.logaddexp(yes, inside + np.log(IN_DISTRICT))
            against = np.logaddexp(np.logaddexp(0.0, yes.T), inside + np.log1p(-IN_DISTRICT))
            return np.asarray(np.round(for_it - against, DECIMALS))

    def by_district(self) -> tuple[Pooled, BoolArray]:
        """The evidence with districts averaged over, and where the client says anything.

        With prior odds FIXED : OPEN of "one of the other relations" against "same district",

            x_τ = log[FIXED e^{l_τ} + OPEN e^{l_D}] − log[FIXED + OPEN e^{l_D}] ,

        and the same for leaning. A district is a property of the pair at this client, because it
        depends on what is hidden there, so it is averaged over before clients are added up.
        """
        return Pooled.averaging_districts(self.own, self.district)
