"""From a client to its fragment by the paper's method."""

from __future__ import annotations

from typing import Literal

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.baseline.block_causal_order import (
    Blocks,
    ExactSearch,
    RatioSearch,
    block_causal_order,
    block_causal_order_fs,
)
from jigsaw_crl.baseline.budget import DEFAULT_BUDGET, Budget, check_budget
from jigsaw_crl.baseline.calibration import check_tau
from jigsaw_crl.baseline.differences import differences_of
from jigsaw_crl.baseline.exact_search import smallest_tight_set, smallest_tight_set_by_trial
from jigsaw_crl.baseline.planes import SAFETY, Planes, planes_of
from jigsaw_crl.baseline.ratio_search import best_set_of_size, best_set_of_size_by_trial
from jigsaw_crl.client.client import Client
from jigsaw_crl.fragment.fragment import Fragment, Outcome

__all__ = ["Search", "recover_fragment"]

Search = Literal["fast", "published"]
_SEARCHES: dict[str, tuple[ExactSearch, RatioSearch]] = {
    "fast": (smallest_tight_set, best_set_of_size),
    "published": (smallest_tight_set_by_trial, best_set_of_size_by_trial),
}
_OTHER_METHOD = 'Use method="null-cone"'
# Relations weaker than a hundredth are common; a client that cannot see them must say so.
COARSE = 1e-2


def recover_fragment(
    client: Client,
    *,
    tau: float | None = None,
    budget: int = DEFAULT_BUDGET,
    search: Search = "fast",
) -> Fragment:
    """Blocks, block order and latent basis of one client, as the paper prints them.

    Exact moments go through Algorithms 1 and 2, estimates through their finite-sample versions.

    Parameters
    ----------
    client : Client
    tau : float, optional
        Share of the singular values that may be noise, strictly between 0 and 1; default 0.05.
        Exact moments have no noise and do not use it.
    budget : int
        Number of label sets the search may look at. The search for a block may be exponential in
        the block's size; when the budget ends, the labels not yet placed form one last block, and
        `fragment.outcome` says so.
    search : {"fast", "published"}
        How the label set of the next block is found. "published" is the paper's own enumeration:
        all sets of one label, then of two, and so on, each looked at until a level has a set that
        passes. "fast" finds the same set with fewer looks: on exact moments in polynomial time, on
        estimates by leaving out sets that a bound shows not to pass. Fragments are equal unless
        the budget ends one of the two; use "published" to check or to time the paper's procedure.

    Returns
    -------
    Fragment
        With ``method="paper"``; `basis` is Q̂, so that `fragment.transform(X)` is Ẑ = Q̂X.

    Examples
    --------
    A hidden chain pump → valve, seen through a mixing of two signals into three features:

    >>> import numpy as np
    >>> import jigsaw_crl as jc
    >>> from jigsaw_crl import baseline
    >>> G = np.array([[1.0, 0.5], [-0.3, 1.0], [0.7, 0.2]])
    >>> def covariance(effect, var_pump, var_valve):
    ...     B = np.array([[1.0, 0.0], [effect, 1.0]])
    ...     return G @ B @ np.diag([var_pump, var_valve]) @ B.T @ G.T
    >>> client = jc.Client.from_covariances(
    ...     "lab-1",
    ...     observational=covariance(0.8, 1.0, 1.0),
    ...     interventions={"valve": covariance(2.8, 1.0, 3.0), "pump": covariance(0.8, 3.0, 1.0)},
    ...     n_samples=None,
    ... )
    >>> fragment = baseline.recover_fragment(client)
    >>> fragment.is_block_ancestor("pump", "valve"), fragment.outcome.ok
    (True, True)
    >>> published = baseline.recover_fragment(client, search="published")
    >>> published.block_order == fragment.block_order
    True
    """
    if search not in tuple(_SEARCHES):
        raise InputError(f"search is {search!r}", 'Use "fast" or "published".', client=client.name)
    exact, by_ratio = _SEARCHES[search]
    share = check_tau(tau, client=client.name)
    looks = Budget(check_budget(budget, client=client.name))
    findings: tuple[Finding, ...] = ()
    idle: tuple[str, ...] = ()
    if client.is_population:
        planes = planes_of(client)
        result = block_causal_order(planes, looks, exact)
        idle = tuple(x for x, rank in zip(planes.labels, planes.ranks, strict=True) if rank == 0)
        findings = _findings(client, planes, idle)
    else:
        result = block_causal_order_fs(differences_of(client), share, looks, by_ratio)
    named = {block: frozenset(client.labels[i] for i in block) for block in result.ancestors}
    pairs = [(named[a], named[d]) for d, above in result.ancestors.items() for a in above]
    return Fragment(
        client=client.name,
        method="paper",
        labels=client.labels,
        blocks=tuple(named.values()),
        block_order=PartialOrder.from_pairs(named.values(), pairs),
        n_samples=client.n_samples,
        outcome=_outcome(client, result, looks, idle),
        findings=findings,
        basis=result.Q,
    )


def _outcome(client: Client, result: Blocks, budget: Budget, idle: tuple[str, ...]) -> Outcome:
    if result.undivided:
        placed = len(client.labels) - len(result.undivided)
        return Outcome(
            "budget",
            f"the search stopped after {budget.total} label sets: {placed} of "
            f"{len(client.labels)} labels were placed in {len(result.ancestors) - 1} blocks, the "
            f"other {len(result.undivided)} are one last block that was not divided.",
            f"{_OTHER_METHOD}, or raise the budget.",
        )
    if client.n_latent > len(client.labels):
        return Outcome(
            "not-identified",
            f"the paper's method needs an intervention on every latent; this client has "
            f"{client.n_latent} latents and {len(client.labels)} labels.",
            f"{_OTHER_METHOD}, or intervene on the others too.",
        )
    if idle:
        return Outcome(
            "not-identified",
            f"{', '.join(idle)} changed nothing, so the blocks found with "
            f"{'it' if len(idle) == 1 else 'them'} are not reliable.",
            "Drop the label, or apply a stronger intervention.",
        )
    if result.mismatch:
        return Outcome(
            "not-identified",
            "the changes of the last block's labels do not span one direction per label, so two "
            "labels may share a target.",
            "Check that every label intervenes on a latent of its own.",
        )
    return Outcome()


def _findings(client: Client, planes: Planes, idle: tuple[str, ...]) -> tuple[Finding, ...]:
    ranks = dict(zip(planes.labels, planes.ranks.tolist(), strict=True))
    weak = [
        Finding(
            "no-effect",
            "warning",
            "the intervention changed nothing",
            "Drop the label, or apply a stronger intervention.",
            value=0.0,
            client=client.name,
            regime=label,
        )
        for label in idle
    ]
    wide = [
        Finding(
            "rank-above-two",
            "warning",
            "the precision changes in more directions than an intervention on one node can cause",
            "Check that the label intervenes on a single latent and that the moments are exact.",
            value=float(ranks[label]),
            threshold=float(len(client.interventions[label]) + 1),
            client=client.name,
            regime=label,
        )
        for label in planes.crowded
    ]
    dim = [
        Finding(
            "ill-conditioned",
            "warning",
            "rounding is large against this label's change, so its weaker relations stay unseen",
            "Rescale the features, give the moments with more digits, or intervene more strongly.",
            value=float(SAFETY * error),
            threshold=COARSE,
            client=client.name,
            regime=label,
        )
        for label, error in zip(planes.labels, planes.errors, strict=True)
        if label not in idle and error * SAFETY > COARSE
    ]
    return (*weak, *wide, *dim)
