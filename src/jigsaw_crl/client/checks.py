"""Checks of what a client is built from; errors name the client, the regime and the remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.labels import label_fault, label_key, normal_label
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.moments.checks import RANK_TOLERANCE, check_second_moment, varies
from jigsaw_crl.moments.regime import Moments

if TYPE_CHECKING:
    from jigsaw_crl.client.client import Client

# What a user says about interventions: of all labels, or by label.
Kind = Literal["soft", "hard"]
Kinds = Kind | Mapping[str, Kind]


def check_named(
    kinds: Kinds, labels: Sequence[str], who: str | None = None, *, client: str | None = None
) -> dict[str, Kind]:
    """The kind of each label that is named, spelt as clients have it.

    Parameters
    ----------
    kinds : {"soft", "hard"} or mapping of label to one of these
    labels : sequence of str
        What one word for all stands for.
    who : str, optional
        Refuse other labels; the end of the message, for instance ``"no client has"``.
    client : str, optional
        For the message.
    """
    if not isinstance(kinds, str | Mapping):
        raise InputError(
            f"interventions is a {type(kinds).__name__}",
            'Pass "soft", "hard", or a mapping from label to one of these.',
        )
    given: dict[str, Kind] = {}
    for name, kind in (dict.fromkeys(labels, kinds) if isinstance(kinds, str) else kinds).items():
        label = normal_label(str(name))
        if kind not in ("soft", "hard"):
            where = "" if isinstance(kinds, str) else f" of {label!r}"
            raise InputError(
                f"the kind of intervention{where} is {kind!r}", 'Use "soft" or "hard".'
            )
        if given.setdefault(label, kind) != kind:
            raise InputError(
                f"interventions names the label {label!r} twice, with two kinds",
                "Name each label once.",
            )
        if who is not None and label not in labels:
            raise InputError(
                f"interventions names the label {label!r}, which {who}",
                did_you_mean(label, labels) or f"The labels are {few(labels)}.",
                client=client,
            )
    return given


def check_latents(client: str, n_latent: object, n_labels: int) -> None:
    """Raise an `InputError` unless `n_latent` is an integer of at least `n_labels`."""
    whole = isinstance(n_latent, int | np.integer) and not isinstance(n_latent, bool)
    if not whole or n_latent < n_labels:  # type: ignore[operator]
        raise InputError(
            f"n_latent is {n_latent!r} for {pluralise(n_labels, 'label')}",
            "It is the number of latents the client accesses: at least the number of labels.",
            client=client,
        )


def check_names(name: str, interventions: object, control_name: str) -> None:
    """Raise an `InputError` unless `interventions` is a mapping and all names are valid."""
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"{name!r} is not a name for a client", "Pass a non-empty text.")
    fail = partial(InputError, client=name)
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
    rename = "Rename it in the table, or under [rename] in study.toml."
    texts = [("name", name, "Rename it."), ("control's name", control_name, "Rename it.")]
    for what, text, remedy in (*texts, *(("label", x, rename) for x in interventions)):
        if not isinstance(text, str) or not text.strip():
            raise fail(f"the {what} {text!r} is empty or not text", "Use a non-empty string.")
        if fault := label_fault(normal_label(text)):
            raise fail(f"the {what} {text[:60]!r} {fault}", remedy)
    seen: dict[str, str] = {}
    for label in interventions:
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


def check_moments(m: Moments, *, client: str, regime: str) -> Moments:
    """The moments, with an exactly symmetric covariance; an `InputError` if they are none."""
    fail = partial(InputError, client=client, regime=regime)
    if m.mean.ndim != 1 or not np.isfinite(m.mean).all():
        raise fail("its mean is not a row of finite numbers", "Give one number per feature.")
    covariance = check_second_moment(m.covariance, client=client, regime=regime)
    if len(m.mean) != len(covariance):
        entries = pluralise(len(m.mean), "entry", "entries")
        features = pluralise(len(covariance), "feature")
        raise fail(f"its mean has {entries} for {features}", "Give one number per feature.")
    return replace(m, covariance=covariance)


def validate_client(client: Client) -> None:
    """Raise an `InputError` unless the parts of a client fit together."""
    d, p, control = client.n_features, client.n_latent, client.control
    check_latents(client.name, p, len(client.labels))
    if d < p:
        raise InputError(
            f"{pluralise(d, 'feature')} cannot show {pluralise(p, 'latent')}",
            "Measure at least as many features as there are labels (or latents), "
            "or split the client.",
            client=client.name,
        )
    for regime, m in client.named_regimes:
        fail = partial(InputError, client=client.name, regime=regime)
        if m.n_features != d:
            raise fail(
                f"it has {pluralise(m.n_features, 'feature')} where the control has {d}",
                "Use the same columns in every regime.",
            )
        if (m.n is None) != (control.n is None):
            raise fail(
                "exact and estimated moments are mixed", "Give every regime a sample size, or none."
            )
        if bool(m.batches) != bool(control.batches):
            raise fail(
                "some regimes have batches and some have none",
                "Give the batches of every regime, the control included, or of none.",
            )
        least, more = p + 1 if m is control else 2, max(len(m.batches) - 1, 0)
        if m.n is not None and m.n < least:
            rows = m.rows or 0
            said = pluralise(rows, "control row" if m is control else "row")
            said += f" in {more + 1} batches" if more else ""
            said += " is too few" if rows == 1 else " are too few"
            said += f" for {pluralise(p, 'latent')}" if m is control else ""
            kind = "control rows; other regimes may have fewer" if m is control else "rows"
            raise fail(said, f"Take at least {least + more} {kind}.")
        if m is not control and not varies(m.mean, m.covariance).any():
            raise fail("all its rows are the same", "Leave the regime out, or correct its rows.")
    where = {"client": client.name, "regime": client.control_name}
    check_rank(control.covariance, p, **where, features=client.features)


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
