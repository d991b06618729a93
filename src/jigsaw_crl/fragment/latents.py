"""Rows of a client to its latents, Ẑ = (X − μ) Q̂ᵀ, and which sensors carry which latent.

μ is the mean of the control rows. Columns of a data frame are found by their names; columns that
the client was not built from are left out.

The response of a sensor to a label is how far it moves when the label is raised by one standard
deviation of the control and everything downstream follows; of a label whose intervention is soft,
by one standard deviation of its own noise. Its share is the part of the sensor's variance in the
control that comes from the label's own noise. A label counts as raised in the direction in which
the sensor rises that the user named for it (`up`), or else its intervention moved it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.frozen import ReadOnlyArrays
from jigsaw_crl.base.text import did_you_mean, few

if TYPE_CHECKING:
    import pandas as pd

    from jigsaw_crl.fragment.fragment import Fragment


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

    def frame(self, labels: Sequence[str], features: Sequence[str]) -> pd.DataFrame:
        """One row per label and sensor, the sensor with the largest share first.

        Columns: label, sensor, response, unit, per ("sd" or "sd of its noise"), share, up (True for
        the sensor that the user named).
        """
        import pandas as pd  # here for start-up time

        rows = []
        for i in np.flatnonzero(~np.isnan(self.share).any(axis=1)).tolist():
            label, per = labels[i], "sd" if self.whole[i] else "sd of its noise"
            for j in np.argsort(-self.share[i], kind="stable").tolist():
                sensor, response = features[j], float(self.response[i, j])
                about = self.units.get(sensor, ""), per, self.share[i, j]
                rows.append((label, sensor, response, *about, self.up.get(label) == sensor))
        columns = ["label", "sensor", "response", "unit", "per", "share", "up"]
        return pd.DataFrame(rows, columns=columns)


def latents_of(fragment: Fragment, rows: Any) -> Any:
    """Ẑ of the rows, shape (n_rows, p); a data frame with one column per label for a data frame.

    Raises
    ------
    InputError
        The fragment has no basis, or the columns are not those of the client.
    """
    import narwhals as nw  # here for start-up time

    if fragment.basis is None:
        raise InputError(
            "the latent basis is not part of this fragment",
            "The basis stays at the client: recover the fragment there to transform rows.",
            client=fragment.client,
        )
    frame = nw.from_native(rows, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return _product(fragment, fragment.basis, rows)
    known = fragment.features
    # Numbers are pandas' own, and no names.
    if known is not None and all(isinstance(name, str) for name in frame.columns):
        _check_columns(known, frame.columns, fragment.client)
        frame = frame.select(known)
    z = _product(fragment, fragment.basis, frame.to_numpy())
    columns = dict(zip(fragment.labels, z.T, strict=True))
    out = nw.from_dict(columns, backend=frame.implementation).to_native()
    if frame.implementation.is_pandas():
        out.index = rows.index
    return out


def _product(fragment: Fragment, basis: FloatArray, rows: Any) -> FloatArray:
    """(X − μ) Q̂ᵀ of an array."""
    try:
        x = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "the rows are not numbers", "Pass numeric columns only.", client=fragment.client
        ) from None
    if x.ndim != 2 or x.shape[1] != basis.shape[1]:
        raise InputError(
            f"rows of shape {x.shape} where {basis.shape[1]} features are expected",
            "Pass the columns the client was built from, in the same order.",
            client=fragment.client,
        )
    centre = 0.0 if fragment.centre is None else fragment.centre
    return np.asarray((x - centre) @ basis.T, dtype=np.float64)


def _check_columns(known: Sequence[str], given: Sequence[str], client: str) -> None:
    """Refuse a data frame that lacks columns of the client."""
    missing = [name for name in known if name not in given]
    if missing:
        hint = did_you_mean(missing[0], [name for name in given if name not in known])
        raise InputError(
            f"columns of the client are missing: {few(missing)}",
            f"{hint} Pass the columns the client was built from: {few(known)}.".strip(),
            client=client,
        )
