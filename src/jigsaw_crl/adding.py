"""A further site joins a result that is there already: `Result.add`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jigsaw_crl.assembly.conclusion import conclude
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.base.threads import one_thread
from jigsaw_crl.client.checks import Kinds
from jigsaw_crl.client.client import Client
from jigsaw_crl.diagnostics import check_study
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.fragment.reading import fragments_by_client
from jigsaw_crl.pipeline import (
    Method,
    Options,
    Recovered,
    null_cone_only,
    recover_clients,
)
from jigsaw_crl.result.provenance import with_sites
from jigsaw_crl.result.result import Result
from jigsaw_crl.study.folder import Study

__all__ = ["add_sites"]


def add_sites(
    result: Result,
    *sites: Fragment | Client,
    interventions: Kinds | None = None,
    **options: Any,
) -> Result:
    """A result with further sites; see `Result.add`."""
    _check_sites(result, sites)
    method: Method = "paper" if result.order.mode == "paper" else "null-cone"
    clients = [site for site in sites if isinstance(site, Client)]
    named = [*options, *(["interventions"] if interventions is not None else [])]
    if named and not clients:
        raise InputError(
            f"{', '.join(named)}: options belong to the recovery of a client",
            "Drop them; a fragment has been recovered already.",
        )
    chosen = Options(method=method, **options)
    recovered: list[Recovered] = []
    checks: tuple[Finding, ...] = ()
    if interventions is not None:
        null_cone_only(method, "interventions")
    if clients:
        new = Study("new", tuple(clients))
        if interventions is not None:
            new = new.with_interventions(interventions)
        with one_thread():
            recovered, report = recover_clients(new, check_study(new), chosen)
        checks = report.findings
    return _joined(result, sites, {r.fragment.client: r for r in recovered}, checks)


def _check_sites(result: Result, sites: Sequence[object]) -> None:
    """Refuse what is no site, and sites that the result has already."""
    if not sites:
        raise InputError("no site is given to add", "Pass a fragment or a client.")
    for site in sites:
        if not isinstance(site, Fragment | Client):
            raise InputError(
                f"a fragment or a client can be added, not {type(site).__name__}",
                "Pass what `recover_fragment` returns, or a `Client`.",
            )
        name = site.name if isinstance(site, Client) else site.client
        if name in result.fragments:
            raise InputError(
                "the result has this client already",
                "Give the new site another name. To replace a site, recover or assemble again.",
                client=name,
            )


def _joined(
    result: Result,
    sites: Sequence[Fragment | Client],
    recovered: Mapping[str, Recovered],
    checks: tuple[Finding, ...],
) -> Result:
    """The result with the fragments of further sites, some of them recovered just now."""
    # A client of which the checks leave nothing has no fragment; the findings say why.
    new = [
        recovered[site.name].fragment if isinstance(site, Client) else site
        for site in sites
        if not isinstance(site, Client) or site.name in recovered
    ]
    sent = (*result.order.fragments, *new)
    # Refuses labels that differ only by case or spaces.
    fragments_by_client((None, f) for f in sent)
    known_before = (
        *result.diagnostics,
        *checks,
        *(f for piece in new if piece.client not in recovered for f in piece.findings),
    )
    concluded = conclude(sent, known_before, result.order.options)
    order = concluded.order
    fragments = {**result.fragments, **{f.client: f for f in new}}
    if order.mode != "paper":
        known = PartialOrder.from_matrix(order.labels, order.decoded)
        with one_thread():
            fragments |= {name: r.refined(known) for name, r in recovered.items()}
    reports = {name: r.report for name, r in recovered.items()}
    # The proposal for the next client answered another order.
    return replace(
        result,
        fragments=fragments,
        order=order,
        diagnostics=concluded.findings,
        provenance=with_sites(result.provenance, new, reports),
        proposal=None,
    )
