"""The fragment of a client by the paper's method, and the order that its fragments make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np

from jigsaw_crl.base.algebra import orthogonal_rows
from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.order import PartialOrder, strongly_connected, transitive_closure
from jigsaw_crl.baseline import literal
from jigsaw_crl.baseline.literal import Block
from jigsaw_crl.baseline.search import DEFAULT_BUDGET, BranchAndBound
from jigsaw_crl.client.client import Client
from jigsaw_crl.fragment.fragment import Fragment, Outcome
from jigsaw_crl.moments.checks import RANK_TOLERANCE

# The value the paper recommends without calibration, and the grid it calibrates on.
DEFAULT_TAU = 0.05
TAU_GRID: tuple[float, ...] = (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.10)
_OTHER_METHOD = 'Use method="null-cone"'


def recover_fragment(
    client: Client, *, tau: float | None = None, budget: int = DEFAULT_BUDGET
) -> Fragment:
    """Blocks, block order and latent basis of one client, by the paper's method.

    Estimates are given to Algorithm 2-FS, and exact moments too, with τ above their rounding error.

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
    """
    given: object = DEFAULT_TAU if tau is None else tau
    if isinstance(given, bool) or not isinstance(given, Real) or not 0.0 < float(given) < 1.0:
        raise InputError(
            f"tau is {tau!r}",
            f"Pass a number strictly between 0 and 1; the paper recommends {DEFAULT_TAU}.",
            client=client.name,
        )
    tau = float(given)
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer) or budget < 1:
        raise InputError(
            f"budget is {budget!r}",
            "Pass the number of label sets the search may examine: a whole number, at least 1.",
            client=client.name,
        )
    search, exact = BranchAndBound(int(budget)), client.is_population
    if exact:
        tau = min(literal.SAFETY / float(np.sqrt(client.white.n_control)), 0.5)
    Theta, W = precisions_of(client)
    I, prec, Q = literal.id_block_causal_order_fs(Theta, tau, search)
    unfit = _unfit(I, Theta, tau) if exact else ""
    places = {C: [client.labels.index(label) for label in C] for C in I}
    basis = np.empty((len(Q), W.shape[1]))
    basis[np.concatenate([places[C] for C in I])] = Q @ W
    if exact:
        # The paper prints 𝒜 only, which may miss an ancestor when rows of H are orthogonal; the
        # definition of Q asks for all ancestors.
        above = np.zeros((len(Q), len(Q)), dtype=bool)
        for C, B in prec:
            above[np.ix_(places[B], places[C])] = True
        basis = orthogonal_rows(basis, list(places.values()), above)
        for own in places.values():
            basis[own] = np.linalg.svd(basis[own], full_matrices=False)[2]
    named = {C: frozenset(C) for C in reversed(I)}  # the paper lists the newest block first
    return Fragment(
        client=client.name,
        method="paper",
        labels=client.labels,
        blocks=tuple(named.values()),
        block_order=PartialOrder.from_pairs(
            named.values(), [(named[B], named[C]) for C, B in prec]
        ),
        n_samples=client.n_samples,
        outcome=_outcome(client, len(I), search, unfit),
        basis=basis,
    )


def precisions_of(client: Client) -> tuple[dict[str | int, FloatArray], FloatArray]:
    """Θ̂⁽ʲ⁾ of each label and, under the key 0, of the control, in the space of the latents.

    The second value takes the features to that space, shape (p, n_features): an orthonormal basis
    of the column space of X. A label has a stack of matrices, one for each strength. Exact moments
    are whitened by the control, because rounding errors are small and known there.
    """
    if client.is_population:
        white = client.white
        Theta: dict[str | int, FloatArray] = {0: np.eye(white.dimension)}
        for place, label in enumerate(client.labels):
            Theta[label] = np.linalg.inv(white.M[white.owner == place])
        return Theta, white.W
    control = client.control_second_moment
    U = np.linalg.eigh(control)[1][:, ::-1][:, : client.n_latent]

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

    Theta = {0: precision(control, client.control_name)}
    for label in client.labels:
        Theta[label] = np.stack([precision(c, label) for c in client.second_moments(label)])
    return Theta, U.T


def _unfit(I: Sequence[Block], Theta: literal.Precisions, tau: float) -> str:
    """Why blocks from exact moments are not reliable; empty if they are."""
    changes = {j: np.abs(x - Theta[0]).max() for j, x in Theta.items() if isinstance(j, str)}
    idle = [j for j, change in changes.items() if change < tau]
    if idle:
        return f"{', '.join(idle)} changed nothing"
    W = np.zeros((0, len(Theta[0])))
    for C in reversed(I):
        _, sigma, right = np.linalg.svd(literal.off(literal.stacked(Theta, C), W))
        found = int(np.count_nonzero(sigma > tau * sigma.sum()))
        if found != len(C):
            return (
                "the number of directions in which a block's labels change the precision is not "
                "its number of labels; two labels may share a target"
            )
        W = np.concatenate([W, right[:found]])
    return ""


def _outcome(client: Client, n_blocks: int, search: BranchAndBound, unfit: str) -> Outcome:
    m = len(client.labels)
    if search.undivided:
        left = len(search.undivided)
        return Outcome(
            "budget",
            f"the search stopped after {search.budget} label sets: {m - left} of {m} labels "
            f"are placed in {n_blocks - 1} blocks, the other {left} form one last block.",
            f"{_OTHER_METHOD}, or raise the budget.",
        )
    if client.n_latent > m:
        return Outcome(
            "not-identified",
            f"the paper's method needs an intervention on every latent; this client has "
            f"{client.n_latent} latents and {m} labels.",
            f"{_OTHER_METHOD}, or intervene on the others too.",
        )
    if unfit:
        return Outcome(
            "not-identified",
            f"{unfit}, so the blocks are not reliable.",
            "Check that every label intervenes on a latent of its own, and strongly enough.",
        )
    return Outcome()


@dataclass(frozen=True)
class PaperOrder:
    """The output of Algorithm 3."""

    # Every (ancestor, descendant) pair of the transitive closure, without pairs of a label with
    # itself.
    pairs: frozenset[tuple[str, str]]
    # Sets of labels that lie on a cycle of the clients' relations; `pairs` then holds both
    # directions between any two labels of a set.
    cyclic: tuple[frozenset[str], ...]


def assemble_pairs(fragments: Iterable[Fragment]) -> PaperOrder:
    """The transitive closure of all parent relations between singleton blocks: Algorithm 3.

    Only block-level parents are used. Other ancestor relations between singleton blocks need not
    hold between the nodes: the path may pass through a block whose nodes share confounders only.

    Parameters
    ----------
    fragments : iterable of Fragment
        Of any method; only blocks and block order are used.

    Returns
    -------
    PaperOrder

    Examples
    --------
    >>> from jigsaw_crl import Fragment, PartialOrder
    >>> from jigsaw_crl.baseline import assemble_pairs
    >>> def chain(client, *labels):
    ...     blocks = tuple(frozenset({x}) for x in labels)
    ...     order = PartialOrder.from_pairs(blocks, zip(blocks, blocks[1:]))
    ...     return Fragment(client, "paper", labels, blocks, order)
    >>> order = assemble_pairs([chain("lab-1", "pump", "valve"), chain("lab-2", "valve", "fan")])
    >>> sorted(order.pairs)
    [('pump', 'fan'), ('pump', 'valve'), ('valve', 'fan')]
    >>> cyclic = assemble_pairs([chain("lab-1", "pump", "fan"), chain("lab-2", "fan", "pump")])
    >>> [sorted(labels) for labels in cyclic.cyclic]
    [['fan', 'pump']]
    """
    given = tuple(fragments)
    if not given:
        raise InputError("there is no fragment to assemble", "Pass at least one.")
    # Sorted, so that the result does not depend on the order of the fragments.
    labels = sorted({label for fragment in given for label in fragment.labels})
    position = {label: i for i, label in enumerate(labels)}
    relation = np.zeros((len(labels), len(labels)), dtype=bool)  # line 1: ≺̃ ← ∅
    for fragment in given:  # line 2
        for ancestor, descendant in fragment.block_order.covers():  # line 3: parents ...
            if len(ancestor) == len(descendant) == 1:  # ... between singletons
                (j,), (i,) = ancestor, descendant
                relation[position[j], position[i]] = True  # line 4: j is an ancestor of i
    closed = transitive_closure(relation)  # line 6
    circles = [members for members in strongly_connected(relation) if len(members) > 1]
    np.fill_diagonal(closed, False)
    pairs = frozenset((labels[a], labels[d]) for a, d in np.argwhere(closed).tolist())
    return PaperOrder(pairs, tuple(frozenset(labels[i] for i in c) for c in circles))  # line 7
