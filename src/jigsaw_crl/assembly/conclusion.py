"""From fragments to one order and what is to be said about it: the only road.

    fragments ──► Panel (never edited) + Use ──► Evidence ──► posterior ──► decide ──► PairTable

`recover`, `assemble`, `Result.add`, a federated round and designs all take it. What all sites
together say against the claims, the labels or the model is found here, in this order: clients that
sent the same evidence, interventions that were not hard, a system that is not linear, labels that
differ at one site, and how far each client is trusted. Each of these is a change of the `Use`, and
a finding or a note says so. What the user knows is part of the panel; a finding says where the data
alone decide the opposite.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from jigsaw_crl.assembly.dissent import (
    Falls,
    differing_labels,
    opposed,
    pairs_apart,
    with_witnesses,
)
from jigsaw_crl.assembly.effects import PooledEffects, labels_not_hard, pool_effects
from jigsaw_crl.assembly.entailment import Contradiction, deduce
from jigsaw_crl.assembly.evidence import Evidence
from jigsaw_crl.assembly.order import GlobalOrder, Method, Mode, Options, Witnesses
from jigsaw_crl.assembly.pairs import PairTable, effect_bounds
from jigsaw_crl.assembly.panel import Panel, Use, check_size, read_fragments
from jigsaw_crl.assembly.posterior import Convergence, decode
from jigsaw_crl.assembly.posterior.model import log_factors, posterior_of, too_many_causes
from jigsaw_crl.assembly.posterior.weights import weigh_clients
from jigsaw_crl.assembly.suspicions import clients_against_linearity, find_copies, is_bent
from jigsaw_crl.assembly.verdict import NO, OPEN, YES, Why, decide, implied
from jigsaw_crl.base.arrays import IntArray
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.knowledge import NOTHING, Knowledge
from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.baseline import assemble_pairs
from jigsaw_crl.diagnostics.checks import ACROSS_CLIENTS, check_coverage
from jigsaw_crl.diagnostics.findings import finding
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.fragment.reading import fragment_paths, one_spelling, read_fragment_files

__all__ = [
    "Conclusion",
    "about_clients",
    "assemble",
    "conclude",
    "consider",
]


@dataclass(frozen=True, eq=False)
class Conclusion:
    """An order, and all findings: about the clients, and about all of them together."""

    order: GlobalOrder
    findings: tuple[Finding, ...]


def conclude(
    fragments: Iterable[Fragment],
    checks: Iterable[Finding] | None = None,
    options: Options = Options(),  # noqa: B008 (frozen)
) -> Conclusion:
    """Assemble fragments, and say what is to be said about clients, labels and sites.

    Parameters
    ----------
    fragments : iterable of Fragment
        In any order; the result does not depend on it.
    checks : iterable of Finding, optional
        What is known about the clients; by default the findings in their fragments.
    options : Options
    """
    panel = read_fragments(fragments, options.knowledge)
    if options.method == "paper":
        order, across = _by_algorithm_3(panel, options), _coverage(panel)
    else:
        check_size(panel)
        evidence, effects, across = consider(panel)
        order = _ordered(evidence, effects, options)
        apart = pairs_apart(order.said, order.table.differ) if order.mode == "evidence" else ()
        across += tuple(
            finding("sites-differ", round(x, 1), ancestor=a, descendant=d, **_shows(yes, no))
            for a, d, yes, no, x in apart
        )
        if panel.knowledge:
            alone = replace(evidence, panel=replace(panel, knowledge=NOTHING))
            across += tuple(_contradicted(panel, _ordered(alone, effects, options)))
    own = (f for piece in panel.fragments for f in piece.findings) if checks is None else checks
    return Conclusion(order, (*about_clients(own), *across))


# Checks that are made of all clients together: a further client can change what they find.
_ACROSS = {
    "label-differs",
    "sites-differ",
    "effects-apart",
    "knowledge-contradicted",
    *ACROSS_CLIENTS,
}
# The same for those that are also made of one client: they then name it.
_ACROSS_TOO = {"not-linear", "not-hard"}


def about_clients(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings that a client's own data gave, without those about all clients together."""
    return tuple(
        f
        for f in findings
        if f.check not in _ACROSS and (f.client is not None or f.check not in _ACROSS_TOO)
    )


