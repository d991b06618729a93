"""Moments of the rows of one regime in memory, with what a user says about them.

Each row may belong to a batch and to a group; rows may be trimmed, and may have missing values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import IntArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.client.checks import LabelData, by_matrix, in_order
from jigsaw_crl.moments.accumulator import Accumulator
from jigsaw_crl.moments.checks import check_rows, check_values
from jigsaw_crl.moments.regime import Moments
from jigsaw_crl.moments.row_options import RowOptions

__all__ = ["RowNames", "coded_names", "moments_of_given", "names_beside"]

# Batches or groups of the rows of one regime: one for each row, or one for all; a list of these for
# a label with several matrices.
RowNames = Any
# Names of batches or groups, and the code of each row.
_Coded = tuple[list[str], IntArray]


def names_beside(
    name: str,
    batch: Mapping[str, RowNames] | None,
    group: Mapping[str, RowNames] | None,
    interventions: Mapping[str, LabelData],
    control_name: str,
) -> dict[str, list[tuple[RowNames, RowNames]]]:
    """The batches and the groups of the rows of each matrix of each regime."""

    def of(given: Mapping[str, RowNames] | None, what: str) -> dict[str, list[RowNames]]:
        lacking = {} if given is not None else {"default": None}
        return by_matrix(
            {} if given is None else given, interventions, control_name, _is_one,
            client=name, what=what, each=f"the {what} of each of its rows", **lacking,
        )  # fmt: skip

    batches, groups = of(batch, "batch"), of(group, "group")
    return {r: list(zip(batches[r], groups[r], strict=True)) for r in batches}


def _is_one(names: RowNames, count: int) -> bool:
    """Are these the names of the rows of one matrix, or one name for all?"""
    return count == 1 or isinstance(names, str) or not isinstance(names, Iterable)


def moments_of_given(
    client: str,
    control: str,
    features: Sequence[str] | None,
    options: RowOptions,
    rank: int,
    rows: Any,
    regime: str,
    beside: tuple[RowNames, RowNames],
) -> Moments:
    """Moments of a matrix of rows as a user passes it; `beside` are its batches and groups."""
    rows = in_order(rows, features, client=client, regime=regime)
    x = check_rows(rows, client=client, regime=regime)
    try:
        return _moments_of_rows(x, options, rank, *beside, is_control=regime == control)
    except InputError as error:
        raise error.located(client=client, regime=regime) from None


def _moments_of_rows(
    x: npt.NDArray[np.generic],
    options: RowOptions,
    rank: int,
    batches: RowNames | None,
    groups: RowNames | None,
    *,
    is_control: bool,
) -> Moments:
    """Moments of rows of shape (n, d); batches and groups are of each row, or of all."""
    own = coded_names(batches, len(x), "batch", "batches")
    grouped = coded_names(groups, len(x), "group", "groups")
    if options.missing == "drop" and x.dtype.kind == "f":
        whole = ~np.isnan(x).any(axis=1)
        if not whole.any():
            raise InputError(
                f"none of its {pluralise(len(x), 'row')} is complete",
                'Use the values that are there with missing="em", or leave features out.',
            )
        if not whole.all():
            x = x[whole]
            own, grouped = (c and (c[0], c[1][whole]) for c in (own, grouped))
    if not options.holds:
        # All bad values are counted, in whatever block they are.
        check_values(x)

    def of(some: Any) -> Moments:
        found = Accumulator(x.shape[1], options, control=is_control)
        found.add(x[some], grouped and (grouped[0], grouped[1][some]))
        return found.moments(rank)

    if own is None:
        return of(slice(None))
    names, codes = own
    found = {b: codes == i for i, b in enumerate(names)}
    return Moments.of_batches({b: of(here) for b, here in found.items() if here.any()})


def coded_names(values: RowNames | None, n: int, what: str, plural: str) -> _Coded | None:
    """The names of batches or groups, and the code of each of n rows."""
    if values is None:
        return None
    if isinstance(values, str | int | np.integer):
        return [str(values)], np.zeros(n, dtype=np.intp)
    listed = np.asarray(values).tolist()
    if not isinstance(listed, list) or len(listed) != n or any(isinstance(v, list) for v in listed):
        raise InputError(
            f"{plural} of shape {np.shape(values)} for {pluralise(n, 'row')}",
            f"Give every row its {what}.",
        )
    for row, value in enumerate(listed, start=1):
        if value is None or value != value or not str(value).strip():
            raise InputError(f"row {row} has no {what}", f"Give every row its {what}.")
    names, codes = np.unique(np.array([str(v) for v in listed]), return_inverse=True)
    return names.tolist(), codes
