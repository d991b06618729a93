"""From fragments to one order: exact where every client is certain, by evidence otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.cluster import OnCluster, files_of, read_on_cluster
from jigsaw_crl.assembly.decision import decide
from jigsaw_crl.assembly.effects import labels_not_hard, pool_effects
from jigsaw_crl.assembly.exact.deduction import Deduction, deduce
from jigsaw_crl.assembly.exact.entailment import Contradiction
from jigsaw_crl.assembly.hearing import Hearing, Here
from jigsaw_crl.assembly.linearity import LEANS, leaning_clients, more_than_chance
from jigsaw_crl.assembly.order import GlobalOrder
from jigsaw_crl.assembly.pairwise import judge_pairs
from jigsaw_crl.assembly.panel import MOST_SAMPLED, Panel, read_fragments
from jigsaw_crl.assembly.posterior import Convergence, decode
from jigsaw_crl.assembly.posterior.rounds import OrderModel, sample_posterior
from jigsaw_crl.assembly.posterior.weights import Trust, weigh_clients
from jigsaw_crl.assembly.verdict import (
    NO,
    OPEN,
    YES,
)
from jigsaw_crl.base.cluster import connected
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.order import transitive_closure
from jigsaw_crl.base.spool import Spool, kept_like
from jigsaw_crl.base.text import few
from jigsaw_crl.baseline import assemble_pairs
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.fragment.reading import spooled_fragments

__all__ = ["assemble"]

Method = Literal["evidence", "null-cone", "paper"]
PAIR_BY_PAIR = (
    "{:,} labels are too many to sample orders of: every pair is judged by its own evidence, a "
    "pair that only other pairs imply is undetermined, and effects are not pooled"
)
NOT_CLOSED = "closed_world needs exact statements and was not used"
NOT_HARD = (
    "the sites' effects differ beyond chance, so the interventions were not hard at all of them"
)


def assemble(
    fragments: Iterable[Fragment | Path] | str | Path,
    *,
    method: Method = "evidence",
    seed: int = 0,
    closed_world: bool = False,
    start: GlobalOrder | None = None,
    smallest_effect: float | None = None,
    cluster: Any = None,
) -> GlobalOrder:
    """One global order from the clients' fragments.

    If every fragment comes from exact moments, the answer is what follows from their statements:
    sound, and undetermined where both answers fit. If they contradict each other, or some come
    from samples, the answer is a posterior over orders.

    Parameters
    ----------
    fragments : iterable of Fragment, iterable of Path, or a folder
        In any order; the result does not depend on it. Files, and the ``.json`` and ``.bin`` files
        of a folder, are read one by one and kept in a temporary file: memory then holds one client
        at a time beside the tables of all pairs, and the result is the same.
    method : {"evidence", "null-cone", "paper"}
        ``"null-cone"`` is another name for the default; ``"paper"`` is Algorithm 3.
    seed : int
    closed_world : bool
        Every latent variable carries a label at some client. Exact mode only: more pairs follow.
    start : GlobalOrder, optional
        Fragments already assembled; those given are added to them.
    smallest_effect : float, optional
        The size of effect that matters, in standard deviations where interventions are hard, and
        as a share of the change elsewhere (see `GlobalOrder.bound`). "Not ancestor" then means
        that no effect is larger, as in an equivalence test: pairs whose bound lies above it are
        undetermined, unless the opposite is an ancestor pair, and pairs below it that are not
        ancestors are "not ancestor". Exact moments do not need it.
    cluster : str or distributed.Client, optional
        Address of the scheduler of a Dask cluster, or a connected client, for studies with so many
        labels that orders are not sampled. Its workers read the fragments, from files that all of
        them see under the same paths, and each holds a part of the pairs. The result is the same.

    Returns
    -------
    GlobalOrder

    Raises
    ------
    InputError
        No fragments, two with one client name, or an unknown method.

    Examples
    --------
    >>> import numpy as np
    >>> from jigsaw_crl import Fragment, PartialOrder, assemble
    >>> from jigsaw_crl.fragment.fragment import Statements
    >>> blocks = (frozenset(["pump"]), frozenset(["valve"]))
    >>> lab = Fragment("lab-1", "null-cone", ("pump", "valve"), blocks,
    ...                PartialOrder.from_pairs(blocks, [blocks]), blocks,
    ...                statements=Statements(np.array([[0, 1], [0, 0]])))
    >>> assemble([lab]).pairs()
    {('pump', 'valve')}
    """
    if smallest_effect is not None and not 0 < smallest_effect < np.inf:
        raise InputError(
            f"the smallest effect that matters is {smallest_effect!r}",
            "Pass a size above 0, such as 0.1.",
        )
    if cluster is not None:
        if method == "paper" or start is not None:
            raise InputError(
                "a cluster assembles evidence, and all of it at once",
                "Leave out method and start, or the cluster.",
            )
        return _on_cluster(fragments, cluster, seed, closed_world, smallest_effect)
    given = _gathered(fragments, start)
    panel = read_fragments(given)
    if method == "paper":
        return _by_algorithm_3(panel, seed)
    if method not in ("evidence", "null-cone"):
        raise InputError(
            f"there is no assembly method {method!r}", "Choose 'null-cone' or 'paper'."
        )
    effects = pool_effects(panel)
    doubted = labels_not_hard(effects)
    claims = []
    if doubted:
        given = kept_like(given, (fragment.without_claims(doubted) for fragment in given))
        panel = read_fragments(given)
        effects = pool_effects(panel)
        claims = [f"{NOT_HARD}: {few(doubted)}; nothing is concluded from it"]
    leaning = leaning_clients(given)
    if leaning:
        claims.append(f"{LEANS}: {few(leaning)}")
    if effects is not None:
        claims += effects.notes
    if not panel.all_sure:
        notes = [*([NOT_CLOSED] if closed_world else []), *claims]
        return _by_evidence(panel, seed, closed_world, notes, smallest_effect)
    try:
        deduction = deduce(panel, closed_world=closed_world)
    except Contradiction as contradiction:
        why = _who_contradicts(panel, contradiction)
        return _by_evidence(panel, seed, closed_world, [why, *claims], smallest_effect)
    return _by_entailment(panel, deduction, seed, closed_world, claims)


def _listed(fragments: Any) -> Any:
    """What was given, a folder as a list."""
    return [Path(fragments)] if isinstance(fragments, str | Path) else fragments


def _gathered(
    fragments: Iterable[Fragment | Path] | str | Path, start: GlobalOrder | None
) -> Sequence[Fragment]:
    """The fragments to assemble; those of files in a spool."""
    items: Any = _listed(fragments)
    if not isinstance(items, Spool):
        items = list(items)
        if items and all(isinstance(item, Path) for item in items):
            items = spooled_fragments(items)
    if start is None:
        return cast(Sequence[Fragment], items)
    return kept_like(items, chain(items, start.fragments))


def _by_entailment(
    panel: Panel, deduction: Deduction, seed: int, closed_world: bool, notes: list[str]
) -> GlobalOrder:
    knowledge = deduction.knowledge
    verdicts = np.full(knowledge.yes.shape, OPEN, dtype=np.int8)
    verdicts[knowledge.no] = NO
    verdicts[knowledge.yes] = YES
    order = GlobalOrder(
        labels=panel.labels,
        mode="exact",
        verdicts=verdicts,
        decoded=knowledge.yes,
        sampled=None,
        client_weights={c.client: 1.0 for c in panel.claims},
        notes=(*deduction.notes, *notes),
        fragments=panel.fragments,
        seed=seed,
        closed_world=closed_world,
    )
    # Known already: the first certificate need not derive it again.
    order.__dict__["deduction"] = deduction
    order.__dict__["panel"] = panel
    return order


def _by_evidence(
    panel: Panel,
    seed: int,
    closed_world: bool,
    notes: list[str],
    smallest_effect: float | None,
) -> GlobalOrder:
    rng = np.random.default_rng(seed)
    if panel.many:
        return _pair_by_pair(panel, lambda: Here(panel), seed, notes, smallest_effect)
    trust = weigh_clients(panel, rng)
    model = OrderModel.of(panel, trust.weights, trust.rate)
    draws = sample_posterior(model, np.random.default_rng(seed))
    evidence = model.evidence(draws.probability)
    decoded = decode(draws.probability, rng)
    verdicts = decide(draws, evidence)
    notes = notes + _about_trust(panel, trust)
    notes += _about_chains(draws.convergence)
    order = GlobalOrder(
        labels=panel.labels,
        mode="evidence",
        verdicts=verdicts,
        decoded=decoded,
        sampled=draws.probability,
        client_weights={
            c.client: float(w) for c, w in zip(panel.claims, trust.weights, strict=True)
        },
        notes=tuple(notes),
        fragments=panel.fragments,
        seed=seed,
        closed_world=closed_world,
        rate=trust.rate,
        disagreement=trust.disagreement,
        convergence=draws.convergence,
        smallest_effect=smallest_effect,
    )
    # Known already: the orders that are drawn from need not be sampled again.
    order.__dict__["posterior"] = draws
    if smallest_effect is None:
        return order
    return replace(order, verdicts=_equivalence(order, smallest_effect))


def _on_cluster(
    fragments: Any, cluster: Any, seed: int, closed_world: bool, smallest_effect: float | None
) -> GlobalOrder:
    """The order of very many labels, from files that the workers of a cluster read."""
    files = files_of(_listed(fragments))
    with connected(cluster) as connection:
        panel, files, lines = read_on_cluster(connection, files)
        leaning = more_than_chance(lines)
        notes = [NOT_CLOSED] if closed_world else []
        notes += [f"{LEANS}: {few(leaning)}"] if leaning else []
        hear = partial(OnCluster, connection, panel, files)
        return _pair_by_pair(panel, hear, seed, notes, smallest_effect)


def _pair_by_pair(
    panel: Panel,
    hear: Callable[[], Hearing],
    seed: int,
    notes: list[str],
    smallest_effect: float | None,
) -> GlobalOrder:
    """The order of so many labels that orders of them are not sampled."""
    if smallest_effect is not None:
        raise InputError(
            f"there are {len(panel.labels):,} labels, and effects are bounded for "
            f"{MOST_SAMPLED:,} at most",
            "Leave the smallest effect out, or assemble fewer labels at once.",
        )
    judged = judge_pairs(hear(), np.random.default_rng(seed))
    order = GlobalOrder(
        labels=panel.labels,
        mode="evidence",
        verdicts=judged.verdicts,
        decoded=judged.order,
        sampled=judged.probability,
        client_weights={
            name: float(w) for name, w in zip(panel.names, judged.trust.weights, strict=True)
        },
        notes=(*notes, PAIR_BY_PAIR.format(len(panel.labels)), *_about_trust(panel, judged.trust)),
        fragments=panel.fragments,
        seed=seed,
        rate=judged.trust.rate,
        disagreement=judged.trust.disagreement,
    )
    # Known already: they take passes over all clients.
    order.__dict__["panel"] = panel
    order.__dict__["evidence"] = judged.evidence
    return order


def _equivalence(order: GlobalOrder, smallest_effect: float) -> npt.NDArray[np.int8]:
    """Verdicts in which "no" means that no effect is larger than the one that matters."""
    verdicts = order.verdicts.copy()
    bound = order.bounds.value
    with np.errstate(invalid="ignore"):
        small = bound <= smallest_effect
    measured = ~np.isnan(bound)
    # What is above cannot be below: decided ancestors exclude the opposite, whatever its size.
    ancestors = transitive_closure(verdicts == YES)
    verdicts[measured & ~small & (verdicts == NO) & ~ancestors.T] = OPEN
    verdicts[small & (verdicts == OPEN)] = NO
    np.fill_diagonal(verdicts, NO)
    return verdicts


def _about_chains(convergence: Convergence) -> list[str]:
    """What a reader must know about the chains; nothing if they agree on every pair."""
    if not convergence.converged:
        return [f"{convergence}: read probabilities near 0.05, 0.5 and 0.95 with that error"]
    if convergence.disputed:
        return [f"{convergence}: those are undetermined"]
    return []


def _about_trust(panel: Panel, trust: Trust) -> list[str]:
    notes = [
        "sent the same evidence and count as one client: "
        + ", ".join(panel.names[k] for k in found)
        for found in trust.copies
    ]
    names = [panel.names[k] for k in trust.distrusted]
    if trust.disagreement:
        who = f"{len(names)} of {len(panel.claims)} contradict the rest"
        listed = f" ({', '.join(names)})" if names else ""
        notes.append(
            f"the clients disagree: {who}{listed}; from a third on, it cannot be told who is right"
        )
    elif names:
        notes.append(
            f"contradicts the other clients and is trusted little or not at all: {', '.join(names)}"
        )
    if panel.states and trust.rate > 0.005:
        notes.append(f"about {100 * trust.rate:.1f} % of the statements disagree with the rest")
    return notes


def _who_contradicts(panel: Panel, contradiction: Contradiction) -> str:
    text = f"the statements contradict each other ({contradiction.what}"
    if contradiction.pair is not None:
        a, d = contradiction.pair
        text += f": {panel.labels[a]} and {panel.labels[d]}"
        for word, stance in (("yes", 1), ("no", -1)):
            names = [c.client for c, said in panel.stances(a, d) if said == stance]
            if names:
                text += f"; {', '.join(names)} {'say' if len(names) > 1 else 'says'} {word}"
    return text + "); they were weighed as evidence instead"


def _by_algorithm_3(panel: Panel, seed: int) -> GlobalOrder:
    paper = assemble_pairs(panel.fragments)
    p = len(panel.labels)
    verdicts = np.full((p, p), OPEN, dtype=np.int8)
    for ancestor, descendant in paper.pairs:
        verdicts[panel.position[ancestor], panel.position[descendant]] = YES
    decoded = verdicts == YES
    np.fill_diagonal(verdicts, NO)
    notes = [
        "Algorithm 3 made a cycle through " + ", ".join(sorted(cycle)) for cycle in paper.cyclic
    ]
    return GlobalOrder(
        labels=panel.labels,
        mode="paper",
        verdicts=verdicts,
        decoded=decoded,
        sampled=None,
        client_weights={c.client: 1.0 for c in panel.claims},
        notes=tuple(notes),
        fragments=panel.fragments,
        seed=seed,
    )
