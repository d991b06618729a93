"""Sites of a result join it, are replaced by corrected data, or leave: `Result.add`, `remove`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jigsaw_crl.assembly.conclusion import conclude
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.base.text import did_you_mean, few
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
from jigsaw_crl.result.provenance import with_sites, without_sites
from jigsaw_crl.result.result import Result
from jigsaw_crl.study.folder import Study

__all__ = ["add_sites", "remove_sites"]


def add_sites(
    result: Result,
    *sites: Fragment | Client,
    replace: bool = False,
    interventions: Kinds | None = None,
    **options: Any,
) -> Result:
    """A result with further or corrected sites; see `Result.add`."""
    _check_sites(result, sites, replace)
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
    names = [site.name if isinstance(site, Client) else site.client for site in sites]
    rest = _without(result, names if replace else ())
    return _joined(rest, sites, {r.fragment.client: r for r in recovered}, checks)


def remove_sites(result: Result, *sites: str) -> Result:
    """A result without some of its sites; see `Result.remove`."""
    for name in sites:
        _check_known(result, name, "to remove")
    if not sites or set(sites) >= set(result.fragments):
        raise InputError(
            "no site is named to remove" if not sites else "no site would be left",
            "Name some of the result's sites.",
        )
    return _joined(_without(result, sites), (), {}, ())


def _without(result: Result, names: Iterable[str]) -> Rest:
    """What is left of a result without these sites.

    Blocks and bases of the others are those that they sent: the order that settled them is gone.
    """
    gone = set(names)
    kept = [f for f in result.order.fragments if f.client not in gone]
    findings = tuple(
        f
        for f in result.diagnostics
        if f.client not in gone and not any(f"client {name!r}" in f.message for name in gone)
    )
    fragments = dict(result.fragments) if not gone else {f.client: f for f in kept}
    return Rest(result, kept, fragments, findings, without_sites(result.provenance, gone))


def _check_known(result: Result, name: str, what: str) -> None:
    if name not in result.fragments:
        near = did_you_mean(name, result.fragments)
        raise InputError(
            f"the result has no client {name!r} {what}",
            f"Its clients are {few(result.fragments)}. {near}".strip(),
        )


def _check_sites(result: Result, sites: Sequence[object], replaced: bool) -> None:
    """Refuse what is no site, sites that are there already, and none to be replaced."""
    if not sites:
        raise InputError("no site is given to add", "Pass a fragment or a client.")
    for site in sites:
        if not isinstance(site, Fragment | Client):
            raise InputError(
                f"a fragment or a client can be added, not {type(site).__name__}",
                "Pass what `recover_fragment` returns, or a `Client`.",
            )
        name = site.name if isinstance(site, Client) else site.client
        if replaced:
            _check_known(result, name, "to replace")
        elif name in result.fragments:
            raise InputError(
                "the result has this client already",
                "If these are corrected data of it, pass replace=True (--replace).",
                client=name,
            )


@dataclass(frozen=True, eq=False)
class Rest:
    """A result, and what of it further sites join: fragments as sent and as settled, and so on."""

    result: Result
    sent: list[Fragment]
    fragments: dict[str, Fragment]
    findings: tuple[Finding, ...]
    provenance: dict[str, Any]


def _joined(
    rest: Rest,
    sites: Sequence[Fragment | Client],
    recovered: Mapping[str, Recovered],
    checks: tuple[Finding, ...],
) -> Result:
    """What is left of a result with further sites, some of them recovered just now."""
    # A client of which the checks leave nothing has no fragment; the findings say why.
    new = [
        recovered[site.name].fragment if isinstance(site, Client) else site
        for site in sites
        if not isinstance(site, Client) or site.name in recovered
    ]
    sent = (*rest.sent, *new)
    # Refuses labels that differ only by case or spaces.
    fragments_by_client((None, f) for f in sent)
    known_before = (
        *rest.findings,
        *checks,
        *(f for piece in new if piece.client not in recovered for f in piece.findings),
    )
    concluded = conclude(sent, known_before, rest.result.order.options)
    order = concluded.order
    fragments = {**rest.fragments, **{f.client: f for f in new}}
    if order.mode != "paper":
        known = PartialOrder.from_matrix(order.labels, order.decoded)
        with one_thread():
            fragments |= {name: r.refined(known) for name, r in recovered.items()}
    reports = {name: r.report for name, r in recovered.items()}
    # The proposal for the next client answered another order.
    return dataclasses.replace(
        rest.result,
        fragments=fragments,
        order=order,
        diagnostics=concluded.findings,
        provenance=with_sites(rest.provenance, new, reports),
        proposal=None,
    )
