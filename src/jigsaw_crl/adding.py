"""Results of fragments; sites that join one, are replaced by corrected data, or leave."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from jigsaw_crl.assembly.conclusion import conclude
from jigsaw_crl.assembly.order import Options as AssemblyOptions
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding, spelling_notes
from jigsaw_crl.base.labels import respelt
from jigsaw_crl.base.text import did_you_mean, few
from jigsaw_crl.client.client import Client
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.fragment.reading import fragments_by_client
from jigsaw_crl.pipeline import Options, Recovered, recover_study, settled
from jigsaw_crl.result.difference import difference
from jigsaw_crl.result.provenance import with_sites
from jigsaw_crl.result.result import Result
from jigsaw_crl.study.folder import Study

__all__ = ["add_sites", "assembled", "changed", "remove_sites"]


def add_sites(
    result: Result, *sites: Fragment | Client, replace: bool = False, **options: Any
) -> Result:
    """A result with further or corrected sites; see `Result.add`."""
    names = [_name_of(site) for site in sites]
    if not sites:
        raise InputError("no client is given to add", "Pass a fragment or a client.")
    for name in names:
        if replace:
            _check_known(result, name, "to replace")
        elif name in result.fragments:
            raise InputError(
                "the result has this client already",
                "If these are corrected data of it, pass replace=True (--replace).",
                client=name,
            )
    chosen = Options(method=result.order.options.method, **options)
    clients = tuple(site for site in sites if isinstance(site, Client))
    recovered: list[Recovered] = []
    checks: tuple[Finding, ...] = ()
    if clients:
        # A client of which the checks leave nothing has no fragment; the findings say why.
        others = respelt((client.labels for client in clients), result.order.labels)
        pairs = list(zip(clients, others, strict=True))
        new = tuple(client.relabelled(other) for client, other in pairs)
        notes = (note for client, other in pairs for note in spelling_notes(other, client.name))
        recovered, report = recover_study(Study("new", new), chosen)
        checks = (*report.findings, *notes)
    elif options:
        raise InputError(
            f"{', '.join(options)}: options belong to the recovery of a client",
            "Drop them; a fragment has been recovered already.",
        )
    sent = [site for site in sites if isinstance(site, Fragment)]
    return _joined(result, names if replace else (), sent, recovered, checks)


def remove_sites(result: Result, *sites: str) -> Result:
    """A result without some of its sites; see `Result.remove`."""
    for name in sites:
        _check_known(result, name, "to remove")
    if not sites or set(sites) >= set(result.fragments):
        raise InputError(
            "no client is named to remove" if not sites else "no client would be left",
            "Name some of the result's clients.",
        )
    return _joined(result, sites)


def assembled(
    fragments: Mapping[str, Fragment],
    options: AssemblyOptions,
    provenance: Mapping[str, Any],
    noticed: Sequence[Finding] = (),
) -> Result:
    """The result of fragments, with what is known of their origin and was noticed before."""
    options.knowledge.check({label for piece in fragments.values() for label in piece.labels})
    concluded = conclude(fragments.values(), options=options)
    return Result(fragments, concluded.order, (*noticed, *concluded.findings), provenance)


def changed(
    result: Result,
    sent: Mapping[str, Fragment],
    gone: Sequence[str],
    provenance: Mapping[str, Any],
    *,
    replace: bool = False,
) -> Result:
    """A result without some sites and with fragments that were sent, and what that changed.

    `provenance` is what is known of the fragments; it joins that of the result.
    """
    grown = remove_sites(result, *gone) if gone else result
    if sent:
        grown = add_sites(grown, *sent.values(), replace=replace)
    joined = {
        name: {**grown.provenance.get(name, {}), **more} if isinstance(more, dict) else more
        for name, more in provenance.items()
    }
    since = {"since": difference(result, grown).news}
    return dataclasses.replace(grown, provenance={**grown.provenance, **joined, **since})


def _name_of(site: object) -> str:
    if isinstance(site, Fragment | Client):
        return site.name if isinstance(site, Client) else site.client
    raise InputError(
        f"a fragment or a client can be added, not {type(site).__name__}",
        "Pass what `recover_fragment` returns, or a `Client`.",
    )


def _check_known(result: Result, name: str, what: str) -> None:
    if name not in result.fragments:
        near = did_you_mean(name, result.fragments)
        raise InputError(
            f"the result has no client {name!r} {what}",
            f"Its clients are {few(result.fragments)}. {near}".strip(),
        )


def _joined(
    result: Result,
    gone: Collection[str],
    sent: Sequence[Fragment] = (),
    recovered: Sequence[Recovered] = (),
    checks: tuple[Finding, ...] = (),
) -> Result:
    """The result without some sites, with fragments that were sent and clients just recovered.

    If sites are gone, blocks and bases of the others are those that they sent: the order that
    settled them is gone too.
    """
    kept = [f for f in result.order.fragments if f.client not in gone]
    new = [*sent, *(r.fragment for r in recovered)]
    everyone = fragments_by_client(((None, f) for f in (*kept, *new)), known=result.order.labels)
    known = (
        f
        for f in result.diagnostics
        if f.client not in gone and not any(f"client {name!r}" in f.message for name in gone)
    )
    found = (*known, *checks, *(f for fragment in sent for f in everyone[fragment.client].findings))
    concluded = conclude(everyone.values(), found, result.order.options)
    before = everyone if gone else {**everyone, **result.fragments}
    # The proposal for the next client answered another order.
    return dataclasses.replace(
        result,
        fragments={**before, **settled(recovered, concluded.order)},
        order=concluded.order,
        diagnostics=concluded.findings,
        provenance=with_sites(result.provenance, gone, new),
        proposal=None,
    )
