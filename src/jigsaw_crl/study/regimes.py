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

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding, Severity
from jigsaw_crl.base.labels import label_key, normal_label
from jigsaw_crl.base.problems import as_one
from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.client.checks import check_names
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.reduction import reduce_columns
from jigsaw_crl.moments.checks import varying
from jigsaw_crl.moments.regime import Moments
from jigsaw_crl.study.collected import Collected
from jigsaw_crl.study.table import Table, quoted

# A covariance needs two rows.
FEWEST_ROWS = 2


def collect(table: Table, *, first: bool = False) -> Collected:
    """Read all rows of a table, in this process or on a cluster."""
    if table.reading.cluster is not None and not first:
        # Imported here for start-up time: it loads pyarrow.
        from jigsaw_crl.study.cluster import collect_on_cluster

        return collect_on_cluster(table)
    collected = Collected(table.features, table.reading, first=first)
    for chunk in table.rows(table):
        collected.add(chunk)
    return collected.finish()


def read_table(table: Table) -> tuple[Client, list[Finding]]:
    """The client of a whole table, and findings; raises what leaves no client.

    Problems of single rows are noted: the client is without these rows, and serves to find further
    problems. A wide table is read twice, unless the directions that replace its columns are given.
    """
    reading, constant = table.reading, list[str]()
    if reading.reduction is not None:
        columns = reading.reduction.columns
        if missing := sorted(set(columns) - set(table.features)):
            remedy = "Pass a table with the columns of the earlier rows."
            raise reading.fail(f"columns are missing: {few(missing)}", remedy)
        table = replace(table, features=columns)
    elif table.wide:
        looked = collect(table, first=True)
        if spoilt := looked.problems():
            raise as_one(spoilt)
        assert looked.sketch is not None
        kept, constant, ignored = looked.used(~looked.sketch.constant(), table.ignored)
        found = reduce_columns(
            looked.sketch,
            table.features,
            labels=len({reading.rename.get(x, x) for x in looked.regimes} - {reading.control}),
            n_latent=reading.n_latent,
            control=[i for (x, _), i in looked.cell_numbers.items() if x == reading.control],
            kept=kept,
        )
        own = reading.model_copy(update={"reduction": found})
        table = replace(table, features=found.columns, reading=own, ignored=ignored)
    collected = collect(table)
    spoilt = collected.problems()
    try:
        client, findings = _client(table, collected, constant)
    except InputError as error:
        # Without bad rows too little may be left; one with a text among numbers stays.
        lost = [x for x in collected.bad.faults if not x.startswith(("text", "dropped"))]
        raise as_one(spoilt if lost else [*spoilt, error]) from None
    reading.problems.extend(spoilt)
    return client, findings


def _client(
    table: Table, collected: Collected, constant: list[str]
) -> tuple[Client, list[Finding]]:
    reading, ignored = table.reading, table.ignored
    control, interventions = collected.moments()
    # First, so that a misspelt label is not left out for its few rows.
    check_names(reading.client, interventions, reading.control)
    interventions, findings = _large_enough(interventions, collected.gone, reading.client)
    if reading.reduction is None:
        regimes = [control, *(m for ms in interventions.values() for m in ms)]
        varied = varying([(m.mean, m.covariance) for m in regimes])
        kept, constant, ignored = collected.used(varied, ignored)
        features = [f for f, keep in zip(table.features, kept, strict=True) if keep]
        if lost := [name for name in reading.covariates if name not in features]:
            raise reading.fail(f"the covariate {lost[0]!r} is constant", "Leave it out.")
        control = control.select(kept)
        interventions = {k: [m.select(kept) for m in ms] for k, ms in interventions.items()}
    else:
        features = list(reading.reduction.features)
    findings += collected.findings(ignored)
    if constant:
        what = f"dropped {quoted(constant)}: constant over all regimes"
        remedy = "Nothing to do, unless it should vary; then check the sensor."
        count, who = float(len(constant)), reading.client
        findings.append(Finding("constant-column", "info", what, remedy, count, client=who))
    client = Client.from_moments(
        reading.client,
        control=control,
        interventions=interventions,
        n_latent=reading.n_latent,
        features=features,
        control_name=reading.control,
        reduction=reading.reduction,
        covariates=reading.covariates,
    )
    return client, findings


def _large_enough(
    interventions: Mapping[str, Sequence[Moments]], gone: Sequence[str], client: str
) -> tuple[dict[str, list[Moments]], list[Finding]]:
    """The regimes that have a covariance, and a finding for each of the others.

    All are kept if none has one: the client as a whole is then refused, with the reason. `gone`
    are the regimes of which no row is left.
    """
    kept, unusable = dict[str, list[Moments]](), list[tuple[str, Severity, str, str]]()
    keys = {label_key(label) for label in interventions}
    for label, regimes in interventions.items():
        parts = {label_key(part) for part in label.split("+")}
        if len(parts) > 1 and parts <= keys - {label_key(label)}:
            # One label stands for one target.
            what = f"its rows have {len(parts)} perturbations, and are not used"
            remedy = "Nothing to do: the regimes of each alone are used."
            unusable.append((label, "warning", what, remedy))
            continue
        good, fault = list[Moments](), ""
        for m in regimes:
            if m.n is not None and m.n < FEWEST_ROWS:
                within = f" in {len(m.batches)} batches" if len(m.batches) > 1 else ""
                fault = f"{pluralise(m.rows or 0, 'row')}{within}, too few for a covariance"
            elif varying([(m.mean, m.covariance)]).any():
                good.append(m)
            else:
                fault = "the same values in all rows"
        kept |= {label: good} if good else {}
        if fault:
            what = f"{'a strength of the label' if good else 'the regime'} has {fault}"
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
