"""Estimates: the matrices Θ̂⁽ʲ⁾ − Θ̂⁽⁰⁾ and the ratio of their leading singular values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.client.client import RANK_TOLERANCE, Client
from jigsaw_crl.moments.regime import column_space

__all__ = ["Differences", "differences_of", "ratio"]


@dataclass(frozen=True, eq=False)
class Differences:
    """Changes of the precision, in an orthonormal basis of the column space of X.

    An orthonormal basis U preserves inner products and singular values, so the matrices are
    p_k × p_k instead of the paper's n_k × n_k.

    Parameters
    ----------
    labels : tuple of str
    to_features : array, shape (n_features, p)
        U.
    rows : tuple of arrays, each of shape (p · strengths, p)
        `Uᵀ (Θ̂⁽ʲ⁾ − Θ̂⁽⁰⁾) U`, stacked over the strengths of a label.
    """

    labels: tuple[str, ...]
    to_features: FloatArray
    rows: tuple[FloatArray, ...]

    def stacked(self, members: Sequence[int]) -> FloatArray:
        """`M̃(C)`: the changes of the labels in C, one above the other."""
        return np.concatenate([self.rows[j] for j in members])


def differences_of(client: Client) -> Differences:
    """The changes of a client: precisions on the common column space minus the control's."""
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

    theta_0 = precision(control, client.control_name)
    rows = tuple(
        np.concatenate([precision(c, label) - theta_0 for c in client.second_moments(label)])
        for label in client.labels
    )
    return Differences(client.labels, U, rows)


def ratio(M: FloatArray, r: int) -> float:
    """`ρ_r(M) = Σ_{i ≤ r} σ_i(M) / Σ_i σ_i(M)`; 1 for a matrix of zeros, which has rank ≤ r."""
    sigma = np.linalg.svd(M, compute_uv=False)
    total = float(sigma.sum())
    return float(sigma[:r].sum()) / total if total > 0 else 1.0
