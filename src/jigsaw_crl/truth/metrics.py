"""How good a recovery is, when the truth is known: E1, E2 and E3 of the paper.

E1 (`global_f1`) compares orders; larger is better. E2 (`subspace_error`) and E3
(`support_leakage`) compare a client's latent basis with the truth; smaller is better. All lie in
[0, 1].

Examples
--------
>>> import jigsaw_crl as jc
>>> world = jc.simulate.setting("A", 0)
>>> result = jc.recover(world.clients())
>>> jc.metrics.global_f1(world.order, result.order)
1.0
>>> truths = [world.truth(k) for k in range(world.n_clients)]
>>> round(jc.metrics.subspace_error(truths, result.fragments), 12)
0.0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.errors import InputError

if TYPE_CHECKING:
    from jigsaw_crl.fragment.fragment import Fragment
    from jigsaw_crl.truth.simulate.world import Truth

__all__ = ["global_f1", "subspace_error", "support_leakage"]

FloatArray = npt.NDArray[np.float64]

# The paper's ε: what counts as a coefficient outside the allowed support.
LEAKAGE_THRESHOLD = 1e-2
# Directions of a block's rows below this share of the largest are rounding, not a dimension.
ROW_SPACE_TOLERANCE = 1e-10


class HasPairs(Protocol):
    """Anything with a method `pairs` that gives (ancestor, descendant) pairs."""

    def pairs(self) -> Iterable[tuple[Any, Any]]: ...


Pairs = HasPairs | Iterable[tuple[Any, Any]]


def global_f1(true_pairs: Pairs, estimated_pairs: Pairs) -> float:
    """E1: the F1 score of the estimated set of (ancestor, descendant) pairs.

    Parameters
    ----------
    true_pairs, estimated_pairs : order or iterable of (ancestor, descendant)
        Anything with a method `pairs`, or the pairs themselves.

    Returns
    -------
    float
        `2 |T ∩ S| / (|T| + |S|)`; 1 when both are empty.

    Examples
    --------
    >>> from jigsaw_crl.truth.metrics import global_f1
    >>> global_f1({("a", "b"), ("a", "c")}, {("a", "b")})
    0.6666666666666666
    >>> global_f1(set(), set())
    1.0
    """
    true, estimated = _pairs(true_pairs), _pairs(estimated_pairs)
    size = len(true) + len(estimated)
    return 2 * len(true & estimated) / size if size else 1.0


def subspace_error(truth: Any, fragment: Any) -> float:
    """E2: how far the blocks' row spaces are from the true ones.

    For a client and a true block C, `E = ‖P̂ − P‖_F² / (2|C|)`, where P and P̂ project on the rows of
    Q and of Q̂ that belong to the labels in C, whatever blocks were estimated. The mean over the
    blocks of a client, then over clients. A block with a row that was not recovered (absent, zero
    or not finite) scores 1.

    Parameters
    ----------
    truth : Truth or sequence of Truth
    fragment : Fragment, sequence of Fragment, or mapping from client to Fragment
        Matched to the truths by the client's name.

    Returns
    -------
    float

    Examples
    --------
    >>> from jigsaw_crl import Fragment
    >>> from jigsaw_crl.truth.metrics import subspace_error
    >>> from jigsaw_crl.truth.simulate import setting
    >>> truth = setting("A", seed=0).truth(0)
    >>> exact = Fragment(truth.client, "paper", truth.labels, truth.blocks, truth.block_order,
    ...                  basis=truth.Q)
    >>> round(subspace_error(truth, exact), 12)
    0.0
    """
    return _mean_over_clients(_client_subspace_error, truth, fragment)


def support_leakage(truth: Any, fragment: Any) -> float:
    """E3: the share of forbidden coefficients of Ẑ that are not small.

    `N = Q̂ G` expresses Ẑ in the true latents (rows of Q̂ at unit norm, as the paper defines them).
    Entry (i, j) is forbidden unless the block of j is the block of i or one of its ancestor blocks;
    E3 is the share of forbidden entries with `|N_ij| > 0.01`, averaged over clients. A client
    without forbidden entries scores 0; a row that was not recovered counts as leaking everywhere.

    Parameters
    ----------
    truth : Truth or sequence of Truth
    fragment : Fragment, sequence of Fragment, or mapping from client to Fragment
        Matched to the truths by the client's name.

    Returns
    -------
    float

    Examples
    --------
    >>> from jigsaw_crl import Fragment
    >>> from jigsaw_crl.truth.metrics import support_leakage
    >>> from jigsaw_crl.truth.simulate import setting
    >>> truth = setting("A", seed=0).truth(0)
    >>> exact = Fragment(truth.client, "paper", truth.labels, truth.blocks, truth.block_order,
    ...                  basis=truth.Q)
    >>> support_leakage(truth, exact)
    0.0
    """
    return _mean_over_clients(_client_support_leakage, truth, fragment)


def _pairs(given: Pairs) -> frozenset[tuple[Any, Any]]:
    held: Any = getattr(given, "pairs", given)
    return frozenset(held() if callable(held) else held)


def _mean_over_clients(
    score: Callable[[Truth, FloatArray], float], truth: Any, fragment: Any
) -> float:
    truths: Sequence[Truth] = [truth] if hasattr(truth, "labels") else list(truth)
    if isinstance(fragment, Mapping):
        found: list[Fragment] = list(fragment.values())
    else:
        found = [fragment] if hasattr(fragment, "labels") else list(fragment)
    by_client = {f.client: f for f in found}
    if not truths:
        raise InputError("there is no client to score", "Pass at least one truth.")
    missing = [t.client for t in truths if t.client not in by_client]
    if missing:
        raise InputError(
            "there is no fragment of this client", "Pass one fragment per truth.", client=missing[0]
        )
    return float(np.mean([score(t, _rows(t, by_client[t.client])) for t in truths]))


def _rows(truth: Truth, fragment: Fragment) -> FloatArray:
    """Rows of Q̂ in the order of the truth's labels, at unit norm; nan where not recovered."""
    if fragment.basis is None:
        raise InputError(
            "the fragment has no basis", "Score the fragment at its client.", client=truth.client
        )
    if not set(fragment.labels) <= set(truth.labels):
        raise InputError(
            "the fragment names labels that the truth does not know",
            "Score a fragment against the truth of its own client.",
            client=truth.client,
        )
    rows = np.full((len(truth.labels), fragment.basis.shape[1]), np.nan)
    for i, label in enumerate(truth.labels):
        if label in fragment.labels:
            rows[i] = fragment.basis[fragment.index(label)]
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    found = np.isfinite(norms) & (norms > 0)
    return np.where(found, rows / np.where(found, norms, 1.0), np.nan)