def _coverage(panel: Panel) -> tuple[Finding, ...]:
    """Findings about which labels the clients share."""
    return tuple(check_coverage({piece.client: piece.labels for piece in panel.fragments}))


def assemble(
    fragments: Iterable[Fragment] | Iterable[Path] | str | Path,
    *,
    method: Method = "null-cone",
    seed: int = 0,
    smallest_effect: float | None = None,
    knowledge: Knowledge = NOTHING,
    witnesses: Witnesses = None,
) -> GlobalOrder:
    """One global order from the clients' fragments.

    If every fragment comes from exact moments, the answer is what follows from their statements:
    sound, and undetermined where both answers fit. If they contradict each other, or some come
    from samples, the answer is a posterior over orders.

    Parameters
    ----------
    fragments : iterable of Fragment, iterable of paths, or a folder
        In any order; the result does not depend on it.
    method : {"null-cone", "paper"}
        ``"paper"`` is Algorithm 3.
    seed : int
    smallest_effect : float, optional
        The size of effect that matters, in standard deviations where interventions are hard, and
        as a share of the change elsewhere (see `GlobalOrder.bound`). "Not ancestor" then means
        that no effect is larger, as in an equivalence test: pairs whose bound lies above it are
        undetermined, unless the opposite is an ancestor pair. Exact moments do not need it.
    knowledge : Knowledge
        What you know before the data: it is part of the order, and so is what follows from it.
    witnesses : int or "fifth", optional
        How many clients a verdict must rest on: it is undetermined if leaving out fewer would
        change it. ``"fifth"``, the default of federations: more than a fifth of the clients that
        speak about the pair, at least two. By default one is enough.

    Returns
    -------
    GlobalOrder

    Raises
    ------
    InputError
        No fragments, two with one client name, too many labels, an unknown method, or knowledge
        about labels that no client has.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.setting("A", 0)
    >>> order = jc.assemble(jc.recover_fragment(client) for client in world.clients())
    >>> order.pairs() == world.order.pairs()
    True
    """
    given: list[Any] = [fragments] if isinstance(fragments, str | Path) else list(fragments)
    if given and (given == [fragments] or all(isinstance(item, Path) for item in given)):
        given = list(read_fragment_files(fragment_paths(given)).values())
    elif all(isinstance(item, Fragment) for item in given):
        given = one_spelling(given)
    options = Options(method, seed, smallest_effect, knowledge, witnesses)
    knowledge.check({label for piece in given for label in getattr(piece, "labels", ())})
    return conclude(given, options=options).order


# -- what is used ---------------------------------------------------------------------------------


def consider(panel: Panel) -> tuple[Evidence, PooledEffects | None, tuple[Finding, ...]]:
    """What all clients together say against claims, model and labels, before an order is sampled.

    The evidence and the effects are those under the use that follows, in which every client that
    is not a copy counts in full.
    """
    use = replace(Use.all_of(panel), copies=find_copies(panel))
    use = replace(use, weights=use.shares)
    effects, use, findings = _claims(panel, use)
    leaning = clients_against_linearity(panel.fragments)
    if leaning:
        # What was read without linearity stays.
        bent = {piece.client for piece in panel.fragments if is_bent(piece)}
        use = replace(use, withheld=frozenset(panel.clients) - bent)
        clients = pluralise(len(leaning), "client")
        findings.append(finding("not-linear", float(len(leaning)), clients=clients))
    evidence = Evidence.heard(panel, use)
    differing = differing_labels(evidence)
    if differing:
        # What a client that is not trusted says against labels of others does not count.
        trusted = weigh_clients(evidence, np.random.default_rng(0)).use.weights > 0
        weights = np.where(trusted, use.weights, 0.0)
        differing = differing_labels(Evidence.heard(panel, replace(use, weights=weights)))
        findings += [finding("label-differs", client=c, regime=x) for c, x in differing]
    return evidence, effects, (*_coverage(panel), *findings)


