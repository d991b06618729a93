"""From the rows of a table to a client: the rules that all file formats share.

- The regime column gives the regime of each row; a missing value in it is an error. So do
  the batch and the group column, if they are named.
- Numeric columns are features. Text, dates and booleans are ignored, with a finding.
- A missing or infinite value in a feature is an error that names the column and the row; on request
  rows with missing values are left out or used by EM, and the rows that lie farthest out are left
  out.
- What is wrong is collected, as far as it can be told without what was wrong before.
- A column that is constant over all regimes is dropped, and one that numbers the rows ignored, with
  a finding.
- A regime with a single row, or whose rows are all the same, is left out, with a finding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding, Severity
from jigsaw_crl.base.labels import label_key, normal_label
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.client.checks import check_names
from jigsaw_crl.client.client import Client
from jigsaw_crl.moments.checks import rounding, varies
from jigsaw_crl.moments.regime import Moments
from jigsaw_crl.study.collected import Along, Collected, FirstRead
from jigsaw_crl.study.problems import raise_all
from jigsaw_crl.study.table import Table, ignored_columns, quoted

# A covariance needs two rows.
FEWEST_ROWS = 2


def collect(table: Table, along: Along | None = None, first: FirstRead | None = None) -> Collected:
    """Read all rows of a table, in this process or on a cluster."""
    if table.reading.cluster is not None and first is None:
        # Imported here for start-up time: it loads pyarrow.
        from jigsaw_crl.study.cluster import collect_on_cluster

        return collect_on_cluster(table, along)
    collected = Collected(table.features, table.reading, along=along, first=first)
    for chunk in table.chunks():
        collected.add(chunk)
    return collected.finish()


def read_table(table: Table) -> tuple[Client, list[Finding]]:
    """The client of a whole table, and findings; raises what leaves no client.

    Problems of single rows are noted: the client is without these rows, and serves to find further
    problems. A wide table is read twice, unless the directions that replace its columns are given.
    """
    along, reading = None, table.reading
    if reading.reduction is not None:
        table = table.choose(reading.reduction.columns)
        along = Along(reading.reduction, reading.reduction, table.ignored)
    elif table.is_wide:
        first = FirstRead(table.features, reading)
        looked = collect(table, first=first)
        raise_all(looked.problems())
        looked.check_control()
        kept, constant, ignored = looked.used(~first.constant(), table.ignored)
        found = first.reduction(kept)
        along = Along(found, found.select(kept), ignored, constant)
    collected = collect(table, along)
    spoilt = collected.problems()
    try:
        client, findings = _client(table, collected, along)
    except InputError as error:
        # Without the bad rows too little may be left.
        raise_all(spoilt or [error.located(path=reading.path)])
        raise
    reading.problems.extend(spoilt)
    return client, findings


def _client(
    table: Table, collected: Collected, along: Along | None
) -> tuple[Client, list[Finding]]:
    reading = collected.reading
    control, interventions = collected.moments()
    # First, so that a misspelt label is not left out for its few rows.
    check_names(reading.client, interventions, reading.control)
    interventions, findings = _large_enough(interventions, collected.gone(), reading.client)
    if along is None:
        varying = varying_columns(control, interventions)
        kept, constant, ignored = collected.used(varying, table.ignored)
        features = [f for f, keep in zip(table.features, kept, strict=True) if keep]
        lost = [name for name in reading.covariates if name not in features]
        if lost:
            raise reading.fail(f"the covariate {lost[0]!r} is constant", "Leave it out.")
        control = control.select(kept)
        interventions = {k: [m.select(kept) for m in ms] for k, ms in interventions.items()}
    else:
        features, constant, ignored = list(along.own.features), along.constant, along.ignored
    findings += [*ignored_columns(ignored, reading.client), *collected.findings()]
    if constant:
        what = f"dropped {quoted(constant)}: constant over all regimes"
        remedy = "Nothing to do, unless it should vary; then check the sensor."
        about = Finding("constant-column", "info", what, remedy, client=reading.client)
        findings.append(replace(about, value=float(len(constant))))
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


def _large_enough(
    interventions: Mapping[str, Sequence[Moments]], gone: Sequence[str], client: str
) -> tuple[dict[str, list[Moments]], list[Finding]]:
    """The regimes that have a covariance, and a finding for each of the others.

    All are kept if none has one: the client as a whole is then refused, with the reason. `gone`
    are the regimes of which no row is left.
    """
    kept: dict[str, list[Moments]] = {}
    unusable: list[tuple[str, Severity, str, str]] = []
    keys = {label_key(label) for label in interventions}
    for label, regimes in interventions.items():
        parts = [label_key(part) for part in label.split("+")]
        if len(parts) > 1 and set(parts) <= keys - {label_key(label)}:
            # One label stands for one target.
            what = f"its rows have {len(parts)} perturbations, and are not used"
            remedy = "Nothing to do: the regimes of each alone are used."
            unusable.append((label, "warning", what, remedy))
            continue
        faults = [_fault(m) for m in regimes]
        good = [m for m, fault in zip(regimes, faults, strict=True) if not fault]
        if good:
            kept[label] = good
        if any(faults):
            subject = "a strength of the label" if good else "the regime"
            what = f"{subject} has {next(filter(None, reversed(faults)))}"
            remedy = "Take more rows, or remove these."
            unusable.append((label, "warning" if good else "error", what, remedy))
    if not kept:
        kept, unusable = {k: list(v) for k, v in interventions.items()}, []
    remedy = "Take more rows, or leave out the columns in which they are missing."
    every = "every row of the regime has a missing value"
    unusable += [(regime, "error", every, remedy) for regime in gone]
    return kept, [
        Finding("unusable-regime", severity, what, why, client=client, regime=normal_label(label))
        for label, severity, what, why in unusable
    ]


def _fault(m: Moments) -> str:
    if m.n is not None and m.n < FEWEST_ROWS:
        within = f" in {len(m.batches)} batches" if len(m.batches) > 1 else ""
        return f"{pluralise(m.rows or 0, 'row')}{within}, too few for a covariance"
    return "" if varies(m.mean, m.covariance).any() else "the same values in all rows"