def _client_subspace_error(truth: Truth, rows: FloatArray) -> float:
    errors = []
    for block in truth.blocks:
        chosen = [i for i, label in enumerate(truth.labels) if label in block]
        if np.isnan(rows[chosen]).any():
            errors.append(1.0)
            continue
        gap = _projector(rows[chosen]) - _projector(truth.Q[chosen])
        errors.append(float((gap**2).sum()) / (2 * len(chosen)))
    return float(np.mean(errors))


def _projector(rows: FloatArray) -> FloatArray:
    """The orthogonal projector on the row space."""
    _, sizes, directions = np.linalg.svd(rows, full_matrices=False)
    kept = directions[sizes > ROW_SPACE_TOLERANCE * sizes[0]]
    return np.asarray(kept.T @ kept, dtype=np.float64)


def _client_support_leakage(truth: Truth, rows: FloatArray) -> float:
    block = [truth.block_of(label) for label in truth.labels]
    forbidden = np.array(
        [[bi != bj and not truth.block_order.is_ancestor(bj, bi) for bj in block] for bi in block]
    )
    if not forbidden.any():
        return 0.0
    small = np.abs(rows @ truth.mixing) <= LEAKAGE_THRESHOLD  # false for nan
    return float((forbidden & ~small).sum() / forbidden.sum())
