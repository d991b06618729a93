"""A client from a table in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jigsaw_crl.base.findings import Finding
from jigsaw_crl.client.checks import Kinds
from jigsaw_crl.client.client import CONTROL, Client
from jigsaw_crl.study.arrow import table_source
from jigsaw_crl.study.columns import warn_of_ignored
from jigsaw_crl.study.problems import Problems, read_through
from jigsaw_crl.study.regimes import read_source
from jigsaw_crl.study.source import Missing, Reading

__all__ = ["client_from_table"]


def client_from_table(
    frame: Any,
    *,
    regime: str = "regime",
    control: str = CONTROL,
    name: str,
    n_latent: int | None = None,
    ignore: Sequence[str] = (),
    batch: str | None = None,
    group: str | None = None,
    trim: float = 0.0,
    missing: Missing = "refuse",
    interventions: Kinds | None = None,
) -> Client:
    """A client from a table in memory; see `Client.from_table`."""
    asked = Reading(
        None, name, regime=regime, control=str(control), ignore=tuple(ignore), batch=batch,
        group=group, trim=trim, missing=missing, n_latent=n_latent,
    )  # fmt: skip
    problems = Problems()

    def read_as(reading: Reading) -> tuple[Client, list[Finding]] | None:
        return read_source(table_source(frame, reading), reading, problems)

    read = read_through(read_as, asked, problems)
    problems.raise_all(client=name)
    assert read is not None
    client, findings = read
    warn_of_ignored(findings, stacklevel=3)
    return (
        client if interventions is None else client.with_interventions(interventions, strict=True)
    )
