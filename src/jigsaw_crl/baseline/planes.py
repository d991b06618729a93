"""Exact moments: the row space of each Θ⁽ʲ⁾ − Θ⁽⁰⁾, and the dimension of their projections.

The paper's rule needs numbers of the form

    dim P(C; W) = dim Π_{W⊥} row{Θ⁽ʲ⁾ − Θ⁽⁰⁾ : j ∈ C} = dim(row{…} + W) − dim W ,

which do not depend on the inner product. They are therefore computed in coordinates whitened by the
control covariance, `C₀ = L Lᵀ` on its p-dimensional column space: with `Δ_j = L⁻¹ C_j L⁻ᵀ − I`,

    Θ⁽ʲ⁾ − Θ⁽⁰⁾ = L⁻ᵀ [(I + Δ_j)⁻¹ − I] L⁻¹ ,   so   row{Θ⁽ʲ⁾ − Θ⁽⁰⁾} = L⁻ᵀ range(Δ_j) .

A change that is 10⁻⁸ of the largest precision in X-space is of order one here, so data of condition
number κ lose a factor κ in accuracy, not κ². In these coordinates the spaces of different blocks
are also orthogonal to each other, so errors do not accumulate from block to block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import ArrayLike, FloatArray, IntArray
from jigsaw_crl.client.client import Client

__all__ = ["Planes", "Space", "complement", "dimension", "planes_of", "project"]

EPS = float(np.finfo(np.float64).eps)

# A singular value counts as zero when it is below SAFETY times its error. The error is measured
# (see `_noise`) as the largest of a few numbers of its size; a factor of 32 covers their spread and
# costs one and a half digits.
SAFETY = 32.0
# With fewer spare directions than this the measured error is unreliable (too small by a factor of
# up to 300 in trials), and a share of the bound is used instead. In clients of 2 to 6 latents and
# condition numbers from 1 to 1e9 the error stayed below 0.06 of the bound; SAFETY times the share
# is 0.125.
ENOUGH = 5
USUAL_SHARE = 1 / 256


@dataclass(frozen=True, eq=False)
class Planes:
    """Row spaces of the precision changes of one client, in whitened coordinates.

    Parameters
    ----------
    labels : tuple of str
    to_features : array, shape (n_features, p)
        `L⁻ᵀ`: maps a whitened vector to a linear functional of X.
    vectors : array, shape (m, p, k)
        For each label an orthonormal basis of `range(Δ_j)`, padded with zero columns to k.
    ranks : array of int, shape (m,)
        Dimension of each; 2 in general, 1 for a target without ancestor and spouse.
    errors : array, shape (m,)
        Bound on the Frobenius norm of the error of each basis.
    crowded : tuple of str
        Labels whose change has a higher rank than a single-node intervention can cause.
    """

    labels: tuple[str, ...]
    to_features: FloatArray
    vectors: FloatArray
    ranks: IntArray
    errors: FloatArray
    crowded: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Space:
    """The bases of some labels inside a subspace, with bounds on their errors.

    Parameters
    ----------
    vectors : array, shape (m, s, k)
        Coordinates of each label's basis vectors in an orthonormal basis of the subspace.
    errors : array, shape (m,)
    """

    vectors: FloatArray
    errors: FloatArray


def planes_of(client: Client) -> Planes:
    """The row spaces of a client's precision changes, whitened by the control."""
    p = client.n_latent
    values, vectors = np.linalg.eigh(client.control_second_moment())
    scale, U = values[-p:], vectors[:, -p:]
    to_features = U / np.sqrt(scale)
    changes = []
    for label in client.labels:
        parts = [to_features.T @ c @ to_features - np.eye(p) for c in client.second_moments(label)]
        changes.append(np.concatenate(parts))
    # Each change is symmetric, so the right singular vectors span its range; several strengths of
    # one label share the target's own direction and add one direction each.
    factors = [np.linalg.svd(change)[1:] for change in changes]
    spare = [len(change) // p + 1 for change in changes]
    size = max(1.0, *(float(s[0]) for s, _ in factors))
    noise = _noise([s for s, _ in factors], spare, size, float(scale[-1] / scale[0]), len(values))
    ranks = np.array([np.count_nonzero(s > SAFETY * noise) for s, _ in factors], dtype=np.intp)
    stacked = np.zeros((len(factors), p, max(1, int(ranks.max()))))
    errors = np.full(len(factors), noise)
    for j, (s, vt) in enumerate(factors):
        stacked[j, :, : ranks[j]] = vt[: ranks[j]].T
        if ranks[j]:
            # A singular vector of size s is off by noise/s (Wedin).
            errors[j] = np.sqrt(np.sum((noise / s[: ranks[j]]) ** 2))
    crowded = tuple(x for x, r, most in zip(client.labels, ranks, spare, strict=True) if r > most)
    return Planes(client.labels, to_features, stacked, ranks, errors, crowded)


def _noise(
    singular: Sequence[FloatArray], spare: Sequence[int], size: float, condition: float, d: int
) -> float:
    """Size of the rounding error in the changes Δ_j.

    Whitening multiplies the rounding of the moments by their condition number κ; the error is at
    most about `d·eps·κ·‖I + Δ‖`, usually far less. It can be measured: an intervention on one node
    changes at most two directions, so the third singular value of each Δ_j is rounding. If the data
    violate the model, the bound is used.
    """
    bound = d * EPS * condition * size
    seen = [float(s[most]) for s, most in zip(singular, spare, strict=True) if len(s) > most]
    if len(singular[0]) - max(spare) < ENOUGH:
        seen.append(USUAL_SHARE * bound)
    return min(bound, max(d * EPS * size, *seen))


def complement(p: int, spaces: Iterable[FloatArray]) -> FloatArray:
    """Orthonormal basis N of the vectors orthogonal to `spaces`, shape (p, p − t).

    With W the t rows that span the spaces, `I − Wᵀ(WWᵀ)⁻¹W = N Nᵀ`, and `M N` has the singular
    values of `M N Nᵀ`.

    Parameters
    ----------
    p : int
    spaces : iterable of arrays, each of shape (p, t_i)
        Linearly independent columns, t in all.
    """
    columns = np.concatenate([np.empty((p, 0)), *spaces], axis=1)
    t = columns.shape[1]
    if t == 0:
        return np.eye(p)
    q: FloatArray = np.linalg.qr(columns, mode="complete")[0]
    return np.ascontiguousarray(q[:, t:])


def project(planes: Planes, chosen: Sequence[int], N: FloatArray, error: float = 0.0) -> Space:
    """Bases of the `chosen` labels in the coordinates of N; `error` bounds the error of N."""
    vectors = N.T @ planes.vectors[list(chosen)]
    spread = error * np.sqrt(planes.ranks[list(chosen)])
    return Space(vectors, np.hypot(planes.errors[list(chosen)], spread))


def dimension(space: Space, members: ArrayLike) -> IntArray:
    """`dim P(C; W)` for a batch of label sets.

    Parameters
    ----------
    space : Space
        Bases in the orthogonal complement of W.
    members : array of int, shape (N, r)
        Label sets of one size, as positions in `space`.

    Returns
    -------
    array of int, shape (N,)
    """
    sets = np.asarray(members, dtype=np.intp)
    n, r = sets.shape
    _, s, k = space.vectors.shape
    stacked = np.moveaxis(space.vectors[sets], 1, 2).reshape(n, s, r * k)
    tolerance = SAFETY * np.sqrt((space.errors[sets] ** 2).sum(axis=1))
    # Weyl: an error of Frobenius norm e changes a singular value by at most e.
    values = np.linalg.svd(stacked, compute_uv=False)
    return np.asarray(np.count_nonzero(values > tolerance[:, None], axis=1), dtype=np.intp)
