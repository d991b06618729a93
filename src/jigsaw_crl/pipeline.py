"""From clients to fragments, and from fragments to one order.

Every route to a fragment ends in `recover_study`: `recover_fragment`, `recover` and `Result.add`,
the scikit-learn estimator, and the commands `check`, `fragment` and `recover`. The steps are

    check_client ──► usable ──► recover_client ──► conclude ──► Recovered.refined

and each is taken once per client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import get_args

import numpy as np
from scipy.special import chdtrc

from jigsaw_crl import baseline
from jigsaw_crl.assembly.conclusion import conclude
from jigsaw_crl.assembly.order import GlobalOrder, Witnesses
from jigsaw_crl.assembly.order import Options as AssemblyOptions
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.knowledge import Knowledge
from jigsaw_crl.base.nulls import CLEARLY, LENIENT
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.base.threads import in_parallel
from jigsaw_crl.client.checks import Kinds
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.relations import broken_relations
from jigsaw_crl.diagnostics import ClientReport, StudyReport, check_client
from jigsaw_crl.diagnostics.checks import check_copies
from jigsaw_crl.diagnostics.findings import finding
from jigsaw_crl.diagnostics.rows import is_skewed
from jigsaw_crl.fragment.fragment import Fragment, Method, RankOne
from jigsaw_crl.nullcone.reading import Sight
from jigsaw_crl.nullcone.recovery import Confounding, Recovery
from jigsaw_crl.result.provenance import provenance_of
from jigsaw_crl.result.result import Result
from jigsaw_crl.study.folder import Study
from jigsaw_crl.usable import after_recovery, usable

__all__ = [
    "Options",
    "Recovered",
    "recover",
    "recover_client",
    "recover_fragment",
    "recover_study",
    "settled",
]


@dataclass(frozen=True)
class Options:
    """The options of one client's recovery; see `recover_fragment`.

    Raises
    ------
    InputError
        The method or an option's value is unknown, or an option belongs to the other method.
    """

    method: Method = "null-cone"
    tau: float | None = None
    budget: int | None = None
    confounding: Confounding = "allow"
    rank_one: RankOne | None = None
    interventions: Kinds | None = None

    def __post_init__(self) -> None:
        if self.method not in ("null-cone", "paper"):
            raise InputError(f"the method is {self.method!r}", 'Use "null-cone" or "paper".')
        for name, allowed in (("confounding", Confounding), ("rank_one", RankOne)):
            values = get_args(allowed)
            if (value := getattr(self, name)) not in (None, *values):
                known = ", ".join(repr(x) for x in values)
                raise InputError(f"{name} is {value!r}", f"Use one of {known}.")
        if self.method == "null-cone" and (self.tau is not None or self.budget is not None):
            raise InputError(
                "tau and budget belong to the paper's method", 'Drop them, or pass method="paper".'
            )
        for name in ("confounding", "rank_one", "interventions"):
            if self.method == "paper" and getattr(self, name) != getattr(Options, name):
                raise InputError(
                    f"{name} belongs to the null-cone method",
                    'Drop it, or pass method="null-cone".',
                )


@dataclass(frozen=True, eq=False)
class Recovered:
    """One client after recovery.

    Parameters
    ----------
    fragment : Fragment
        What the client shares. Its findings name no features.
    report : ClientReport
        The checks of the client, in agreement with what recovery could read.
    recovery : Recovery or None
        What was read from the client; None from the paper's method.
    """

    fragment: Fragment
    report: ClientReport
    recovery: Recovery | None

    def refined(self, order: PartialOrder[str]) -> Fragment:
        """The fragment with districts, blocks and basis settled by the global order."""
        if self.recovery is None:
            return self.fragment
        return self.recovery.refined(self.fragment, order)


# -- one client -----------------------------------------------------------------------------------


def recover_client(
    client: Client,
    report: ClientReport,
    options: Options,
    sight: Sight | None = None,
    *,
    basis: bool = True,
) -> Recovered:
    """Recover one client: the only way from a client to its fragment.

    The client is without the labels that the checks refused, the report about all of it. `sight` is
    what was seen of the client before the system was found not to be linear.
    """
    recovery: Recovery | None = None
    if options.method == "paper":
        budget = baseline.DEFAULT_BUDGET if options.budget is None else options.budget
        fragment = baseline.recover_fragment(client, tau=options.tau, budget=budget)
        columns = client.reduction or client.covariates
        if columns is not None and fragment.basis is not None:
            fragment = replace(fragment, basis=columns.to_columns(fragment.basis))
    else:
        confounding, rank_one = options.confounding, options.rank_one
        recovery = Recovery.of(client, confounding=confounding, rank_one=rank_one, sight=sight)
        labels = frozenset(client.labels)
        found = after_recovery(client.name, report.findings, labels, tuple(recovery.unread))
        if recovery.nonlinear is not None and client.reduction is None:
            # What is read without linearity is the system: its sensors must be linear.
            read = client.linear
            misfit = broken_relations((read.control, *read.regimes), read.n_latent)
            if misfit > CLEARLY:
                bent = finding("not-linear/sensors", misfit, CLEARLY, client=client.name)
                found = (*found, bent)
        report = replace(report, findings=found)
        fragment = recovery.fragment(basis=basis)
    findings = dict.fromkeys(_without_features(f, client) for f in report.findings)
    # Of a wide table only the directions are known.
    carried = None if client.reduction is not None else fragment.carried
    fragment = replace(
        fragment,
        findings=tuple(findings),
        features=client.columns,
        centre=client.centre,
        carried=carried and replace(carried, up=client.up, units=client.units),
    )
    return Recovered(fragment, report, recovery)


def recover_fragment(
    client: Client,
    method: Method = "null-cone",
    *,
    tau: float | None = None,
    budget: int | None = None,
    confounding: Confounding = "allow",
    rank_one: RankOne | None = None,
    interventions: Kinds | None = None,
) -> Fragment:
    """One client's fragment: blocks, districts, evidence for ancestry, latent directions.

    Parameters
    ----------
    client : Client
    method : {"null-cone", "paper"}
    tau, budget
        Options of ``method="paper"``: its threshold (default 0.05) and the number of label sets
        its search may look at.
    confounding : {"allow", "none"}
        Option of ``method="null-cone"``: "none" when the client accesses every latent.
    rank_one : {"no-ancestor", "unsure"}, optional
        Option of ``method="null-cone"``: what to conclude about a target whose intervention moved
        a single direction. It has no ancestors, or its intervention changed noise alone; by
        default nothing is said of its ancestors, unless it is hard or the moments are exact.
    interventions : {"soft", "hard"} or mapping of label to one of these, optional
        Which interventions are hard: see `Client.with_interventions`.

    Returns
    -------
    Fragment
        With the latent basis, which stays at the client.

    Raises
    ------
    InputError
        The checks refuse the client, or an option does not fit the method.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.setting("A", 0)
    >>> fragment = jc.recover_fragment(world.client(0))
    >>> fragment.outcome.ok, set(fragment.blocks) == set(world.truth(0).blocks)
    (True, True)
    """
    options = Options(method, tau, budget, confounding, rank_one, interventions)
    ((recovered,), _) = recover_study(Study(client.name, (client,)), options, basis=True)
    return recovered.fragment


# -- all clients ----------------------------------------------------------------------------------


def recover_study(
    study: Study,
    options: Options,
    report: StudyReport | None = None,
    *,
    n_jobs: int = 1,
    basis: bool = False,
) -> tuple[list[Recovered], StudyReport]:
    """The clients of a study that can be used after recovery, and the report about all of them.

    The parameters are those of `recover_clients`.

    Raises
    ------
    InputError
        No client can be used.
    """
    recovered, report = recover_clients(study, options, report, n_jobs=n_jobs, basis=basis)
    return only_usable(study, recovered, report), report


def only_usable(
    study: Study, recovered: Iterable[Recovered], report: StudyReport
) -> list[Recovered]:
    """The recovered clients that the report, which agrees with recovery, does not exclude.

    Raises
    ------
    InputError
        No client is left.
    """
    left = {c.name for c in usable(study.clients, report.findings)}
    return [r for r in recovered if r.fragment.client in left]


def recover_clients(
    study: Study,
    options: Options,
    report: StudyReport | None = None,
    *,
    n_jobs: int = 1,
    basis: bool = False,
    refused: Callable[[InputError], None] | None = None,
) -> tuple[list[Recovered], StudyReport]:
    """Check every client of a study, and recover those that the checks allow, each on its own.

    `report` are the study's checks, if they have been made; the report that is returned agrees with
    what recovery could read. `basis` asks for latent bases, which `Recovered.refined` makes anyway.
    If the checks refuse every client, an `InputError` is raised; where `refused` is given it is
    called instead, and the clients are recovered all the same.
    """
    if options.interventions is not None:
        study = study.with_interventions(options.interventions)
    if report is None:
        for client in study.clients:
            # Once, here: it goes with the client to the checks and to recovery.
            _ = client.white
        each = in_parallel(n_jobs, check_client, [(client,) for client in study.clients])
        # Which labels clients share is said of their fragments.
        report = StudyReport(tuple(each), study.findings, tuple(check_copies(study.clients)))
    clients = list(study.clients)
    # A regime with several targets may still be read if the second one is known: recovery decides.
    sampled = {c.name for c in clients if options.method == "null-cone" and not c.is_population}
    found = (f for f in report.findings if f.check != "several-targets" or f.client not in sampled)
    try:
        clients = usable(clients, found)
    except InputError as refusal:
        if refused is None:
            raise
        refused(refusal)
    reports = {r.client: r for r in report.clients}
    given = [(c, reports[c.name], options) for c in clients]
    one = partial(recover_client, basis=basis)
    recovered: list[Recovered] = in_parallel(n_jobs, one, given)
    # There is one system: whether it bends is decided for all clients together.
    bent = _bent_too(recovered, clients)
    again = [(*given[k], sight) for k, sight in bent.items()]
    for k, new in zip(bent, in_parallel(n_jobs, one, again), strict=True):
        recovered[k] = new
    reports |= {r.report.client: r.report for r in recovered}
    return recovered, replace(report, clients=tuple(reports[r.client] for r in report.clients))


def _bent_too(recovered: Sequence[Recovered], clients: Sequence[Client]) -> dict[int, Sight]:
    """Clients whose effects run both ways because the system is not linear, by their numbers.

    It is not if that is clear at another client, if features of these have light tails or are
    skewed, or by the misfits of these together (Fisher's test).
    """
    own = {k: r.recovery for k, r in enumerate(recovered) if r.recovery is not None}
    open_ = {k: one for k, one in own.items() if one.contradicts}
    with np.errstate(divide="ignore"):
        fisher = -2.0 * np.log([one.chance_linear for one in open_.values()]).sum()
    bent = (
        any(one.nonlinear is not None for one in own.values())
        or any(f.check == "light-tails" for k in open_ for f in recovered[k].report.findings)
        or any(is_skewed(clients[k].linear) for k in open_)
        or float(chdtrc(2 * len(open_), fisher)) < LENIENT
    )
    return {k: one.reading.sight for k, one in open_.items()} if bent else {}


def recover(
    study: Iterable[Client],
    method: Method = "null-cone",
    *,
    tau: float | None = None,
    budget: int | None = None,
    confounding: Confounding = "allow",
    rank_one: RankOne | None = None,
    interventions: Kinds | None = None,
    smallest_effect: float | None = None,
    knowledge: Knowledge | None = None,
    witnesses: Witnesses = None,
    seed: int = 0,
    n_jobs: int = 1,
) -> Result:
    """Recover every client's fragment and assemble them into one global order.

    With the null-cone method, the order then settles each client's districts, blocks and latent
    directions; the evidence in the fragments stays the client's own.

    Parameters
    ----------
    study : Study or iterable of Client
    method, tau, budget, confounding, rank_one
        As for `recover_fragment`; ``method="paper"`` assembles with Algorithm 3.
    interventions : {"soft", "hard"} or mapping of label to one of these, optional
        Which interventions are hard, for all clients: see `Client.with_interventions`. By default
        what each client says of itself, which is "soft" unless told otherwise. Hard interventions
        give effects, direct edges and the latents themselves.
    smallest_effect : float, optional
        The size of effect that matters; "not ancestor" then means that none is larger: see
        `assemble`.
    knowledge : Knowledge, optional
        What you know before the data: it is part of the order, and so is what follows from it. By
        default what the study says (``[knowledge]`` in its `study.toml`).
    witnesses : int or "fifth", optional
        How many clients a verdict must rest on: see `assemble`.
    seed : int
        Of the assembly's sampler.
    n_jobs : int
        Clients worked on at once; the result does not depend on it.

    Returns
    -------
    Result
        Without a proposal for the next client: see `Result.with_proposal`.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.setting("A", 0)
    >>> result = jc.recover(world.clients())
    >>> result.order.pairs() == world.order.pairs()
    True
    """
    options = Options(method, tau, budget, confounding, rank_one, interventions)
    given = _as_study(study)
    known = given.knowledge if knowledge is None else knowledge
    assembly = AssemblyOptions(method, seed, smallest_effect, known, witnesses)
    known.check(given.labels)
    recovered, report = recover_study(given, options, n_jobs=n_jobs)
    concluded = conclude([r.fragment for r in recovered], report.findings, assembly)
    return Result(
        fragments=settled(recovered, concluded.order, n_jobs),
        order=concluded.order,
        diagnostics=concluded.findings,
        provenance=provenance_of(given, seed, vars(options)),
    )


def settled(
    recovered: Iterable[Recovered], order: GlobalOrder, n_jobs: int = 1
) -> dict[str, Fragment]:
    """Fragments by client, with districts, blocks and basis settled by the order.

    Algorithm 3 settles nothing.
    """
    if order.mode == "paper":
        return {r.fragment.client: r.fragment for r in recovered}
    found = PartialOrder.from_matrix(order.labels, order.decoded)
    refined = in_parallel(n_jobs, Recovered.refined, [(r, found) for r in recovered])
    return {fragment.client: fragment for fragment in refined}


def _as_study(study: Iterable[Client]) -> Study:
    if isinstance(study, Study):
        return study
    clients = (study,) if isinstance(study, Client) else tuple(study)
    for client in clients:
        if not isinstance(client, Client):
            raise InputError(
                f"a study holds clients, not {type(client).__name__}",
                "Build them with jc.Client.from_samples, or read them with jc.read_study.",
            )
    return Study("study", clients)


def _without_features(finding: Finding, client: Client) -> Finding:
    """A finding as it may leave the client: it names no feature that is not also a label."""
    message = finding.message
    names = client.features if client.covariates is None else client.columns
    for name in set(names) - {*client.labels, client.control_name}:
        for named in (f"the feature {name!r}", repr(name)):
            message = message.replace(named, "a feature")
    return finding if message == finding.message else replace(finding, message=message)