def _shows(having: Sequence[str], lacking: Sequence[str]) -> dict[str, str]:
    """The sites that show an effect and those that show none, each with its verb."""
    both = {"having": having, "lacking": lacking}
    return {x: f"{few(s)} {'shows' if len(s) == 1 else 'show'}" for x, s in both.items()}


def _claims(panel: Panel, use: Use) -> tuple[PooledEffects | None, Use, list[Finding]]:
    """Effects of all sites, and the use without claims of "hard" that they contradict.

    Sites whose effects stand apart in many pairs are set aside first, so that one of them does not
    make the claim of all sites look wrong. In a system that is not linear, effects depend on the
    dose and so on the site: that they differ contradicts nothing.
    """
    effects = pool_effects(panel, use)
    if effects is None or any(map(is_bent, panel.fragments)):
        return effects, use, []
    doubted = labels_not_hard(effects)
    findings = [
        finding(
            "effects-apart",
            round(far / max(pairs, 1), 2),
            client=site,
            far=far,
            effects=pluralise(pairs, "effect"),
        )
        for site, (far, pairs) in effects.apart.items()
    ]
    findings += [finding("not-hard/across", x, regime=label) for label, x in doubted.items()]
    if doubted:
        use = replace(use, soft=frozenset(doubted))
        effects = pool_effects(panel, use)
    return effects, use, findings


def _contradicted(panel: Panel, without: GlobalOrder) -> list[Finding]:
    """A finding if the data alone decide the opposite of what the user said."""
    names, found = panel.labels, without.verdicts
    # What follows from the word of the user may be contradicted, though no part of it is.
    for known in (panel.known, implied(panel.known)):
        against = (known != OPEN) & (found != OPEN) & (known != found)
        said = [
            f"{names[a]!r} is {'' if known[a, d] else 'not '}an ancestor of {names[d]!r}"
            for a, d in np.argwhere(against).tolist()
        ]
        if said:
            return [finding("knowledge-contradicted", float(len(said)), said=few(said))]
    return []


# -- the order ------------------------------------------------------------------------------------


def _ordered(evidence: Evidence, effects: PooledEffects | None, options: Options) -> GlobalOrder:
    """The order that exact statements entail; where they cannot, that of a posterior."""
    panel, notes = evidence.panel, []
    # Exact statements of one client decide alone: where more are asked for, they are weighed.
    if all(rows.sure for rows in panel.rows) and options.witnesses in (None, 1):
        try:
            facts = deduce(evidence)
            verdicts = np.where(facts.no, NO, np.where(facts.yes, YES, OPEN))
            about = () if effects is None else effects.notes
            order = _stated(panel, evidence.use, "exact", verdicts, about, options)
        except Contradiction as contradiction:
            notes.append(contradiction.described(evidence))
        else:
            order.__dict__.update(said=evidence, effects=effects, facts=facts)
            return order
    said = weigh_clients(evidence, np.random.default_rng(options.seed))
    if said.use is not evidence.use:
        effects = pool_effects(panel, said.use)
    return _by_evidence(said, effects, notes + _about_trust(said), options)


