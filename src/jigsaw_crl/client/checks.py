"""Is this input a client? Every refusal names the client, the regime and the remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.moments.checks import check_second_moment
from jigsaw_crl.moments.regime import Moments

if TYPE_CHECKING:
    from jigsaw_crl.client.client import Client

FloatArray = npt.NDArray[np.float64]
Regimes = npt.ArrayLike | Sequence[npt.ArrayLike]
SampleSizes = int | Mapping[str, int | Sequence[int]] | None

# The smallest eigenvalue that still counts as a direction of the data, as a share of the largest:
# eigh resolves d·eps, and a direction below 1e-11 of the largest cannot be told from rounding.
RANK_TOLERANCE = 1e-11


def regimes_of(value: Any) -> list[Any]:
    """The regimes of a label: a list of matrices is several, anything else is one."""
    try:
        several = isinstance(value, list | tuple) and bool(value) and np.ndim(value[0]) == 2
    except ValueError:  # rows of unequal length: the check of the rows says so
        several = False
    return list(value) if several else [value]


def sizes_of(
    name: str, n_samples: SampleSizes, interventions: Mapping[str, Regimes], control_name: str
) -> dict[str, list[int | None]]:
    counts = {control_name: 1, **{label: len(regimes_of(v)) for label, v in interventions.items()}}
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
                f"n_samples lists {pluralise(len(listed), 'size')} for "
                f"{pluralise(count, 'matrix', 'matrices')}",
                "Give one size per matrix.",
                client=name,
                regime=regime,
            )
        sizes[regime] = [int(n) for n in listed]
    return sizes


def check_mapping(name: str, interventions: object) -> None:
    if not isinstance(interventions, Mapping):
        raise InputError(
            "interventions is not a mapping from label to data",
            'Pass a dict such as {"valve": X1, "pump": X2}.',
            client=str(name),
        )


def check_moments(parts: tuple[Moments, ...], *, client: str, regime: str) -> None:
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


def check_latents(client: str, n_latent: object, n_labels: int) -> None:
    whole = isinstance(n_latent, int | np.integer) and not isinstance(n_latent, bool)
    if not whole or n_latent < n_labels:  # type: ignore[operator]
        raise InputError(
            f"n_latent is {n_latent!r} for {pluralise(n_labels, 'label')}",
            "It is the number of latents the client accesses: at least the number of labels.",
            client=client,
        )


def named_columns(rows: object) -> tuple[str, ...] | None:
    """Names of the columns of a data frame; None for anything else."""
    columns = getattr(rows, "columns", None)
    return None if columns is None or callable(columns) else tuple(str(c) for c in columns)


def in_order(rows: Any, features: Sequence[str] | None, *, client: str, regime: str) -> Any:
    """A data frame's columns in the order of `features`; anything else as it is."""
    if _is_complex(rows):
        raise InputError(
            "its values are complex numbers",
            "Pass the real and the imaginary part as two features.",
            client=client,
            regime=regime,
        )
    columns = named_columns(rows)
    if columns is None or features is None or columns == tuple(features):
        return rows
    if sorted(columns) != sorted(features):
        odd = sorted(set(columns) ^ set(features))
        raise InputError(
            f"its columns are not those of the control: {', '.join(odd)[:100]}",
            "Use the same columns in every regime.",
            client=client,
            regime=regime,
        )
    return np.asarray(rows)[:, [columns.index(f) for f in features]]


def _is_complex(rows: Any) -> bool:
    """By the type alone of an array, or of a data frame's columns."""
    kinds = [rows.dtype] if hasattr(rows, "dtype") else getattr(rows, "dtypes", ())
    return any(getattr(kind, "kind", "") == "c" for kind in kinds)


def label_key(label: str) -> str:
    """What two spellings of one label have in common: case, spaces, and 1 against 1.0."""
    folded = label.strip().casefold()
    try:
        number = float(folded)
    except ValueError:
        return folded
    return repr(number) if np.isfinite(number) else folded


def check_names(name: str, labels: list[str], control_name: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"{name!r} is no name for a client", "Pass a non-empty text.")
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
        folded = label_key(label)
        if folded in seen:
            raise InputError(
                f"labels {seen[folded]!r} and {label!r} differ only by case or spaces, "
                "or as 1 and 1.0 do",
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


def check_features(name: str, features: Sequence[str] | None, count: int) -> tuple[str, ...]:
    if features is None:
        return tuple(f"x{i + 1}" for i in range(count))
    names = tuple(str(f) for f in features)
    if len(names) != count or len(set(names)) != len(names):
        raise InputError(
            f"{pluralise(len(set(names)), 'distinct feature name')} for "
            f"{pluralise(count, 'column')}",
            "Name every column once.",
            client=name,
        )
    return names


def check_client(client: Client) -> None:
    d, p = client.n_features, client.n_latent
    check_latents(client.name, p, len(client.labels))
    if d < p:
        raise InputError(
            f"{pluralise(d, 'feature')} cannot show {pluralise(p, 'latent')}",
            "Measure at least as many features as there are labels (or latents), "
            "or split the client.",
            client=client.name,
        )
    regimes = [(client.control_name, client.control)]
    regimes += [(label, m) for label, ms in client.interventions.items() for m in ms]
    for regime, m in regimes:
        if m.n_features != d:
            raise InputError(
                f"it has {pluralise(m.n_features, 'feature')} where the control has {d}",
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
                f"{pluralise(m.n, 'row is', 'rows are')} too few for {pluralise(p, 'latent')}",
                f"At least {p + 1} rows are needed.",
                client=client.name,
                regime=regime,
            )
    check_rank(client.control.covariance, p, client=client.name, regime=client.control_name)


def check_rank(matrix: FloatArray, rank: int, *, client: str, regime: str) -> None:
    values = np.linalg.eigvalsh(matrix)[::-1]
    if values[0] <= 0 or values[rank - 1] <= RANK_TOLERANCE * values[0]:
        found = int(np.count_nonzero(values > RANK_TOLERANCE * max(values[0], 0.0)))
        spread = np.sqrt(np.diagonal(matrix))
        uneven = float(spread.max(initial=0.0)) > 1e4 * float(spread.min(initial=np.inf))
        raise InputError(
            f"the features span {pluralise(found, 'dimension')}, fewer than the "
            f"{pluralise(rank, 'latent')}",
            "Their units differ too much for this to be seen: divide each column by its standard "
            "deviation."
            if uneven
            else "Constant columns and copies of others show nothing: measure more features, "
            "or split the client.",
            client=client,
            regime=regime,
        )
