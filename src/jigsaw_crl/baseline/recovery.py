"""The fragment of a client by the paper's method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.baseline import literal
from jigsaw_crl.baseline.calibration import check_tau
from jigsaw_crl.baseline.literal import Block, Order, Precisions
from jigsaw_crl.baseline.search import DEFAULT_BUDGET, BranchAndBound, Budget
from jigsaw_crl.client.client import Client
from jigsaw_crl.fragment.fragment import Fragment, Outcome
from jigsaw_crl.moments.checks import RANK_TOLERANCE
from jigsaw_crl.moments.regime import column_space

__all__ = ["Search", "changes_of", "precisions_of", "recover_fragment"]

Search = Literal["fast", "literal"]
_Found = tuple[list[Block], Order, FloatArray]
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
    tau, limit = check_tau(tau, client=client.name), Budget.checked(budget, client.name)
    exact = changes_of(client) if client.is_population else None
    if search == "literal":
        found, undivided = _literal(client, tau, limit)
    elif exact is None:
        found, undivided = _from_estimates(client, tau, limit)
    else:
        found, undivided = _from_exact(exact, limit)
    I, prec, Q = found
    named = {C: frozenset(C) for C in reversed(I)}  # the paper lists the newest block first
    basis = np.empty_like(Q)
    basis[[client.labels.index(label) for C in I for label in C]] = Q
    return Fragment(
        client=client.name,
        method="paper",
        labels=client.labels,
        blocks=tuple(named.values()),
        block_order=PartialOrder.from_pairs(
            named.values(), [(named[B], named[C]) for C, B in prec]
        ),
        n_samples=client.n_samples,
        outcome=_outcome(client, I, undivided, limit, exact),
        findings=() if exact is None else _findings(client, exact),
        basis=basis,
    )


def _from_estimates(client: Client, tau: float, budget: Budget) -> tuple[_Found, Block]:
    """Algorithm 2-FS in the space of the latents, and the labels that the budget left undivided."""
    Theta, U = precisions_of(client)
    search = BranchAndBound(budget)
    I, prec, Q = literal.id_block_causal_order_fs(Theta, tau, search)
    return (I, prec, Q @ U.T), search.undivided


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


@dataclass(frozen=True, eq=False)
class Changes:
    """Row spaces of the precision changes of exact moments, in whitened coordinates.

    Parameters
    ----------
    Theta : mapping
        For each label the projector onto `range(Δ_j)`; zeros under the key 0.
    to_features : array, shape (n_features, p)
        `L⁻ᵀ`: maps a whitened vector to a linear functional of X.
    ranks : mapping of str to int
        Dimension of each; 2 in general, 1 for a target without ancestor and spouse.
    errors : mapping of str to float
        Bound on the error of each projector.
    """

    Theta: Precisions
    to_features: FloatArray
    ranks: Mapping[str, int]
    errors: Mapping[str, float]

    @property
    def idle(self) -> tuple[str, ...]:
        """Labels whose intervention changed nothing."""
        return tuple(label for label, rank in self.ranks.items() if rank == 0)

    @property
    def tau(self) -> float:
        """The share of the singular values that rounding may hold."""
        return min(max(self.errors.values()), 0.5)


def changes_of(client: Client) -> Changes:
    """The row spaces of Θ⁽ʲ⁾ − Θ⁽⁰⁾ of a client with exact moments.

    The paper's rule needs dimensions of sums of these spaces, which do not depend on the inner
    product. So they are taken in coordinates whitened by the control, `C₀ = L Lᵀ` on its
    p-dimensional column space: with `Δ_j = L⁻¹ C_j L⁻ᵀ − I`,

        Θ⁽ʲ⁾ − Θ⁽⁰⁾ = L⁻ᵀ [(I + Δ_j)⁻¹ − I] L⁻¹ ,   so   row{Θ⁽ʲ⁾ − Θ⁽⁰⁾} = L⁻ᵀ range(Δ_j) .

    Data of condition number κ then lose a factor κ in accuracy, not κ²: the rounding error of Δ is
    at most about `d·eps·κ·‖I + Δ‖`, and a smaller singular value counts as zero. The spaces of
    different blocks are orthogonal here, so errors do not accumulate from block to block.
    """
    p = client.n_latent
    values, vectors = np.linalg.eigh(client.control_second_moment())
    scale = values[-p:]
    to_features = vectors[:, -p:] / np.sqrt(scale)
    # Each change is symmetric, so the right singular vectors span its range; several strengths of
    # one label share the target's own direction and add one direction each.
    factors = {
        label: np.linalg.svd(
            np.concatenate(
                [to_features.T @ C @ to_features - np.eye(p) for C in client.second_moments(label)]
            )
        )[1:]
        for label in client.labels
    }
    size = max(1.0, *(float(s[0]) for s, _ in factors.values()))
    rounding = len(values) * float(np.finfo(np.float64).eps * scale[-1] / scale[0]) * size
    ranks = {label: int(np.count_nonzero(s > rounding)) for label, (s, _) in factors.items()}
    # A singular vector of size s is off by rounding/s (Wedin).
    errors = {
        x: rounding / (float(s[ranks[x] - 1]) if ranks[x] else 1.0) for x, (s, _) in factors.items()
    }
    Theta: dict[str | int, FloatArray] = {0: np.zeros((p, p))}
    for label, (_, right) in factors.items():
        Theta[label] = right[: ranks[label]].T @ right[: ranks[label]]
    return Changes(Theta, to_features, ranks, errors)


def _from_exact(changes: Changes, budget: Budget) -> tuple[_Found, Block]:
    """Algorithm 2 on exact moments: 2-FS in whitened coordinates with τ at the rounding error.

    Rows q̂ in X-space are what a block's space has off the rows of all ancestor blocks. The paper
    prints 𝒜 only, which may miss an ancestor when rows of H are orthogonal; the definition of Q
    asks for all ancestors.
    """
    search = BranchAndBound(budget)
    I, prec, white = literal.id_block_causal_order_fs(changes.Theta, changes.tau, search)
    spaces = dict(zip(I, np.split(white, np.cumsum([len(C) for C in I])[:-1]), strict=True))
    q: dict[Block, FloatArray] = {}
    for C in reversed(I):
        own = spaces[C] @ changes.to_features.T
        # Equal lengths: otherwise the directions of short rows drown in the rounding of long ones.
        own = own / np.linalg.norm(own, axis=1, keepdims=True)
        above = [q[B] for B in q if (C, B) in prec]
        if above:
            W = np.linalg.qr(np.concatenate(above).T)[0]
            for _ in range(2):  # the second pass removes the rounding error of the first
                own = own - (own @ W) @ W.T
        q[C] = np.linalg.svd(own, full_matrices=False)[2]
    return (I, prec, np.concatenate([q[C] for C in I])), search.undivided


def _uneven(changes: Changes, I: Sequence[Block]) -> bool:
    """Does any block change more or fewer directions, off earlier blocks, than it has labels?"""
    p = len(changes.Theta[0])
    W = np.zeros((0, p))
    for C in reversed(I):
        _, sigma, right = np.linalg.svd(literal.off(literal.stacked(changes.Theta, C), W))
        found = int(np.count_nonzero(sigma > changes.tau * sigma.sum()))
        if found != len(C):
            return True
        W = np.concatenate([W, right[:found]])
    return False


def _literal(client: Client, tau: float, budget: Budget) -> tuple[_Found, Block]:
    """The blocks that `literal` finds; none is left undivided."""
    m = len(client.labels)
    if 2**m - 1 > budget.total:
        raise InputError(
            f"the literal search may have to examine {2**m - 1} sets of {m} labels; the budget is "
            f"{budget.total}",
            'Use search="fast", or raise the budget.',
            client=client.name,
        )
    if not client.is_population:
        precisions_of(client)  # refuses singular regimes
    Theta = literal.precisions(client)
    try:
        if client.is_population:
            return literal.id_block_causal_order(Theta), ()
        return literal.id_block_causal_order_fs(Theta, tau), ()
    except InputError as error:
        raise InputError(error.what, error.remedy, client=client.name) from None


def _outcome(
    client: Client, I: Sequence[Block], undivided: Block, budget: Budget, exact: Changes | None
) -> Outcome:
    if undivided:
        placed = len(client.labels) - len(undivided)
        return Outcome(
            "budget",
            f"the search stopped after {budget.total} label sets: {placed} of "
            f"{len(client.labels)} labels are placed in {len(I) - 1} blocks, the "
            f"other {len(undivided)} form one last block.",
            f"{_OTHER_METHOD}, or raise the budget.",
        )
    if client.n_latent > len(client.labels):
        return Outcome(
            "not-identified",
            f"the paper's method needs an intervention on every latent; this client has "
            f"{client.n_latent} latents and {len(client.labels)} labels.",
            f"{_OTHER_METHOD}, or intervene on the others too.",
        )
    if exact is not None and exact.idle:
        return Outcome(
            "not-identified",
            f"{', '.join(exact.idle)} changed nothing, so the blocks found with "
            f"{'it' if len(exact.idle) == 1 else 'them'} are not reliable.",
            "Drop the label, or apply a stronger intervention.",
        )
    if exact is not None and _uneven(exact, I):
        return Outcome(
            "not-identified",
            "the number of directions in which a block's labels change the precision is not its "
            "number of labels; two labels may share a target.",
            "Check that every label intervenes on a latent of its own.",
        )
    return Outcome()


# Findings about single labels: message and remedy.
_FINDINGS = {
    "no-effect": (
        "the intervention changed nothing",
        "Drop the label, or apply a stronger intervention.",
    ),
    "rank-above-two": (
        "the precision changes in more directions than an intervention on one node can cause",
        "Check that the label intervenes on a single latent and that the moments are exact.",
    ),
    "ill-conditioned": (
        "rounding errors are large relative to this label's change and hide weak relations",
        "Rescale the features, give the moments with more digits, or intervene more strongly.",
    ),
}


def _findings(client: Client, changes: Changes) -> tuple[Finding, ...]:
    """What exact moments show about single labels."""
    found: list[tuple[str, float, float | None, str]] = []
    for label, rank in changes.ranks.items():
        most, error = len(client.interventions[label]) + 1, changes.errors[label]
        if rank == 0:
            found.append(("no-effect", 0.0, None, label))
        elif rank > most:
            found.append(("rank-above-two", float(rank), float(most), label))
        elif error > COARSE:
            found.append(("ill-conditioned", error, COARSE, label))
    return tuple(
        Finding(check, "warning", *_FINDINGS[check], value, threshold, client.name, label)
        for check, value, threshold, label in found
    )
