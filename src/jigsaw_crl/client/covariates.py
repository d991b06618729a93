"""Covariates: measured causes of the features that no intervention changes, and their removal.

Rows are `(x, w)`, features x and q covariates w (sequencing depth, ambient temperature). A
covariate may act on the sensors, on the latents, or on both. Within regime j

    x = a_j + Γ_j w + e ,      e uncorrelated with w ,

and e has the moments of a client without covariates. The slopes belong to the regime: where w acts
on a latent, an intervention below it changes how much of it reaches the sensors. Slopes common to
all regimes would leave `(Γ_j − Γ) Cov(w) (Γ_j − Γ)ᵀ` in the regime. Where w acts on sensors alone,
all Γ_j are equal, and estimating them one by one costs q of the rows of each regime and nothing
else. With S the covariance of (x, w) in regime j, and w₀ the control's mean,

    Γ = S_xw S_ww⁻¹ ,     C = S_xx − Γ S_wx ,     μ = mean(x) − Γ (mean(w) − w₀) ,

so only accumulated moments are needed. `n − q` rows count for C, and the variance of μ is
`1 + hᵀ S_ww⁻¹ h` times that of a mean, with `h = mean(w) − w₀`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import few
from jigsaw_crl.moments.regime import Incomplete, Moments


@dataclass(frozen=True, eq=False)
class Covariates:
    """The covariates of a client."""

    names: tuple[str, ...]
    slopes: FloatArray  # Γ of the control, shape (n_features, q)
    # Of the features and, behind them, of the covariates; in the order of `Client.named_regimes`.
    moments: tuple[Moments, ...]

    def to_columns(self, functionals: FloatArray) -> FloatArray:
        """Functionals of the features, as functionals of features and covariates."""
        return np.hstack([functionals, -functionals @ self.slopes])


def without_covariates(
    client: str, features: Sequence[str], names: Sequence[str], regimes: Sequence[Moments]
) -> tuple[tuple[str, ...], list[Moments], Covariates]:
    """The other features, the moments without the part of the covariates, and these.

    `features` are all columns, `names` those that are covariates; the control is first.
    """
    lacking = [name for name in names if name not in features]
    if lacking or len(set(names)) < len(names) or len(names) >= len(features):
        wrong = f"there is no feature {few(map(repr, lacking))}" if lacking else "check the names"
        raise InputError(f"covariates: {wrong}", "Name numeric columns, each once.", client=client)
    beside = np.array([list(features).index(name) for name in names], dtype=np.intp)
    own = np.setdiff1d(np.arange(len(features)), beside)
    whole = tuple(m.select(np.concatenate([own, beside])) for m in regimes)
    at, origin = np.arange(len(own), len(features)), whole[0].mean[len(own) :]
    rest = [_without(m, at, origin) for m in whole]
    kept = tuple(features[i] for i in own.tolist())
    return kept, [m for m, _ in rest], Covariates(tuple(names), rest[0][1], whole)


def _without(m: Moments, beside: IntArray, origin: FloatArray) -> tuple[Moments, FloatArray]:
    """Moments of a regime given that its covariates are at `origin`, and the slopes."""
    d, plain = int(beside[0]), m.uncounted()
    S = plain.covariance
    inverse = np.linalg.pinv(S[d:, d:], hermitian=True)
    slopes = S[:d, d:] @ inverse
    T = np.hstack([np.eye(d), -slopes])
    step = slopes @ origin
    n, share = plain.n, 1.0
    incomplete = plain.incomplete
    if n is not None:
        away = plain.mean[d:] - origin
        gaps = incomplete or Incomplete(plain.rows or 0, 0)
        incomplete = replace(gaps, mean=gaps.mean * (1.0 + float(away @ inverse @ away)))
        left = max(n - len(beside), 2)
        n, share = left, n / left
    C = share * T @ S @ T.T
    found = replace(
        plain,
        n=n,
        mean=T @ plain.mean + step,
        covariance=(C + C.T) / 2,
        third=None,
        fourth=None,
        parts=tuple(Moments(x.n, T @ x.mean + step, T @ x.covariance @ T.T) for x in plain.parts),
        batches=tuple(replace(b, mean=T @ b.mean + step) for b in plain.batches),
        incomplete=incomplete,
        step=None if plain.step is None else plain.step[:d],
    )
    return counted_as(found, m), slopes


def counted_as(m: Moments, other: Moments) -> Moments:
    """Moments whose rows count for as many as those of others, without parts unless they have."""
    if other.counted is not None:
        m = m.counting(other.counted.mean, other.counted.covariance)
    return m if other.parts else replace(m, parts=())
