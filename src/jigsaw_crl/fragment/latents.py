"""Rows of a client to its latents: Ẑ = (X − μ) Q̂ᵀ, with μ the mean of the control rows.

Columns of a data frame are compared with those that the client was built from, by name and order:
a swapped pair of columns would give other latents without a sign of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import did_you_mean, few

if TYPE_CHECKING:
    from jigsaw_crl.client.covariates import Covariates
    from jigsaw_crl.client.reduction import Reduction
    from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["in_columns", "latents_of"]


def in_columns(fragment: Fragment, reduction: Reduction | Covariates | None) -> Fragment:
    """A fragment whose basis is that of the columns, not of the directions that replaced them."""
    if reduction is None or fragment.basis is None:
        return fragment
    return replace(fragment, basis=reduction.to_columns(fragment.basis))


def latents_of(fragment: Fragment, rows: Any) -> Any:
    """Ẑ of the rows, shape (n_rows, p); a data frame with one column per label for a data frame.

    Raises
    ------
    InputError
        The fragment has no basis, or the columns are not those of the client.
    """
    # Imported here for start-up time.
    import narwhals as nw

    if fragment.basis is None:
        raise InputError(
            "the latent basis is not part of this fragment",
            "The basis stays at the client: recover the fragment there to transform rows.",
            client=fragment.client,
        )
    frame = nw.from_native(rows, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return _product(fragment, fragment.basis, rows)
    names = list(frame.columns)
    if all(isinstance(name, str) for name in names):  # numbers are pandas' own, no names
        _check_columns(fragment, names)
    z = _product(fragment, fragment.basis, frame.to_numpy())
    columns = dict(zip(fragment.labels, z.T, strict=True))
    out = nw.from_dict(columns, backend=frame.implementation).to_native()
    if frame.implementation.is_pandas():
        out.index = rows.index
    return out


def _product(fragment: Fragment, basis: FloatArray, rows: Any) -> FloatArray:
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
    if fragment.centre is not None:
        x = x - fragment.centre
    return np.asarray(x @ basis.T, dtype=np.float64)


def _check_columns(fragment: Fragment, given: list[str]) -> None:
    """Refuse columns that are not the client's features, in their order."""
    known = fragment.features
    if known is None or tuple(given) == known:
        return
    unknown = [name for name in given if name not in known]
    missing = [name for name in known if name not in given]
    if unknown:
        what = f"the client has no column {unknown[0]!r}"
        if len(unknown) > 1:
            what = f"the client has no columns {few(unknown)}"
        hint = did_you_mean(unknown[0], missing)
    elif missing:
        what, hint = f"columns are missing: {few(missing)}", ""
    else:
        what, hint = "the columns are in another order than the client's", ""
    wanted = f"Pass the columns the client was built from, in the same order: {few(known)}."
    raise InputError(what, f"{hint} {wanted}".strip(), client=fragment.client)
