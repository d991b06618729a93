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

import numpy as np

from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.client.checks import check_names
from jigsaw_crl.client.client import Client
from jigsaw_crl.moments.checks import rounding, varies
from jigsaw_crl.moments.regime import Moments
from jigsaw_crl.study.collected import Collected, large_enough
from jigsaw_crl.study.columns import constant_columns, ignored_columns
from jigsaw_crl.study.problems import Problems
from jigsaw_crl.study.source import Reading, Source
from jigsaw_crl.study.wide import Along, FirstRead, is_wide

__all__ = ["Collect", "collect", "read_source"]


def collect(source: Source, reading: Reading, along: Along | None) -> Collected:
    """Read all rows of a table in this process."""
    collected = Collected(source.features, reading, along=along)
    for chunk in source.chunks():
        collected.add(chunk)
    return collected.finish()


# Reads all rows of a table, along directions if they are given.
Collect = Callable[[Source, Reading, Along | None], Collected]


def read_source(
    source: Source, reading: Reading, problems: Problems, collecting: Collect = collect
) -> tuple[Client, list[Finding]] | None:
    """Read a whole table, and note its problems; None if they leave no client.

    With problems, the client is without the rows they are in, and serves to find further ones. A
    wide table is read twice, unless the directions that replace its columns are given.
    """
    along = None
    if reading.reduction is not None:
        source = source.choose(reading.reduction.columns, reading)
        along = Along(reading.reduction, reading.reduction, source.ignored)
    elif is_wide(len(source.features), reading):
        along = _first_read(source, reading, problems)
        if along is None:
            return None
    collected = collecting(source, reading, along)
    spoilt = _noted(collected, problems)
    with problems.noted():
        collected.check_regimes()
        if spoilt and reading.control not in collected.regimes:
            return None
        control, interventions = collected.moments()
        try:
            # First, so that a misspelt label is not left out for its few rows.
            check_names(reading.client, interventions, reading.control)
            return _client(source, collected, along, control, interventions)
        except InputError as error:
            # Without the bad rows too little may be left.
            if not spoilt:
                raise error.located(path=reading.path) from None
    return None


def _noted(collected: Collected, problems: Problems) -> bool:
    """Note the problems of single rows; are there any?"""
    spoilt = collected.bad.problems()
    for error in spoilt:
        problems.note(error)
    return bool(spoilt)


def _first_read(source: Source, reading: Reading, problems: Problems) -> Along | None:
    """Read a wide table for the directions that replace its columns; None if it has problems."""
    first = FirstRead(source.features, reading)
    collected = Collected(source.features, reading, first=first)
    for chunk in source.chunks():
        collected.add(chunk)
    spoilt = _noted(collected, problems)
    with problems.noted():
        collected.check_regimes()
        if not spoilt:
            collected.check_control()
            kept, constant, ignored = collected.used(~first.constant(), source.ignored)
            found = first.reduction(kept)
            return Along(found, found.select(kept), ignored, constant)
    return None


def _client(
    source: Source,
    collected: Collected,
    along: Along | None,
    control: Moments,
    interventions: dict[str, list[Moments]],
) -> tuple[Client, list[Finding]]:
    reading = collected.reading
    interventions, findings = large_enough(interventions, collected.gone(), reading.client)
    if along is None:
        varying = varying_columns(control, interventions)
        kept, constant, ignored = collected.used(varying, source.ignored)
        features = [f for f, keep in zip(source.features, kept, strict=True) if keep]
        lost = [name for name in reading.covariates if name not in features]
        if lost:
            raise reading.fail(f"the covariate {lost[0]!r} is constant", "Leave it out.")
        if not kept.all():
            control = control.select(kept)
            interventions = {k: [m.select(kept) for m in ms] for k, ms in interventions.items()}
    else:
        features, constant, ignored = list(along.own.features), along.constant, along.ignored
    findings += [
        *ignored_columns(ignored, reading.client),
        *collected.findings(),
        *constant_columns(constant, reading.client),
    ]
    client = Client.from_moments(
        reading.client,
        control=control,
        interventions=interventions,
        n_latent=reading.n_latent,
        features=features,
        control_name=reading.control,
        reduction=None if along is None else along.own,
        covariates=reading.covariates,
    )
    return client, findings


def varying_columns(control: Moments, interventions: Mapping[str, Sequence[Moments]]) -> BoolArray:
    """Which features vary within a regime or between regimes."""
    regimes = [control, *(m for ms in interventions.values() for m in ms)]
    means = np.array([m.mean for m in regimes])
    within = np.any([varies(m.mean, m.covariance) for m in regimes], axis=0)
    return np.asarray(within | (np.ptp(means, axis=0) > rounding(means).max(axis=0)))
