"""One client: a control regime and labelled interventional regimes, as moments.

A client never holds rows. Exact population moments (`n_samples=None`) and estimates are the same
type; only `Moments.n` tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.faces import face
from jigsaw_crl.base.frozen import FrozenMapping
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.base.threads import allowed_threads, one_thread
from jigsaw_crl.client.checks import (
    RANK_TOLERANCE,
    Regimes,
    SampleSizes,
    check_client,
    check_features,
    check_latents,
    check_mapping,
    check_moments,
    check_names,
    check_rank,
    in_order,
    named_columns,
    regimes_of,
    sizes_of,
)
from jigsaw_crl.moments.regime import (
    Moments,
    check_rows,
    check_second_moment,
    fixed_rank_pinv,
    second_moment_about,
)

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

__all__ = ["CONTROL", "RANK_TOLERANCE", "Client"]

FloatArray = npt.NDArray[np.float64]
CONTROL = "control"
# Numbers from which regimes are worked on at once: some hundredths of a second.
MANY = 10_000_000


def _of_each(
    moments: Callable[[Any, str, int | None], Moments], given: list[tuple[Any, str, int | None]]
) -> list[Moments]:
    """`moments` of each regime; where there are many numbers, of several regimes at once."""
    if sum(getattr(x, "size", 0) for x, _, _ in given) >= MANY:
        workers = min(allowed_threads(), len(given))
        if workers > 1:
            with one_thread(), ThreadPoolExecutor(workers) as pool:
                return list(pool.map(lambda one: moments(*one), given))
    return [moments(*one) for one in given]


@dataclass(frozen=True, eq=False)
class Client:
    """Second moments of one client, regime by regime.

    Use a constructor: `from_samples`, `from_covariances`, `from_precisions`, `from_moments` or
    `from_table`.

    Parameters
    ----------
    name : str
        The client's name; names a fragment's origin.
    control : Moments
        The observational regime.
    interventions : mapping of str to tuple of Moments
        One entry per label; several moments when the label was applied at several strengths.
    n_latent : int
        Number of latent variables this client accesses (p_k).
    features : tuple of str
        Names of the observed columns.
    control_name : str
        What the observational regime is called in the client's own files.

    Examples
    --------
    >>> import numpy as np
    >>> import jigsaw_crl as jc
    >>> rng = np.random.default_rng(0)
    >>> x0, x1 = rng.normal(size=(50, 3)), 2 * rng.normal(size=(40, 3))
    >>> client = jc.Client.from_samples("lab-1", observational=x0, interventions={"pump": x1})
    >>> client.labels, client.n_latent, client.n_samples
    (('pump',), 1, {'control': 50, 'pump': 40})
    """

    name: str
    control: Moments
    interventions: Mapping[str, tuple[Moments, ...]]
    n_latent: int
    features: tuple[str, ...]
    control_name: str = CONTROL

    # -- constructors ---------------------------------------------------------------------------

    @classmethod
    def from_samples(
        cls,
        name: str,
        *,
        observational: npt.ArrayLike,
        interventions: Mapping[str, Regimes],
        n_latent: int | None = None,
        features: Sequence[str] | None = None,
        control_name: str = CONTROL,
    ) -> Client:
        """A client from rows: matrices of shape (n_rows, n_features), one per regime."""

        features = named_columns(observational) if features is None else features

        def moments(rows: npt.ArrayLike, regime: str, _: int | None) -> Moments:
            rows = in_order(rows, features, client=name, regime=regime)
            x = check_rows(rows, client=name, regime=regime)
            try:
                return Moments.from_rows(x, parts=regime == control_name)
            except InputError as error:
                # The same error, with its place.
                raise InputError(error.what, error.remedy, client=name, regime=regime) from None

        return cls._build(
            name, observational, interventions, 0, n_latent, features, control_name, moments
        )

    @classmethod
    def from_covariances(
        cls,
        name: str,
        *,
        observational: npt.ArrayLike,
        interventions: Mapping[str, Regimes],
        n_samples: SampleSizes,
        n_latent: int | None = None,
        features: Sequence[str] | None = None,
        control_name: str = CONTROL,
    ) -> Client:
        """A client from covariances (shape (n_features, n_features)) about the control mean.

        `n_samples` is None for exact population moments, an int, or a mapping from regime
        (the control under its own name) to int.
        """

        def moments(matrix: npt.ArrayLike, regime: str, n: int | None) -> Moments:
            c = check_second_moment(matrix, client=name, regime=regime)
            return Moments(n, np.zeros(c.shape[0]), c)

        return cls._build(
            name, observational, interventions, n_samples, n_latent, features, control_name, moments
        )

    @classmethod
    def from_precisions(
        cls,
        name: str,
        *,
        observational: npt.ArrayLike,
        interventions: Mapping[str, Regimes],
        n_samples: SampleSizes,
        n_latent: int | None = None,
        features: Sequence[str] | None = None,
        control_name: str = CONTROL,
    ) -> Client:
        """A client from the pseudo-inverses Θ of its covariances (rank `n_latent`)."""
        check_mapping(name, interventions)
        rank = len(interventions) if n_latent is None else n_latent
        check_latents(name, rank, len(interventions))

        def moments(matrix: npt.ArrayLike, regime: str, n: int | None) -> Moments:
            theta = check_second_moment(matrix, client=name, regime=regime)
            check_rank(theta, min(rank, theta.shape[0]), client=name, regime=regime)
            return Moments(
                n, np.zeros(theta.shape[0]), fixed_rank_pinv(theta, min(rank, len(theta)))
            )

        return cls._build(
            name, observational, interventions, n_samples, n_latent, features, control_name, moments
        )

    @classmethod
    def from_moments(
        cls,
        name: str,
        *,
        control: Moments,
        interventions: Mapping[str, Moments | Sequence[Moments]],
        n_latent: int | None = None,
        features: Sequence[str] | None = None,
        control_name: str = CONTROL,
    ) -> Client:
        """A client from finished moments, for instance of a stream."""
        check_mapping(name, interventions)
        check_names(name, list(interventions), control_name)
        regimes = {
            label: (value,) if isinstance(value, Moments) else tuple(value)
            for label, value in interventions.items()
        }
        for regime, parts in ((control_name, (control,)), *regimes.items()):
            check_moments(parts, client=name, regime=regime)
        rank = len(regimes) if n_latent is None else n_latent
        names = check_features(name, features, control.n_features)
        client = cls(name, control, FrozenMapping(regimes), rank, names, control_name)
        check_client(client)
        return client

    @classmethod
    def from_table(
        cls,
        frame: IntoFrame,
        *,
        regime: str = "regime",
        control: str = CONTROL,
        name: str,
        n_latent: int | None = None,
    ) -> Client:
        """A client from a pandas, polars or pyarrow table with one row per sample.

        Parameters
        ----------
        frame : table
            A column `regime` says which regime a row belongs to; every other column is a feature.
        regime : str
            Name of that column.
        control : str
            Its value on observational rows.
        name : str
            The client's name.
        n_latent : int, optional
            Number of latents accessed; by default the number of labels.
        """
        client: Client = face("client.from_table")(
            frame, regime=regime, control=control, name=name, n_latent=n_latent
        )
        return client

    @classmethod
    def _build(
        cls,
        name: str,
        observational: npt.ArrayLike,
        interventions: Mapping[str, Regimes],
        n_samples: SampleSizes,
        n_latent: int | None,
        features: Sequence[str] | None,
        control_name: str,
        moments: Callable[[Any, str, int | None], Moments],
    ) -> Client:
        check_mapping(name, interventions)
        check_names(name, list(interventions), control_name)
        sizes = sizes_of(name, n_samples, interventions, control_name)
        given = [(observational, control_name, sizes[control_name][0])]
        for label, value in interventions.items():
            given += [(x, label, n) for x, n in zip(regimes_of(value), sizes[label], strict=True)]
        control, *others = _of_each(moments, given)
        found: dict[str, list[Moments]] = {label: [] for label in interventions}
        for (_, label, _), one in zip(given[1:], others, strict=True):
            found[label].append(one)
        regimes = {label: tuple(ones) for label, ones in found.items()}
        rank = len(regimes) if n_latent is None else n_latent
        names = check_features(name, features, control.n_features)
        client = cls(name, control, FrozenMapping(regimes), rank, names, control_name)
        check_client(client)
        return client

    # -- what it holds --------------------------------------------------------------------------

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.interventions)

    @property
    def n_features(self) -> int:
        return self.control.n_features

    @property
    def is_population(self) -> bool:
        """True when the moments are exact."""
        return self.control.n is None

    @property
    def n_samples(self) -> dict[str, int] | None:
        """Rows per regime (summed over the strengths of a label); None for exact moments."""
        if self.control.n is None:
            return None
        sizes = {self.control_name: self.control.n}
        for label, regimes in self.interventions.items():
            sizes[label] = sum(m.n or 0 for m in regimes)
        return sizes

    def control_second_moment(self) -> FloatArray:
        """Observational covariance, unbiased for estimates, shape (n_features, n_features)."""
        n = self.control.n
        scale = 1.0 if n is None else n / (n - 1)
        return scale * self.control.covariance

    def second_moments(self, label: str) -> list[FloatArray]:
        """Second moments of a label's regimes about the control mean."""
        return [second_moment_about(m, self.control.mean) for m in self.interventions[label]]

    def __repr__(self) -> str:
        size = "population" if self.is_population else pluralise(self.control.n or 0, "control row")
        return (
            f"Client({self.name!r}: {pluralise(len(self.labels), 'label')}, "
            f"{pluralise(self.n_latent, 'latent')}, "
            f"{pluralise(self.n_features, 'feature')}, {size})"
        )
