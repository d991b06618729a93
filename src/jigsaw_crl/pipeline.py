"""The conductor: from clients to fragments, from fragments to one order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from jigsaw_crl._version import __version__
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.base.threads import one_thread
from jigsaw_crl.client.client import Client
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.nullcone.recovery import Confounding, RankOne, Recovery
from jigsaw_crl.nullcone.whitening import Start
from jigsaw_crl.result.result import Result

if TYPE_CHECKING:
    from jigsaw_crl.diagnostics import ClientReport

__all__ = ["recover", "recover_fragment"]

Method = Literal["null-cone", "paper"]


def recover_fragment(
    client: Client,
    method: Method = "null-cone",
    *,
    tau: float | None = None,
    budget: int | None = None,
    confounding: Confounding = "allow",
    rank_one: RankOne = "no-ancestor",
) -> Fragment:
    """What one client can know: blocks, districts, ancestry, latent directions.

    Parameters
    ----------
    client : Client
    method : {"null-cone", "paper"}
    tau, budget
        Options of ``method="paper"``: its threshold (default 0.05) and the number of label sets
        its search may look at.
    confounding : {"allow", "none"}
        Option of ``method="null-cone"``: "none" when the client accesses every latent.
    rank_one : {"no-ancestor", "unsure"}
        Option of ``method="null-cone"``: what to conclude about a target whose intervention moved
        a single direction.

    Returns
    -------
    Fragment
        With the latent basis, which stays at the client.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.setting("A", 0)
    >>> fragment = jc.recover_fragment(world.client(0))
    >>> fragment.outcome.ok, set(fragment.blocks) == set(world.truth(0).blocks)
    (True, True)
    """
    from jigsaw_crl.diagnostics import check_client, usable

    _check_options(method, tau, budget, confounding, rank_one)
    # Matrices are small, or many and worked on one after the other: threads gain nothing (400
    # latents) or cost more than the work they would share (25).
    with one_thread():
        report = check_client(client)
        checked = report.findings
        findings = tuple(_unnamed(finding, client) for finding in checked)
        whole, client = client, usable([client], checked)[0]
        if method == "paper":
            return _with_findings(_paper(client, tau, budget), findings)
        start = _start(report) if client.labels == whole.labels else None
        return _read(client, confounding, rank_one, start).fragment(noted=findings)


def recover(
    study: Iterable[Client],
    method: Method = "null-cone",
    *,
    tau: float | None = None,
    budget: int | None = None,
    confounding: Confounding = "allow",
    rank_one: RankOne = "no-ancestor",
    closed_world: bool = False,
    seed: int = 0,
    n_jobs: int = 1,
) -> Result:
    """Recover every client's fragment and assemble them into one global order.

    With the null-cone method the order then goes back to the clients, who settle their districts,
    blocks and latent directions with it; the evidence in their fragments stays their own.

    Parameters
    ----------
    study : Study or iterable of Client
    method, tau, budget, confounding, rank_one
        As for `recover_fragment`; ``method="paper"`` assembles with Algorithm 3.
    closed_world : bool
        Every latent carries a label at some client (exact moments only).
    seed : int
        Of the assembly's sampler.
    n_jobs : int
        Clients worked on at once; the result does not depend on it.

    Returns
    -------
    Result

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.setting("A", 0)
    >>> result = jc.recover(world.client(k) for k in range(world.n_clients))
    >>> result.order.pairs() == world.order.pairs()
    True
    """
    from jigsaw_crl.assembly import assemble
    from jigsaw_crl.diagnostics import check_client, check_districts, check_study, usable
    from jigsaw_crl.study import Study

    _check_options(method, tau, budget, confounding, rank_one)
    if isinstance(study, Client):
        study = [study]
    given = study if isinstance(study, Study) else Study("study", _clients(study))
    reports = _map(n_jobs, check_client, [(c,) for c in given.clients])
    checked = check_study(given.clients, reports)
    findings = (*given.findings, *checked.findings)
    clients = usable(given.clients, findings)
    if method == "paper":
        fragments = _map(n_jobs, _paper, [(c, tau, budget) for c in clients])
        options: dict[str, Any] = {"method": "paper"}
        order = assemble(fragments, **options)
    else:
        starts = {r.client: _start(r) for r in checked.clients}
        whole = {c.name: c.labels for c in given.clients}
        recoveries = _map(
            n_jobs,
            _read,
            [
                (c, confounding, rank_one, starts[c.name] if c.labels == whole[c.name] else None)
                for c in clients
            ],
        )
        options = {"method": "null-cone", "seed": seed, "closed_world": closed_world}
        order = assemble([r.fragment(basis=False) for r in recoveries], **options)
        known = PartialOrder.from_pairs(order.labels, order.pairs())
        refined = _map(n_jobs, _refine, [(r, known) for r in recoveries])
        order = order.with_refined({f.client: f for f in refined})
        by_name = {f.client: f for f in order.fragments}
        fragments = [by_name[c.name] for c in clients]
    findings = (*findings, *(f for piece in fragments for f in piece.findings if f not in findings))
    findings += tuple(check_districts({f.client: f for f in fragments}))
    return Result(
        fragments={f.client: f for f in fragments},
        order=order,
        diagnostics=findings,
        provenance=_provenance(given, seed, checked.clients),
        options=options,
    )


def _clients(study: Iterable[Client]) -> tuple[Client, ...]:
    clients = tuple(study)
    for client in clients:
        if not isinstance(client, Client):
            raise InputError(
                f"a study holds clients, not {type(client).__name__}",
                "Build them with jc.Client.from_samples, or read them with jc.read_study.",
            )
    return clients


def _paper(client: Client, tau: float | None, budget: int | None) -> Fragment:
    from jigsaw_crl import baseline

    limit = baseline.DEFAULT_BUDGET if budget is None else budget
    return baseline.recover_fragment(client, tau=tau, budget=limit)


def _start(report: ClientReport) -> Start:
    return Start(report.spectrum, report.extremes)


def _read(
    client: Client, confounding: Confounding, rank_one: RankOne, start: Start | None
) -> Recovery:
    return Recovery.of(client, confounding=confounding, rank_one=rank_one, start=start)


def _refine(recovery: Recovery, known: PartialOrder[str]) -> Fragment:
    return recovery.fragment(known)


def _map(n_jobs: int, function: Any, arguments: list[tuple[Any, ...]]) -> list[Any]:
    """`function` of every tuple of arguments, in their order.

    Linear algebra runs in one thread here and in every worker: clients are what runs at once, so
    threads would only compete, and sums split between threads differ in their last digit.
    """
    if n_jobs == 1 or len(arguments) < 2:
        with one_thread():
            return [function(*a) for a in arguments]
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend="loky", inner_max_num_threads=1):
        return list(Parallel(n_jobs=n_jobs)(delayed(function)(*a) for a in arguments))


def _unnamed(finding: Finding, client: Client) -> Finding:
    """A finding as it may leave the client: features are not named, unless like a label."""
    from dataclasses import replace

    message = finding.message
    for name in set(client.features) - {*client.labels, client.control_name}:
        message = message.replace(repr(name), "a feature")
    return finding if message == finding.message else replace(finding, message=message)


def _with_findings(fragment: Fragment, findings: Iterable[Finding]) -> Fragment:
    from dataclasses import replace

    known = set(fragment.findings)
    return replace(
        fragment, findings=(*fragment.findings, *(f for f in findings if f not in known))
    )


def _provenance(study: Any, seed: int, checked: Iterable[Any]) -> dict[str, Any]:
    kept = ("n_latent", "eigenvalues", "noise_floor")
    documents = {report.client: report.to_document() for report in checked}
    return {
        "version": __version__,
        "versions": _versions(),
        "study": study.name,
        "seed": seed,
        "sources": dict(study.sources),
        "sha256": dict(study.fingerprints),
        "n_samples": {client.name: client.n_samples for client in study},
        "spectra": {name: {k: d[k] for k in kept} for name, d in documents.items()},
    }


def _versions() -> dict[str, str]:
    import platform
    from importlib.metadata import version

    libraries = ("numpy", "scipy", "numba")
    return {"python": platform.python_version(), **{name: version(name) for name in libraries}}


def _check_options(
    method: str, tau: float | None, budget: int | None, confounding: str, rank_one: str
) -> None:
    if method not in ("null-cone", "paper"):
        raise InputError(f"the method is {method!r}", 'Use "null-cone" or "paper".')
    if method == "null-cone" and (tau is not None or budget is not None):
        raise InputError(
            "tau and budget belong to the paper's method",
            'Drop them, or pass method="paper".',
        )
    if method == "paper" and (confounding, rank_one) != ("allow", "no-ancestor"):
        raise InputError(
            "confounding and rank_one belong to the null-cone method",
            'Drop them, or pass method="null-cone".',
        )
