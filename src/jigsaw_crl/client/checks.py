"""Checks of what a client is built from; errors name the client, the regime and the remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.labels import label_fault, label_key, normal_label
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.moments.checks import check_second_moment, varies
from jigsaw_crl.moments.regime import Moments

if TYPE_CHECKING:
    from jigsaw_crl.client.client import Client

# What a user passes for one label: a matrix, or one matrix per strength.
LabelData = npt.ArrayLike | Sequence[npt.ArrayLike]
SampleSizes = int | Mapping[str, int | Sequence[int]] | None
# What a user says about interventions: of all labels, or by label.
Kind = Literal["soft", "hard"]
Kinds = Kind | Mapping[str, Kind]
# The smallest eigenvalue that still counts as a direction of the data, as a share of the largest:
# eigh resolves d·eps, and a direction below 1e-11 of the largest cannot be told from rounding.
RANK_TOLERANCE = 1e-11


def hard_labels(
    kinds: Kinds, labels: Sequence[str], before: frozenset[str] = frozenset()
) -> frozenset[str]:
    """Which of a client's labels are hard, as declared."""
    given = dict.fromkeys(labels, kinds) if isinstance(kinds, str) else kinds_by_label(kinds)
    for label, kind in given.items():
        if kind not in ("soft", "hard"):
            where = "" if isinstance(kinds, str) else f" of {label!r}"
            raise InputError(
                f"the kind of intervention{where} is {kind!r}", 'Use "soft" or "hard".'
            )
    return frozenset(
        label
        for label in labels
        if given.get(label, "hard" if label in before else "soft") == "hard"
    )


def kinds_by_label(kinds: Mapping[str, Kind]) -> dict[str, Kind]:
    """What a user says about interventions, with the labels spelt as clients have them."""
    if not isinstance(kinds, Mapping):
        raise InputError(
            f"interventions is a {type(kinds).__name__}",
            'Pass "soft", "hard", or a mapping from label to one of these.',
        )
    given: dict[str, Kind] = {}
    for label, kind in kinds.items():
        if given.setdefault(normal_label(str(label)), kind) != kind:
            raise InputError(
                f"interventions names the label {normal_label(str(label))!r} twice, with two kinds",
                "Name each label once.",
            )
    return given


def check_named(
    kinds: Kinds, labels: Sequence[str], who: str, *, client: str | None = None
) -> None:
    """Refuse a mapping from labels to kinds that names an unknown label."""
    for label in () if isinstance(kinds, str) else kinds_by_label(kinds):
        if label not in labels:
            raise InputError(
                f"interventions names the label {label!r}, which {who}",
                did_you_mean(label, labels) or f"The labels are {few(labels)}.",
                client=client,
            )


def hard_among(hard: bool | Iterable[str], labels: Sequence[str], *, client: str) -> frozenset[str]:
    """The labels that the argument `hard` of a constructor names: all if True."""
    if isinstance(hard, bool):
        return frozenset(labels if hard else ())
    if isinstance(hard, str | Mapping) or not isinstance(hard, Iterable):
        raise InputError(
            f"hard is {hard!r}", "Pass True, or a list of the labels that are hard.", client=client
        )
    given: dict[str, Kind] = dict.fromkeys((normal_label(str(label)) for label in hard), "hard")
    check_named(given, labels, "the client does not have", client=client)
    return frozenset(given)


def matrices_of(value: Any) -> list[Any]:
    """The matrices of a label: those of a list of matrices, or the only one."""
    try:
        several = isinstance(value, list | tuple) and bool(value) and np.ndim(value[0]) == 2
    except ValueError:  # rows of unequal length, which `check_rows` reports
        several = False
    return list(value) if several else [value]


def by_matrix(
    given: Mapping[str, Any],
    interventions: Mapping[str, LabelData],
    control_name: str,
    is_one: Callable[[Any, int], bool],
    *,
    client: str,
    what: str,
    each: str,
    default: Any = ...,
) -> dict[str, list[Any]]:
    """What an argument gives for each matrix of each regime.

    Parameters
    ----------
    given : mapping of str to any
        The argument: a value for each regime, or a list of them for a label with several matrices.
    interventions, control_name
        As for the constructors.
    is_one : callable
        Is a value one for all matrices of a regime with so many?
    client, what, each : str
        Name of the client, of the argument, and of what it gives, for messages.
    default : any
        For regimes that `given` lacks; by default they are refused.
    """
    fail = partial(InputError, client=client)
    if not isinstance(given, Mapping):
        raise fail(f"{what} is a {type(given).__name__}", f"Pass a mapping from regime to {each}.")
    counts = {control_name: 1, **{label: len(matrices_of(v)) for label, v in interventions.items()}}
    for regime in given:
        if regime not in counts:
            near = did_you_mean(regime, counts) or f"The regimes are {few(counts)}."
            raise fail(f"{what} names the regime {regime!r}, which the client does not have", near)
    found: dict[str, list[Any]] = {}
    for regime, count in counts.items():
        own = given.get(regime, default)
        if own is ...:
            raise fail(
                f"{what} has no entry for this regime",
                f"Give {each} for every regime, the control under {control_name!r}.",
                regime=regime,
            )
        found[regime] = [own] * count if is_one(own, count) or regime not in given else list(own)
        if len(found[regime]) != count:
            raise fail(
                f"{what} lists {pluralise(len(found[regime]), 'entry', 'entries')} for "
                f"{pluralise(count, 'matrix', 'matrices')}",
                "Give one per matrix.",
                regime=regime,
            )
    return found


