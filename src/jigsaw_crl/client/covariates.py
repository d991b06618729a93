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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import few
from jigsaw_crl.moments.regime import Incomplete, Moments

Regimes = Mapping[str, tuple[Moments, ...]]


@dataclass(frozen=True, eq=False)
class Covariates:
    """The covariates of a client, and its moments of the features and, behind them, of these."""

    names: tuple[str, ...]
    slopes: FloatArray  # Γ of the control, shape (n_features, q)
    control: Moments
    interventions: Regimes

    def to_columns(self, functionals: FloatArray) -> FloatArray:
        """Functionals of the features, as functionals of features and covariates."""
        return np.hstack([functionals, -functionals @ self.slopes])

    def only(self) -> tuple[Moments, dict[str, list[Moments]]]:
        """Moments of the covariates alone."""
        own = np.arange(-len(self.names), 0)
        labels = {x: [m.select(own) for m in ms] for x, ms in self.interventions.items()}
        return self.control.select(own), labels

    def counting(self, control: Moments, regimes: Regimes) -> Covariates:
        """The same, whose rows count for as many as those of the moments without covariates."""
        return replace(
            self,
            control=_counted_as(self.control, control),
            interventions={
                x: tuple(map(_counted_as, ms, regimes[x])) for x, ms in self.interventions.items()
            },
        )

    def relabelled(self, names: Mapping[str, str]) -> Covariates:
        own = {names.get(x, x): ms for x, ms in self.interventions.items()}
        return replace(self, interventions=own)


def without_covariates(
    client: str, features: Sequence[str], names: Sequence[str], control: Moments, regimes: Regimes
) -> tuple[tuple[str, ...], Moments, dict[str, tuple[Moments, ...]], Covariates]:
    """The other features, the moments without the part of the covariates, and these.

    `features` are all columns, `names` those that are covariates.
    """
    lacking = [name for name in names if name not in features]
    if lacking or len(set(names)) < len(names) or len(names) >= len(features):
        wrong = f"there is no feature {few(map(repr, lacking))}" if lacking else "check the names"
        raise InputError(f"covariates: {wrong}", "Name numeric columns, each once.", client=client)
    beside = np.array([list(features).index(name) for name in names], dtype=np.intp)
    own = np.setdiff1d(np.arange(len(features)), beside)
    order = np.concatenate([own, beside])
    whole = control.select(order)
    others = {x: tuple(m.select(order) for m in ms) for x, ms in regimes.items()}
    at, origin = np.arange(len(own), len(order)), whole.mean[len(own) :]
    first, slopes = _without(whole, at, origin)
    rest = {x: tuple(_without(m, at, origin)[0] for m in ms) for x, ms in others.items()}
    kept = tuple(features[i] for i in own.tolist())
    return kept, first, rest, Covariates(tuple(names), slopes, whole, others)


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
    return _counted_as(found, m), slopes


def _counted_as(m: Moments, other: Moments) -> Moments:
    """Moments whose rows count for as many as those of others, without parts unless they have."""
    if other.counted is not None:
        m = m.counting(other.counted.mean, other.counted.covariance)
    return m if other.parts else replace(m, parts=())
