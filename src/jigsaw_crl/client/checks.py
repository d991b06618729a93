"""Checks of what a client is built from; errors name the client, the regime and the remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.labels import label_fault, label_key, normal_label
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.moments.checks import RANK_TOLERANCE, check_second_moment, varying
from jigsaw_crl.moments.regime import Moments

# What a user says about interventions: of all labels, or by label.
Kind = Literal["soft", "hard"]
Kinds = Kind | Mapping[str, Kind]


def check_named(
    kinds: Kinds, labels: Sequence[str], who: str | None = None, *, client: str | None = None
) -> dict[str, Kind]:
    """The kind of each label that is named, spelt as clients have it.

    One word stands for all `labels`. Other labels are refused if `who` is given, the end of the
    message, for instance ``"no client has"``.
    """
    if not isinstance(kinds, str | Mapping):
        raise InputError(
            f"interventions is a {type(kinds).__name__}",
            'Pass "soft", "hard", or a mapping from label to one of these.',
        )
    given: dict[str, Kind] = {}
    for name, kind in (dict.fromkeys(labels, kinds) if isinstance(kinds, str) else kinds).items():
        label = normal_label(str(name))
        wrong, remedy = "", ""
        if kind not in ("soft", "hard"):
            where = "" if isinstance(kinds, str) else f" of {label!r}"
            wrong, remedy = f"the kind of intervention{where} is {kind!r}", 'Use "soft" or "hard".'
        elif given.setdefault(label, kind) != kind:
            wrong = f"interventions names the label {label!r} twice, with two kinds"
            remedy = "Name each label once."
        elif who is not None and label not in labels:
            wrong = f"interventions names the label {label!r}, which {who}"
            remedy = did_you_mean(label, labels) or f"The labels are {few(labels)}."
        if wrong:
            raise InputError(wrong, remedy, client=client)
    return given


def check_names(
    name: str, interventions: object, control_name: str, n_latent: object = None
) -> None:
    """Raise an `InputError` unless `interventions` is a mapping and all names are valid.

    And unless `n_latent`, if it is given, is an integer of at least the number of labels.
    """
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"{name!r} is not a name for a client", "Pass a non-empty text.")
    fail = partial(InputError, client=name)
    if not isinstance(interventions, Mapping):
        remedy = 'Pass a dict such as {"valve": X1, "pump": X2}.'
        raise fail("interventions is not a mapping from label to data", remedy)
    if not interventions:
        remedy = "A client needs at least one labelled intervention beside its control."
        raise fail("there is no interventional regime", remedy)
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
            wrong = f"labels {first!r} and {label!r} differ only by case, spaces, _ or -, or as 1 "
            remedy = "Labels are shared between clients: spell each one way."
            raise fail(f"{wrong}and 1.0 do", remedy, regime=label)
    if normal_label(control_name) in map(normal_label, interventions):
        wrong = f"the control's name {control_name!r} is also an intervention label"
        raise fail(wrong, "Rename one of them.", regime=control_name)
    whole = isinstance(n_latent, int | np.integer) and not isinstance(n_latent, bool)
    if n_latent is not None and not (whole and n_latent >= len(interventions)):  # type: ignore[operator]
        wrong = f"n_latent is {n_latent!r} for {pluralise(len(interventions), 'label')}"
        remedy = "It is the number of latents the client accesses: at least the number of labels."
        raise fail(wrong, remedy)


def check_features(name: str, features: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """Names of the features, by default x1, x2 …; an `InputError` if they do not fit."""
    if features is None:
        return tuple(f"x{i + 1}" for i in range(count))
    names = tuple(str(f) for f in features)
    if len(names) != count or len(set(names)) != len(names):
        wrong = f"{pluralise(len(set(names)), 'distinct feature name')} for "
        wrong += pluralise(count, "column")
        raise InputError(wrong, "Name every column once.", client=name)
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


def check_together(
    client: str, names: Sequence[str], moments: Sequence[Moments], features: Sequence[str], p: int
) -> None:
    """Raise an `InputError` unless the moments of all regimes, the control first, fit together.

    `names` are those of the regimes, and p is the number of latents.
    """
    d, control = len(features), moments[0]
    if d < p:
        wrong = f"{pluralise(d, 'feature')} cannot show {pluralise(p, 'latent')}"
        remedy = "Measure at least as many features as labels (or latents), or split the client."
        raise InputError(wrong, remedy, client=client)
    for regime, m in zip(names, moments, strict=True):
        least, more = p + 1 if m is control else 2, max(len(m.batches) - 1, 0)
        wrong, remedy = "", ""
        if len(m.mean) != d:
            wrong = f"it has {pluralise(len(m.mean), 'feature')} where the control has {d}"
            remedy = "Use the same columns in every regime."
        elif (m.n is None) != (control.n is None):
            wrong = "exact and estimated moments are mixed"
            remedy = "Give every regime a sample size, or none."
        elif bool(m.batches) != bool(control.batches):
            wrong = "some regimes have batches and some have none"
            remedy = "Give the batches of every regime, the control included, or of none."
        elif m.n is not None and m.n < least:
            rows = m.rows or 0
            wrong = pluralise(rows, "control row" if m is control else "row")
            wrong += f" in {more + 1} batches" if more else ""
            wrong += " is too few" if rows == 1 else " are too few"
            wrong += f" for {pluralise(p, 'latent')}" if m is control else ""
            kind = "control rows; other regimes may have fewer" if m is control else "rows"
            remedy = f"Take at least {least + more} {kind}."
        elif m is not control and not varying([(m.mean, m.covariance)]).any():
            wrong = "all its rows are the same"
            remedy = "Leave the regime out, or correct its rows."
        if wrong:
            raise InputError(wrong, remedy, client=client, regime=regime)
    # Rows that carry the variance of a feature: beside those of a few, nothing else may be seen.
    variance, carry = np.diagonal(control.covariance), np.full(d, np.inf)
    if control.fourth is not None:
        np.divide((control.rows or 0) * variance**2, control.fourth, carry, where=variance > 0)
    k = int(carry.argmin())
    spoilt = features[k] if carry[k] <= p else None
    rank_of(control.covariance, p, client=client, regime=names[0], features=features, spoilt=spoilt)


def rank_of(
    matrix: FloatArray,
    least: int = 0,
    *,
    client: str | None = None,
    regime: str | None = None,
    features: Sequence[str] = (),
    spoilt: str | None = None,
) -> int:
    """Number of directions of a symmetric matrix above rounding; an `InputError` below `least`.

    `spoilt` names a feature whose variance a few rows carry.
    """
    values = np.linalg.eigvalsh(matrix)
    found = int(np.count_nonzero(values > RANK_TOLERANCE * max(float(values[-1]), 0.0)))
    if found >= least:
        return found
    spread = np.sqrt(np.diagonal(matrix))
    remedy = (
        "Constant columns and copies of other columns add no dimension: measure more features, or "
        "split the client."
    )
    if spoilt is not None:
        remedy = (
            f"A few rows carry the variance of {spoilt!r}, beside which other directions look like "
            "rounding: leave whole rows out with --trim 0.05 (trim=0.05)."
        )
    elif float(spread.max(initial=0.0)) > 1e4 * float(spread.min(initial=np.inf)):
        widest = f" ({features[int(np.argmax(spread))]!r} is the widest)" if features else ""
        remedy = (
            f"Their units differ too much to tell{widest}: leave out a time or an index, and "
            "divide each column by its standard deviation."
        )
    wrong = f"the features span {pluralise(found, 'dimension')}, fewer than the "
    raise InputError(wrong + pluralise(least, "latent"), remedy, client=client, regime=regime)
