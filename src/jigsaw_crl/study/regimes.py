"""From chunks of rows to a client: the rules that all file formats share.

- The regime column gives the regime of each row; a missing value in it is an error. So do
  the batch and the group column, if they are named.
- Numeric columns are features. Text, dates and booleans are ignored, with a finding.
- A missing or infinite value in a feature is an error that names the column and the row; on request
  rows with missing values are left out or used by EM, and the rows that lie farthest out are left
  out.
- What is wrong is collected, as far as it can be told without what was wrong before.
- A column that is constant over all regimes is dropped, and one that rises from row to row ignored,
  with a finding.
- A regime with a single row, or whose rows are all the same, is left out, with a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.client.checks import check_names
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.reduction import Reduction
from jigsaw_crl.moments.checks import rounding, varies
from jigsaw_crl.moments.regime import Moments
from jigsaw_crl.study.ignored import constant_columns, ignored_columns
from jigsaw_crl.study.problems import Problems
from jigsaw_crl.study.regime_streams import RegimeStreams
from jigsaw_crl.study.source import Naming, Source
from jigsaw_crl.study.too_small import large_enough, without_rows
from jigsaw_crl.study.wide import Along, FirstRead, is_wide

__all__ = ["client_from_source", "read_source", "varying_columns"]

T = TypeVar("T")


def client_from_source(
    source: Source,
    *,
    name: str,
    naming: Naming,
    n_latent: int | None,
    path: object | None = None,
    reduction: Reduction | None = None,
) -> tuple[Client, list[Finding]]:
    """Read a whole table; returns the client and the findings about its columns."""
    problems, read = Problems(), None
    with problems.noted():
        read = read_source(
            source, name=name, naming=naming, n_latent=n_latent, path=path, problems=problems,
            reduction=reduction,
        )  # fmt: skip
    problems.raise_all(path=path, client=name)
    assert read is not None
    return read


def read_source(
    source: Source,
    *,
    name: str,
    naming: Naming,
    n_latent: int | None,
    path: object | None,
    problems: Problems,
    reduction: Reduction | None = None,
) -> tuple[Client, list[Finding]] | None:
    """Read a whole table, and note its problems; None if they leave no client.

    With problems, the client is without the rows they are in, and serves to find further ones. A
    wide table is read twice, unless the directions that replace its columns are given.
    """
    along = None
    if reduction is not None:
        source = source.choose(reduction.columns, name, path)
        along = Along(reduction, reduction, source.ignored)
    elif is_wide(len(source.features), naming):
        along = _first_read(source, name, naming, n_latent, path, problems)
        if along is None:
            return None
    collected = RegimeStreams(source.features, naming, name, path, along=along)
    spoilt = _read_rows(source, collected, problems)
    with problems.noted():
        collected.check_regimes()
        if spoilt and naming.control not in collected.streams:
            return None
        control, interventions = collected.moments(n_latent)
        # First, so that a misspelt label is not left out for its few rows.
        _located(path, check_names, name, interventions, naming.control)
        try:
            return _client(source, collected, control, interventions, n_latent)
        except InputError:
            # Without the bad rows too little may be left.
            if not spoilt:
                raise
    return None


def _read_rows(source: Source, collected: RegimeStreams, problems: Problems) -> bool:
    """Read all rows, and note the problems of single rows; are there any?"""
    for chunk in source.chunks():
        collected.add(chunk)
    spoilt = collected.bad.problems()
    for error in spoilt:
        problems.note(error)
    return bool(spoilt)


def _located(path: object | None, call: Callable[..., T], *given: Any, **named: Any) -> T:
    try:
        return call(*given, **named)
    except InputError as error:
        raise error.located(path=path) from None


def _first_read(
    source: Source,
    name: str,
    naming: Naming,
    n_latent: int | None,
    path: object | None,
    problems: Problems,
) -> Along | None:
    """Read a wide table for the directions that replace its columns; None if it has problems."""
    first = FirstRead(len(source.features), n_latent)
    collected = RegimeStreams(source.features, naming, name, path, read=first)
    spoilt = _read_rows(source, collected, problems)
    with problems.noted():
        collected.check_regimes()
        if not spoilt:
            collected.check_control()
            kept, constant, ignored = collected.used(~first.constant(), source.ignored)
            found = first.reduction(source.features, naming, n_latent, kept)
            return Along(found, found.select(kept), ignored, constant)
    return None


def _client(
    source: Source,
    collected: RegimeStreams,
    control: Moments,
    interventions: dict[str, list[Moments]],
    n_latent: int | None,
) -> tuple[Client, list[Finding]]:
    name, naming, along = collected.client, collected.naming, collected.along
    interventions, too_small = large_enough(interventions, name)
    if along is None:
        varying = varying_columns(control, interventions)
        kept, constant, ignored = collected.used(varying, source.ignored)
        features = [f for f, keep in zip(source.features, kept, strict=True) if keep]
        if not kept.all():
            control = control.select(kept)
            interventions = {k: [m.select(kept) for m in ms] for k, ms in interventions.items()}
    else:
        features, constant, ignored = list(along.own.features), along.constant, along.ignored
    findings = [
        *too_small,
        *without_rows(collected.gone(), name),
        *ignored_columns(ignored, name),
        *collected.left_out(),
        *constant_columns(constant, name),
    ]
    client = _located(
        collected.path,
        Client.from_moments,
        name,
        control=control,
        interventions=interventions,
        n_latent=n_latent,
        features=features,
        control_name=naming.control,
        reduction=None if along is None else along.own,
    )
    return client, findings


def varying_columns(control: Moments, interventions: Mapping[str, Sequence[Moments]]) -> BoolArray:
    """Which features vary within a regime or between regimes."""
    regimes = [control, *(m for ms in interventions.values() for m in ms)]
    means = np.array([m.mean for m in regimes])
    within = np.any([varies(m.mean, m.covariance) for m in regimes], axis=0)
    return np.asarray(within | (np.ptp(means, axis=0) > rounding(means).max(axis=0)))