def _by_evidence(
    said: Evidence, effects: PooledEffects | None, notes: list[str], options: Options
) -> GlobalOrder:
    """The order of the posterior, judged by `decide`."""
    panel, draws = said.panel, posterior_of(said, np.random.default_rng([options.seed, 1]))
    probability = draws.probability
    bent = any(map(is_bent, panel.fragments))
    applied = pool_effects(panel, said.use, quantity="applied") if bent else None
    log_factor, bounds = log_factors(said, probability), effect_bounds(said, effects, applied)
    decided = decide(
        probability,
        log_factor,
        chains=draws.chains,
        opposed=opposed(said, probability),
        room=bounds.room(options.smallest_effect),
        size_matters=options.smallest_effect is not None,
        known=panel.known,
    )
    before = None
    # A verdict that is withheld may have implied others.
    while options.witnesses is not None and (before is None or (before != decided.verdicts).any()):
        before = decided.verdicts
        falls = Falls(said, probability, log_factor, before)
        decided = with_witnesses(falls, decided, options.witnesses)
    # Nothing is guessed about labels about which no client says anything; the user may know it.
    heard = said.pooled.n_clients > 0
    named = np.asarray(heard.any(axis=0) | heard.any(axis=1))
    silent = ~(named[:, None] & named) & (decided.verdicts == OPEN)
    denied = (decided.verdicts == NO) | silent
    order = GlobalOrder(
        panel=panel,
        use=said.use,
        mode="evidence",
        verdicts=decided.verdicts,
        why=decided.why,
        decoded=decode(
            np.where(denied, 0.0, probability), np.random.default_rng([options.seed, 2])
        ),
        chances=probability,
        notes=(*notes, *(effects.notes if effects else ()), *_about_chains(draws.convergence)),
        options=options,
        convergence=draws.convergence,
    )
    table = PairTable.of(said, effects, probability, decided, log_factor, bounds)
    order.__dict__.update(table=table, said=said, effects=effects, posterior=draws)
    if bent:
        order.__dict__.update(applied_effects=applied)
    return order


def _by_algorithm_3(panel: Panel, options: Options) -> GlobalOrder:
    """The pairs that the paper's algorithm states."""
    paper = assemble_pairs(panel.fragments)
    verdicts = np.full((len(panel.labels),) * 2, OPEN)
    for ancestor, descendant in paper.pairs:
        verdicts[panel.position[ancestor], panel.position[descendant]] = YES
    np.fill_diagonal(verdicts, NO)
    notes = tuple(f"Algorithm 3 made a cycle through {', '.join(sorted(c))}" for c in paper.cyclic)
    return _stated(panel, Use.all_of(panel), "paper", verdicts, notes, options)


def _stated(
    panel: Panel,
    use: Use,
    mode: Mode,
    verdicts: IntArray,
    notes: tuple[str, ...],
    options: Options,
) -> GlobalOrder:
    """An order whose verdicts follow from statements."""
    return GlobalOrder(
        panel=panel,
        use=use,
        mode=mode,
        verdicts=verdicts.astype(np.int8),
        why=np.where(verdicts == OPEN, Why.UNSURE, Why.IMPLIED).astype(np.int8),
        decoded=verdicts == YES,
        # Algorithm 3 gives no probabilities.
        chances=np.where(verdicts == OPEN, 0.5, verdicts == YES) if mode == "paper" else None,
        notes=notes,
        options=options,
    )


# -- notes ----------------------------------------------------------------------------------------


def _about_chains(convergence: Convergence) -> list[str]:
    """What a reader must know about the chains; nothing if they agree on every pair."""
    if not convergence.converged:
        return [f"{convergence}: read probabilities near 0.05, 0.5 and 0.95 with that error"]
    if convergence.disputed:
        return [f"{convergence}; pairs on which chains differ are undetermined"]
    return []


def _about_trust(evidence: Evidence) -> list[str]:
    """What a reader must know about copies, contradictions and what is not weighed."""
    panel, use = evidence.panel, evidence.use
    notes = [
        f"{', '.join(sorted(panel.clients[k] for k in found))} sent the same evidence, or nearly, "
        "and count as one client"
        for found in use.copies
    ]
    names = [panel.clients[k] for k in use.distrusted]
    listed = f" ({', '.join(names)})" if names else ""
    if use.disagreement:
        notes.append(
            f"the clients disagree: {len(names)} of {len(panel.rows)} contradict the rest{listed}; "
            "from about a third on, it cannot be told who is right"
        )
    elif names:
        verb = ("contradicts", "is") if len(names) == 1 else ("contradict", "are")
        notes.append(
            f"{', '.join(names)} {verb[0]} the other clients and {verb[1]} trusted little or not "
            "at all"
        )
    if too_many_causes(evidence):
        notes.append(
            "hidden common causes are not weighed, because there are too many labels and clients: "
            "where only clients that lack a cause saw a pair, it may look like ancestry"
        )
    return notes
