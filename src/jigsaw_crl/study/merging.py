"""New rows added to earlier moments of the same client."""

from __future__ import annotations

from functools import partial

import numpy as np

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.client.client import Client
from jigsaw_crl.moments.regime import Moments


def merge_clients(earlier: Client, later: Client) -> Client:
    """The client with the rows of both, for adding new rows to earlier moments.

    The labels of both are kept; a label in both must have the same number of strengths.
    """
    fail = partial(InputError, client=earlier.name)
    a, b = earlier.reduction, later.reduction
    same = a is b or (
        a is not None
        and b is not None
        and a.columns == b.columns
        and np.array_equal(a.matrix, b.matrix)
    )
    if not same:
        raise fail(
            "the columns of the two were reduced to different directions",
            "Add rows with --add-to, which reads them along the earlier directions.",
        )
    columns, control, regimes_before = earlier.recorded
    added_columns, added_control, added_regimes = later.recorded
    removed, added_removed = (
        () if c.covariates is None else c.covariates.names for c in (earlier, later)
    )
    if set(removed) != set(added_removed):
        raise fail("the covariates differ", "Name the same ones for all rows of a client.")
    if set(columns) != set(added_columns):
        odd = sorted(set(columns) ^ set(added_columns))
        raise fail(
            f"the features differ: {', '.join(odd)[:100]}", "Merge moments of the same columns."
        )
    if earlier.name != later.name:
        raise fail(
            f"the rows to add are those of client {later.name!r}",
            "Add rows of the same client, or say that they are with --name.",
        )
    for several, one, unlike in (
        ("batches", "batch", bool(earlier.batches) != bool(later.batches)),
        ("groups", "group", (earlier.control.groups is None) != (later.control.groups is None)),
    ):
        if unlike:
            raise fail(
                f"only one of the two has {several}",
                f"Name the {one} column for all rows of a client, or for none.",
            )
    if _same_regime(control, added_control):
        raise fail("these rows are already in the file", "Add each table once.")
    position = {f: i for i, f in enumerate(added_columns)}
    order = np.array([position[f] for f in columns], dtype=np.intp)
    merged: dict[str, list[Moments]] = {k: list(v) for k, v in regimes_before.items()}
    for label, regimes in added_regimes.items():
        added = [m.select(order) for m in regimes]
        if label not in merged:
            merged[label] = added
        elif len(merged[label]) == len(added):
            merged[label] = [a.merge(b) for a, b in zip(merged[label], added, strict=True)]
        else:
            raise fail(
                f"{pluralise(len(merged[label]), 'strength')} cannot be merged with {len(added)}",
                "Merge moments with the same strengths of a label.",
                regime=label,
            )
    torn = sorted((earlier.hard ^ later.hard) & set(earlier.labels) & set(later.labels))
    if torn:
        raise fail(
            "the intervention is hard in one part of the rows and soft in the other",
            "Say the same of both with --interventions, or give the new rows another label.",
            regime=torn[0],
        )
    return Client.from_moments(
        earlier.name,
        control=control.merge(added_control.select(order)),
        interventions=merged,
        n_latent=max(earlier.n_latent, later.n_latent, len(merged)),
        features=columns,
        control_name=earlier.control_name,
        hard=earlier.hard | later.hard,
        reduction=earlier.reduction,
        covariates=removed,
    ).with_sensors({**later.up, **earlier.up}, {**later.units, **earlier.units})


def _same_regime(earlier: Moments, later: Moments) -> bool:
    """Do both have the same rows, as a whole or in a stretch that was merged earlier?"""
    return any(
        a.rows == b.rows
        and a.mean.shape == b.mean.shape
        and np.array_equal(a.mean, b.mean)
        and np.array_equal(a.covariance, b.covariance)
        for a in (earlier, *earlier.parts)
        for b in (later, *later.parts)
    )
