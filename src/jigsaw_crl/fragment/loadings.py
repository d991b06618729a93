"""Which sensors carry which latent; it stays at the site that owns the columns.

The response of a sensor to a label is how far it moves when the label is raised by one standard
deviation of the control and everything downstream follows; of a label whose intervention is soft,
by one standard deviation of its own noise. Its share is the part of the sensor's variance in the
control that comes from the label's own noise. A label counts as raised in the direction in which
the sensor rises that the user named for it (`up`), or else its intervention moved it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.frozen import ReadOnlyArrays

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Loadings"]


@dataclass(frozen=True, eq=False)
class Loadings(ReadOnlyArrays):
    """Responses of the sensors of one client to its labels.

    Parameters
    ----------
    response, share : array, shape (p, n_features)
        NaN for labels whose direction is not known.
    whole : tuple of bool
        Is the response that to one standard deviation of the label, not of its noise?
    up : mapping of str to str
        The sensor that the user named for a label.
    units : mapping of str to str
        Units of sensors.
    """

    response: FloatArray
    share: FloatArray
    whole: tuple[bool, ...]
    up: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._copy_read_only("response", "share")

    def frame(self, labels: Sequence[str], features: Sequence[str]) -> pd.DataFrame:
        """One row per label and sensor, the sensor with the largest share first.

        Columns: label, sensor, response, unit, per ("sd" or "sd of its noise"), share, up (True for
        the sensor that the user named).
        """
        import pandas as pd  # here for start-up time

        rows = []
        for i in np.flatnonzero(~np.isnan(self.share).any(axis=1)).tolist():
            for j in np.argsort(-self.share[i], kind="stable").tolist():
                sensor, per = features[j], "sd" if self.whole[i] else "sd of its noise"
                named = self.up.get(labels[i]) == sensor
                unit, response = self.units.get(sensor, ""), float(self.response[i, j])
                rows.append((labels[i], sensor, response, unit, per, self.share[i, j], named))
        columns = ["label", "sensor", "response", "unit", "per", "share", "up"]
        return pd.DataFrame(rows, columns=columns)
