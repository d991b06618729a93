"""One client: a control regime and labelled interventional regimes, as moments.

A client never holds rows. Exact population moments (`n_samples=None`) and estimates are the same
type; only `Moments.n` tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.errors import InputError
from jigsaw_crl.moments import (
    Moments,
    check_rows,
    check_second_moment,
    fixed_rank_pinv,
    second_moment_about,
)

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

__all__ = ["CONTROL", "Client"]

FloatArray = npt.NDArray[np.float64]
CONTROL = "control"

# The smallest eigenvalue that still counts as a direction of the data, as a share of the largest:
# eigh resolves d·eps, and a direction below 1e-11 of the largest cannot be told from rounding.
RANK_TOLERANCE = 1e-11

Regimes = npt.ArrayLike | Sequence[npt.ArrayLike]
SampleSizes = int | Mapping[str, int | Sequence[int]] | None


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

        def moments(rows: npt.ArrayLike, regime: str, _: int | None) -> Moments:
            x = check_rows(rows, client=name, regime=regime)
            return Moments.from_rows(x, parts=regime == control_name)

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
        _check_mapping(name, interventions)
        rank = len(interventions) if n_latent is None else n_latent
        _check_latents(name, rank, len(interventions))

        def moments(matrix: npt.ArrayLike, regime: str, n: int | None) -> Moments:
            theta = check_second_moment(matrix, client=name, regime=regime)
            _check_rank(theta, min(rank, theta.shape[0]), client=name, regime=regime)
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
        _check_mapping(name, interventions)
        _check_names(name, list(interventions), control_name)
        regimes = {
            label: (value,) if isinstance(value, Moments) else tuple(value)
            for label, value in interventions.items()
        }
        for regime, parts in ((control_name, (control,)), *regimes.items()):
            _check_moments(parts, client=name, regime=regime)
        rank = len(regimes) if n_latent is None else n_latent
        names = _check_features(name, features, control.n_features)
        client = cls(name, control, MappingProxyType(regimes), rank, names, control_name)
        _check_client(client)
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
        from jigsaw_crl.study import client_from_table

        return client_from_table(
            frame, regime=regime, control=control, name=name, n_latent=n_latent
        )

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
        _check_mapping(name, interventions)
        _check_names(name, list(interventions), control_name)
        sizes = _sizes(name, n_samples, interventions, control_name)
        control = moments(observational, control_name, sizes[control_name][0])
        regimes = {
            label: tuple(
                moments(part, label, n) for part, n in zip(_parts(value), sizes[label], strict=True)
            )
            for label, value in interventions.items()
        }
        rank = len(regimes) if n_latent is None else n_latent
        names = _check_features(name, features, control.n_features)
        client = cls(name, control, MappingProxyType(regimes), rank, names, control_name)
        _check_client(client)
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

    def __getstate__(self) -> dict[str, Any]:
        # A mappingproxy does not pickle, and clients travel to worker processes.
        return {**self.__dict__, "interventions": dict(self.interventions)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state["interventions"] = MappingProxyType(state["interventions"])
        self.__dict__.update(state)

    def __repr__(self) -> str:
        size = "population" if self.is_population else f"{self.control.n} control rows"
        return (
            f"Client({self.name!r}: {len(self.labels)} labels, {self.n_latent} latents, "
            f"{self.n_features} features, {size})"
        )


# -- checks -------------------------------------------------------------------------------------


def _parts(value: Any) -> list[Any]:
    """The regimes of a label: a list of matrices is several, anything else is one."""
    try:
        several = isinstance(value, list | tuple) and bool(value) and np.ndim(value[0]) == 2
    except ValueError:  # rows of unequal length: the check of the rows says so
        several = False
    return list(value) if several else [value]


def _sizes(
    name: str, n_samples: SampleSizes, interventions: Mapping[str, Regimes], control_name: str
) -> dict[str, list[int | None]]:
    counts = {control_name: 1, **{label: len(_parts(v)) for label, v in interventions.items()}}
    if n_samples is None or isinstance(n_samples, int | np.integer):
        n = None if n_samples is None else int(n_samples)
        return {regime: [n] * count for regime, count in counts.items()}
    if not isinstance(n_samples, Mapping):
        raise InputError(
            f"n_samples is a {type(n_samples).__name__}",
            "Pass None for exact moments, an int, or a mapping from regime to int.",
            client=name,
        )
    sizes: dict[str, list[int | None]] = {}
    for regime, count in counts.items():
        if regime not in n_samples:
            raise InputError(
                "n_samples has no entry for this regime",
                f"Give every regime a size, the control under {control_name!r}.",
                client=name,
                regime=regime,
            )
        given = n_samples[regime]
        listed: list[Any] = list(given) if isinstance(given, list | tuple) else [given] * count
        if not all(isinstance(n, int | np.integer) for n in listed):
            raise InputError(
                f"its sample size is {given!r}",
                "Give every regime a whole number of rows, or pass n_samples=None for exact "
                "moments.",
                client=name,
                regime=regime,
            )
        if len(listed) != count:
            raise InputError(
                f"n_samples lists {len(listed)} sizes for {count} matrices",
                "Give one size per matrix.",
                client=name,
                regime=regime,
            )
        sizes[regime] = [int(n) for n in listed]
    return sizes


def _check_mapping(name: str, interventions: object) -> None:
    if not isinstance(interventions, Mapping):
        raise InputError(
            "interventions is not a mapping from label to data",
            'Pass a dict such as {"valve": X1, "pump": X2}.',
            client=str(name),
        )


def _check_moments(parts: tuple[Moments, ...], *, client: str, regime: str) -> None:
    if not parts:
        raise InputError(
            "the label has no moments", "Pass at least one.", client=client, regime=regime
        )
    for m in parts:
        if m.mean.ndim != 1 or m.covariance.shape != 2 * m.mean.shape:
            raise InputError(
                f"a mean of shape {m.mean.shape} comes with a covariance of shape "
                f"{m.covariance.shape}",
                "Compute both from the same columns.",
                client=client,
                regime=regime,
            )
        if not np.isfinite(m.mean).all():
            raise InputError(
                "the mean has missing or infinite entries",
                "Recompute it from complete rows.",
                client=client,
                regime=regime,
            )
        check_second_moment(m.covariance, client=client, regime=regime)


def _check_latents(client: str, n_latent: object, n_labels: int) -> None:
    whole = isinstance(n_latent, int | np.integer) and not isinstance(n_latent, bool)
    if not whole or n_latent < n_labels:  # type: ignore[operator]
        raise InputError(
            f"n_latent is {n_latent!r} for {n_labels} labels",
            "It is the number of latents the client accesses: at least the number of labels.",
            client=client,
        )


def _check_names(name: str, labels: list[str], control_name: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise InputError("the client has no name", "Pass a non-empty name.")
    if not labels:
        raise InputError(
            "there is no interventional regime",
            "A client needs at least one labelled intervention beside its control.",
            client=name,
        )
    seen: dict[str, str] = {}
    for label in labels:
        if not isinstance(label, str) or not label.strip():
            raise InputError(
                f"the label {label!r} is empty or not text",
                "Name every intervention by a non-empty string.",
                client=name,
            )
        folded = label.strip().casefold()
        if folded in seen:
            raise InputError(
                f"labels {seen[folded]!r} and {label!r} differ only by case or spaces",
                "Labels are shared between clients: spell each one way.",
                client=name,
                regime=label,
            )
        seen[folded] = label
    if control_name in labels:
        raise InputError(
            f"the control's name {control_name!r} is also an intervention label",
            "Rename one of them.",
            client=name,
            regime=control_name,
        )


def _check_features(name: str, features: Sequence[str] | None, count: int) -> tuple[str, ...]:
    if features is None:
        return tuple(f"x{i + 1}" for i in range(count))
    names = tuple(str(f) for f in features)
    if len(names) != count or len(set(names)) != len(names):
        raise InputError(
            f"{len(set(names))} distinct feature names for {count} columns",
            "Name every column once.",
            client=name,
        )
    return names


def _check_client(client: Client) -> None:
    d, p = client.n_features, client.n_latent
    _check_latents(client.name, p, len(client.labels))
    if d < p:
        raise InputError(
            f"{d} features cannot show {p} latents",
            "Measure at least as many features as there are labels (or latents), "
            "or split the client.",
            client=client.name,
        )
    regimes = [(client.control_name, client.control)]
    regimes += [(label, m) for label, ms in client.interventions.items() for m in ms]
    for regime, m in regimes:
        if m.n_features != d:
            raise InputError(
                f"it has {m.n_features} features where the control has {d}",
                "Use the same columns in every regime.",
                client=client.name,
                regime=regime,
            )
        if (m.n is None) != (client.control.n is None):
            raise InputError(
                "exact and estimated moments are mixed",
                "Give every regime a sample size, or none.",
                client=client.name,
                regime=regime,
            )
        if m.n is not None and m.n < p + 1:
            raise InputError(
                f"{m.n} rows are too few for {p} latents",
                f"At least {p + 1} rows are needed.",
                client=client.name,
                regime=regime,
            )
    _check_rank(client.control.covariance, p, client=client.name, regime=client.control_name)


def _check_rank(matrix: FloatArray, rank: int, *, client: str, regime: str) -> None:
    values = np.linalg.eigvalsh(matrix)[::-1]
    if values[0] <= 0 or values[rank - 1] <= RANK_TOLERANCE * values[0]:
        found = int(np.count_nonzero(values > RANK_TOLERANCE * max(values[0], 0.0)))
        raise InputError(
            f"the features span {found} dimensions, fewer than the {rank} latents",
            "Remove constant or duplicated columns' stand-ins by measuring more features, "
            "or pass the number of latents as n_latent.",
            client=client,
            regime=regime,
        )
