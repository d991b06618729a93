"""The scikit-learn estimator of one client: rows and regimes in, latent coordinates out."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from jigsaw_crl.base.arrays import AnyArray, FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.client.checks import Kinds
from jigsaw_crl.client.client import CONTROL, Client
from jigsaw_crl.pipeline import Options, recover_clients
from jigsaw_crl.study.folder import Study

__all__ = ["BlockRecovery"]


class BlockRecovery(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Recover one client's blocks, and map its rows to the latents.

    Parameters
    ----------
    control : str or number, default="control"
        Value of `y` on observational rows. By default, if regimes are numbers, the smallest is
        taken (by custom 0).
    method : {"null-cone", "paper"}, default="null-cone"
    tau : float, optional
        Tolerance of ``method="paper"``.
    n_latent : int, optional
        Latents the client accesses; by default estimated, at least the number of labels.
    unfit : {"warn", "raise"}, default="warn"
        What to do with data that the checks refuse, for instance because no regime differs from
        the control: fit with a warning, as scikit-learn's estimators do, or raise.
    client : str, default="client"
        The client's name, which its fragment carries into an order.
    interventions : {"soft", "hard"} or mapping of label to one of these, optional
        Which interventions are hard: see `Client.with_interventions`. `transform` then gives the
        latents of hard labels themselves, with standard deviation 1 in the control.

    Attributes
    ----------
    fragment_ : Fragment
        The client's fragment.
    labels_ : tuple of str
        Intervention labels, the rows of `components_`.
    blocks_ : tuple of frozenset of str
    districts_ : tuple of frozenset of str, or None
    components_ : array, shape (n_labels, n_features)
        Q̂; ``transform(X)`` is ``(X - mean_) @ components_.T``.
    mean_ : array, shape (n_features,)
        Mean of the control rows.
    control_ : str or number
        The value of `y` that was taken as the control.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if `X` has named columns.

    Examples
    --------
    >>> import numpy as np
    >>> import jigsaw_crl as jc
    >>> control, regimes = jc.simulate.setting("A", 0).rows(0, 2000)
    >>> X = np.vstack([control, *regimes.values()])
    >>> y = np.repeat(["control", *regimes], 2000)
    >>> model = jc.BlockRecovery(control="control").fit(X, y)
    >>> model.transform(X).shape == (len(X), len(regimes))
    True
    """

    def __init__(
        self,
        control: Any = CONTROL,
        *,
        method: Literal["null-cone", "paper"] = "null-cone",
        tau: float | None = None,
        n_latent: int | None = None,
        unfit: Literal["warn", "raise"] = "warn",
        client: str = "client",
        interventions: Kinds | None = None,
    ) -> None:
        self.control = control
        self.method = method
        self.tau = tau
        self.n_latent = n_latent
        self.unfit = unfit
        self.client = client
        self.interventions = interventions

    def fit(self, X: Any, y: Any) -> BlockRecovery:
        """Recover the client whose rows are `X`.

        Parameters
        ----------
        X : array, shape (n_rows, n_features)
        y : array, shape (n_rows,)
            The regime of each row.
        """
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2)
        check_classification_targets(y)
        self.control_ = self._control_among(y)
        names = getattr(self, "feature_names_in_", None)
        interventions = {str(v): X[y == v] for v in np.unique(y) if v != self.control_}
        client = Client.from_samples(
            self.client,
            observational=X[y == self.control_],
            interventions=interventions,
            n_latent=self.n_latent,
            features=None if names is None else list(names),
            control_name=str(self.control_),
        )
        options = Options(method=self.method, tau=self.tau, interventions=self.interventions)
        with ExitStack() as quiet:

            def refused(refusal: InputError) -> None:
                if self.unfit == "raise":
                    raise refusal
                warnings.warn(f"the data are not fit for recovery: {refusal}", stacklevel=4)
                # Regimes without signal give NaN, and NumPy need not warn of each.
                quiet.enter_context(np.errstate(all="ignore"))

            study = Study(self.client, (client,))
            ((recovered,), _) = recover_clients(study, options, basis=True, refused=refused)
        self.fragment_ = recovered.fragment
        self.labels_ = self.fragment_.labels
        self.blocks_ = self.fragment_.blocks
        self.districts_ = self.fragment_.districts
        if self.fragment_.basis is None:
            raise InputError(
                f"no latent basis was found ({self.fragment_.outcome})", "See the outcome's remedy."
            )
        self.components_ = np.asarray(self.fragment_.basis)
        self.mean_ = np.array(client.centre)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Ẑ = (X − μ) Q̂ᵀ, shape (n_rows, n_labels), μ the mean of the control rows.

        Data frames must have the columns of `fit` in the same order. For a data frame with one
        column per label, use ``set_output(transform="pandas")``.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return np.asarray((X - self.mean_.astype(X.dtype)) @ self.components_.T.astype(X.dtype))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """The labels, one for each column of Ẑ."""
        del input_features
        check_is_fitted(self)
        return np.asarray(self.labels_, dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _control_among(self, y: AnyArray) -> Any:
        values = np.unique(y)
        matches = [v for v in values if v == self.control]
        if matches:
            return matches[0]
        if self.control == CONTROL and values.dtype.kind in "iufb" and len(values) > 1:
            return values[0]
        shown = ", ".join(str(v) for v in values[:6])
        raise InputError(
            f"no row is in the control regime {self.control!r} (y has {shown})",
            "Pass the value of y on observational rows as control=…",
        )