def sizes_of(
    name: str, n_samples: SampleSizes, interventions: Mapping[str, LabelData], control_name: str
) -> dict[str, list[int | None]]:
    """The sample size of each matrix of each regime; None for exact moments."""
    if n_samples is None or isinstance(n_samples, int | np.integer):
        n = None if n_samples is None else int(n_samples)
        given: Any = dict.fromkeys((control_name, *interventions), n)
    else:
        given = n_samples
    found = by_matrix(
        given, interventions, control_name, lambda own, _: not isinstance(own, list | tuple),
        client=name, what="n_samples", each="its number of rows",
    )  # fmt: skip
    for regime, sizes in found.items():
        for n in sizes:
            if not isinstance(n, int | np.integer) and n_samples is not None:
                raise InputError(
                    f"its sample size is {n!r}",
                    "Give every regime a whole number of rows, or pass n_samples=None for exact "
                    "moments.",
                    client=name,
                    regime=regime,
                )
    return {r: [None if n is None else int(n) for n in sizes] for r, sizes in found.items()}


def check_moments(moments: Sequence[Moments], *, client: str, regime: str) -> None:
    """Raise an `InputError` unless a regime has moments, each consistent and finite."""
    fail = partial(InputError, client=client, regime=regime)
    if not moments:
        raise fail("the label has no moments", "Pass at least one.")
    for m in moments:
        if m.mean.ndim != 1 or m.covariance.shape != 2 * m.mean.shape:
            raise fail(
                f"a mean of shape {m.mean.shape} comes with a covariance of shape "
                f"{m.covariance.shape}",
                "Compute both from the same columns.",
            )
        if not np.isfinite(m.mean).all():
            raise fail(
                "the mean has missing or infinite entries", "Recompute it from complete rows."
            )
        check_second_moment(m.covariance, client=client, regime=regime)


def check_latents(client: str, n_latent: object, n_labels: int) -> None:
    """Raise an `InputError` unless `n_latent` is an integer of at least `n_labels`."""
    whole = isinstance(n_latent, int | np.integer) and not isinstance(n_latent, bool)
    if not whole or n_latent < n_labels:  # type: ignore[operator]
        raise InputError(
            f"n_latent is {n_latent!r} for {pluralise(n_labels, 'label')}",
            "It is the number of latents the client accesses: at least the number of labels.",
            client=client,
        )


def column_names(rows: object) -> tuple[str, ...] | None:
    """Names of the columns of a data frame; None for anything else."""
    columns = getattr(rows, "columns", None)
    return None if columns is None or callable(columns) else tuple(str(c) for c in columns)


def in_order(rows: Any, features: Sequence[str] | None, *, client: str, regime: str) -> Any:
    """Rows with the columns of a data frame in the order of `features`; others unchanged."""
    fail = partial(InputError, client=client, regime=regime)
    types = [rows.dtype] if hasattr(rows, "dtype") else getattr(rows, "dtypes", ())
    if any(getattr(kind, "kind", "") == "c" for kind in types):
        raise fail(
            "its values are complex numbers",
            "Pass the real and the imaginary part as two features.",
        )
    columns = column_names(rows)
    if columns is None or features is None or columns == tuple(features):
        return rows
    if sorted(columns) != sorted(features):
        odd = sorted(set(columns) ^ set(features))
        raise fail(
            f"its columns are not those of the control: {', '.join(odd)[:100]}",
            "Use the same columns in every regime.",
        )
    return np.asarray(rows)[:, [columns.index(f) for f in features]]


