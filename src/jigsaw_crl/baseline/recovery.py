"""The fragment of a client by the paper's method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.baseline import literal
from jigsaw_crl.baseline.budget import DEFAULT_BUDGET, Budget, check_budget
from jigsaw_crl.baseline.calibration import check_tau
from jigsaw_crl.baseline.exact_blocks import Block, Blocks, exact_blocks
from jigsaw_crl.baseline.planes import SAFETY, Planes, planes_of
from jigsaw_crl.baseline.ratio_search import BranchAndBound
from jigsaw_crl.client.client import RANK_TOLERANCE, Client
from jigsaw_crl.fragment.fragment import Fragment, Outcome
from jigsaw_crl.moments.regime import column_space

__all__ = ["Search", "fast_blocks", "precisions_of", "recover_fragment"]

Search = Literal["fast", "literal"]
_OTHER_METHOD = 'Use method="null-cone"'
# Relations weaker than a hundredth are common; a client that cannot resolve them gets a finding.
COARSE = 1e-2


def recover_fragment(
    client: Client,
    *,
    tau: float | None = None,
    budget: int = DEFAULT_BUDGET,
    search: Search = "fast",
) -> Fragment:
    """Blocks, block order and latent basis of one client, by the paper's method.

    Exact moments are given to Algorithms 1 and 2, estimates to their finite-sample versions.

    Parameters
    ----------
    client : Client
    tau : float, optional
        Share of the singular values that may be noise, strictly between 0 and 1; default 0.05.
        Not used for exact moments.
    budget : int
        Number of label sets the search may examine. The search for a block may be exponential in
        the block's size; when the budget runs out, the labels not yet placed form one last block,
        and `fragment.outcome` says so.
    search : {"fast", "literal"}
        "literal" runs `jigsaw_crl.baseline.literal`, the paper's own lines on full matrices, which
        try all label sets. It gives the same blocks and the same spaces, and refuses clients that
        could need more sets than the budget (more than 19 labels by default).

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
    >>> literally = baseline.recover_fragment(client, search="literal")
    >>> literally.block_order == fragment.block_order
    True
    """
    if search not in ("fast", "literal"):
        raise InputError(f"search is {search!r}", 'Use "fast" or "literal".', client=client.name)
    share = check_tau(tau, client=client.name)
    limit = Budget(check_budget(budget, client=client.name))
    findings: tuple[Finding, ...] = ()
    idle: tuple[str, ...] = ()
    literally = search == "literal"
    if client.is_population:
        planes = planes_of(client)
        idle = tuple(x for x, rank in zip(planes.labels, planes.ranks, strict=True) if rank == 0)
        findings = _findings(client, planes, idle)
        found = _literal(client, None, limit) if literally else exact_blocks(planes, limit)
    else:
        Theta, U = precisions_of(client)  # refuses singular regimes, for every search
        found = _literal(client, share, limit) if literally else fast_blocks(Theta, U, share, limit)
    named = {block: frozenset(block) for block in found.ancestors}
    pairs = [(named[a], named[d]) for d, above in found.ancestors.items() for a in above]
    return Fragment(
        client=client.name,
        method="paper",
        labels=client.labels,
        blocks=tuple(named.values()),
        block_order=PartialOrder.from_pairs(named.values(), pairs),
        n_samples=client.n_samples,
        outcome=_outcome(client, found, limit, idle),
        findings=findings,
        basis=found.Q,
    )


def precisions_of(client: Client) -> tuple[dict[str | int, FloatArray], FloatArray]:
    """Θ̂⁽ʲ⁾ of each label and, under the key 0, of the control, in the space of the latents.

    The second value is U, shape (n_features, p): an orthonormal basis of the column space of X, in
    which inner products and singular values are kept and matrices are p_k × p_k. A label has a
    stack of matrices, one for each strength.
    """
    control = client.control_second_moment()
    U = column_space(control, client.n_latent)

    def precision(second_moment: FloatArray, regime: str) -> FloatArray:
        values, vectors = np.linalg.eigh(U.T @ second_moment @ U)
        if values[0] <= RANK_TOLERANCE * max(values[-1], 0.0):
            raise InputError(
                f"its second moment is singular on the {client.n_latent} dimensions of the control",
                "Drop the regime, or check that its rows vary; the paper's method needs more rows "
                "than latents in every regime.",
                client=client.name,
                regime=regime,
            )
        return np.asarray((vectors / values) @ vectors.T, dtype=np.float64)

    Theta: dict[str | int, FloatArray] = {0: precision(control, client.control_name)}
    for label in client.labels:
        Theta[label] = np.stack([precision(c, label) for c in client.second_moments(label)])
    return Theta, U


def fast_blocks(Theta: literal.Precisions, U: FloatArray, tau: float, budget: Budget) -> Blocks:
    """Blocks from estimates: Algorithm 2-FS in the space of the latents, by branch and bound."""
    search = BranchAndBound(budget)
    found = literal.id_block_causal_order_fs(Theta, tau, search)
    named = _in_label_order(*found, [j for j in Theta if isinstance(j, str)])
    return replace(named, Q=named.Q @ U.T, undivided=search.undivided)


def _literal(client: Client, tau: float | None, budget: Budget) -> Blocks:
    """The blocks that `literal` finds; exact moments when `tau` is None."""
    m = len(client.labels)
    if 2**m - 1 > budget.total:
        raise InputError(
            f"the literal search may have to examine {2**m - 1} sets of {m} labels; the budget is "
            f"{budget.total}",
            'Use search="fast", or raise the budget.',
            client=client.name,
        )
    Theta = literal.precisions(client)
    try:
        found = (
            literal.id_block_causal_order(Theta)
            if tau is None
            else literal.id_block_causal_order_fs(Theta, tau)
        )
    except InputError as error:
        raise InputError(error.what, error.remedy, client=client.name) from None
    return _in_label_order(*found, client.labels)


def _in_label_order(
    I: Sequence[Block], prec: literal.Order, Q: FloatArray, labels: Sequence[str]
) -> Blocks:
    """The output of the paper's algorithms, which list the newest block first."""
    ancestors = {C: frozenset(B for below, B in prec if below == C) for C in reversed(I)}
    basis = np.empty_like(Q)
    basis[[labels.index(label) for C in I for label in C]] = Q
    return Blocks(ancestors, basis)


def _outcome(client: Client, result: Blocks, budget: Budget, idle: tuple[str, ...]) -> Outcome:
    if result.undivided:
        placed = len(client.labels) - len(result.undivided)
        return Outcome(
            "budget",
            f"the search stopped after {budget.total} label sets: {placed} of "
            f"{len(client.labels)} labels are placed in {len(result.ancestors) - 1} blocks, the "
            f"other {len(result.undivided)} form one last block.",
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
            "the number of directions in which the last block's labels change the precision is "
            "not its number of labels; two labels may share a target.",
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
            "rounding errors are large relative to this label's change and hide weak relations",
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