def check_names(name: str, interventions: object, control_name: str) -> None:
    """Raise an `InputError` unless `interventions` is a mapping and all names are valid."""
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"{name!r} is not a name for a client", "Pass a non-empty text.")
    fail = partial(InputError, client=name)
    for what, text in (("name", name), ("control's name", control_name)):
        fault = label_fault(normal_label(text))
        if fault:
            raise fail(f"the {what} {text[:60]!r} {fault}", "Rename it.")
    if not isinstance(interventions, Mapping):
        raise fail(
            "interventions is not a mapping from label to data",
            'Pass a dict such as {"valve": X1, "pump": X2}.',
        )
    if not interventions:
        raise fail(
            "there is no interventional regime",
            "A client needs at least one labelled intervention beside its control.",
        )
    seen: dict[str, str] = {}
    for label in interventions:
        if not isinstance(label, str) or not label.strip():
            raise fail(
                f"the label {label!r} is empty or not text",
                "Name every intervention by a non-empty string.",
            )
        fault = label_fault(normal_label(label))
        if fault:
            raise fail(
                f"the label {label[:60]!r} {fault}",
                "Rename it in the table, or under [rename] in study.toml.",
            )
        first = seen.setdefault(label_key(label), label)
        if first != label:
            raise fail(
                f"labels {first!r} and {label!r} differ only by case, spaces, _ or -, or as 1 and "
                "1.0 do",
                "Labels are shared between clients: spell each one way.",
                regime=label,
            )
    if normal_label(control_name) in map(normal_label, interventions):
        raise fail(
            f"the control's name {control_name!r} is also an intervention label",
            "Rename one of them.",
            regime=control_name,
        )


def check_features(name: str, features: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """Names of the features, by default x1, x2 …; an `InputError` if they do not fit."""
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


def validate_client(client: Client) -> None:
    """Raise an `InputError` unless the parts of a client fit together."""
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
        fail = partial(InputError, client=client.name, regime=regime)
        if m.n_features != d:
            raise fail(
                f"it has {pluralise(m.n_features, 'feature')} where the control has {d}",
                "Use the same columns in every regime.",
            )
        if (m.n is None) != client.is_population:
            raise fail(
                "exact and estimated moments are mixed", "Give every regime a sample size, or none."
            )
        if bool(m.batches) != bool(client.control.batches):
            raise fail(
                "some regimes have batches and some have none",
                "Give the batches of every regime, the control included, or of none.",
            )
        if m.n is not None and m.n < 2:
            more = len(m.batches) - 1
            within = f" in {len(m.batches)} batches" if more > 0 else ""
            raise fail(
                f"{pluralise(m.rows or 0, 'row', 'rows')}{within} "
                f"{'is' if m.rows == 1 else 'are'} too few",
                f"At least {2 + max(more, 0)} rows are needed.",
            )
        if m is not client.control and not varies(m.mean, m.covariance).any():
            raise fail("all its rows are the same", "Leave the regime out, or correct its rows.")
    n, rows = client.control.n, client.control.rows or 0
    if n is not None and n < p + 1:
        more = max(len(client.control.batches) - 1, 0)
        within = f" in {more + 1} batches" if more else ""
        raise InputError(
            f"{pluralise(rows, 'control row', 'control rows')}{within} "
            f"{'is' if rows == 1 else 'are'} too few for {pluralise(p, 'latent')}",
            f"Take at least {p + 1 + more} control rows; other regimes may have fewer.",
            client=client.name,
            regime=client.control_name,
        )
    where = {"client": client.name, "regime": client.control_name}
    check_rank(client.control.covariance, p, **where, features=client.features)


def numerical_rank(matrix: FloatArray) -> int:
    """Number of eigenvalues of a symmetric matrix above rounding error."""
    values = np.linalg.eigvalsh(matrix)
    return int(np.count_nonzero(values > RANK_TOLERANCE * max(float(values[-1]), 0.0)))


def check_rank(
    matrix: FloatArray, rank: int, *, client: str, regime: str, features: Sequence[str] = ()
) -> None:
    """Raise an `InputError` if a matrix has fewer than `rank` directions above rounding error."""
    found = numerical_rank(matrix)
    if found >= rank:
        return
    spread = np.sqrt(np.diagonal(matrix))
    uneven = float(spread.max(initial=0.0)) > 1e4 * float(spread.min(initial=np.inf))
    widest = f" ({features[int(np.argmax(spread))]!r} is the widest)" if features else ""
    raise InputError(
        f"the features span {pluralise(found, 'dimension')}, fewer than the "
        f"{pluralise(rank, 'latent')}",
        f"Their units differ too much to tell{widest}: leave out a time or an index, and divide "
        "each column by its standard deviation."
        if uneven
        else "Constant columns and copies of other columns add no dimension: measure more "
        "features, or split the client.",
        client=client,
        regime=regime,
    )
