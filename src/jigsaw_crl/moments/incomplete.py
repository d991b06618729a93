"""Mean and covariance of rows with missing values, by EM for Gaussian rows, and what the gaps cost.

Values are taken to be missing at random: whether one is missing may depend on the values that are
there, not on itself. M is the set of missing features of a row, O that of the others, K the inverse
of the covariance C, and y the row less the mean μ, zero at M. Given the others, the missing values
have the mean `−V (K y)_M` and the covariance `V = (K_MM)⁻¹`. EM fills them in, adds V, takes the
mean and covariance of the filled rows, and repeats this until nothing changes.

*What the gaps cost.* In coordinates in which C = I, a row has the information `A = I − B` about the
mean, with B the projector on what its gaps hide. The factor by which the variance of a mean
`⟨f, μ⟩` grows is `⟨f, A⁻¹f⟩/⟨f, f⟩`, with A the average over the rows. It is averaged over the
leading directions of the rows, those of the latents. That of a covariance is its square, to first
order in B: of 24 kinds of gaps it was 0 to 9 % above the exact one. Features that copy one another
through the latents fill each other's gaps, and then gaps cost little.

*Parts.* The expected sums of a part of the rows, filled in by the moments of all rows, vary by
`1/g` of what those of complete rows do, with g the factor. Scaled up to what the part's own
estimate would be, they show how much the moments of parts differ; see `client/counting.py`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jigsaw_crl.base.arrays import TOGETHER, ArrayLike, BoolArray, FloatArray, IntArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.moments.checks import check_values
from jigsaw_crl.moments.lattice import steps_of
from jigsaw_crl.moments.regime import Incomplete, Moments

# Variance that is added to every feature, of unit variance, before matrices are inverted. Sensors
# without noise make C singular; this is far below what rows show and far above rounding errors.
RIDGE = 1e-9
# EM stops when no entry of the whitened covariance changes by more than this share of its sampling
# error.
PRECISION = 0.01
MOST_ROUNDS = 500


# Rows that miss equally many values: what each of u patterns misses, shape (u, m), and its share of
# all rows; these k rows, and the pattern of each.
_Gaps = tuple[IntArray, FloatArray, IntArray, IntArray]


def _patterns(gaps: BoolArray) -> list[_Gaps]:
    """Patterns of missing values, by their number; complete rows are in none."""
    heads, code, count = np.unique(gaps, axis=0, return_inverse=True, return_counts=True)
    code, missing = code.ravel(), heads.sum(axis=1)
    found = []
    for m in np.unique(missing[missing > 0]).tolist():
        which = np.flatnonzero(missing == m)
        rows = np.flatnonzero(missing[code] == m)
        features = np.nonzero(heads[which])[1].reshape(-1, m)
        weight = count[which] / len(gaps)
        found.append((features, weight, rows, np.searchsorted(which, code[rows])))
    return found


def filled(rows: ArrayLike, parts: IntArray, rank: int) -> Moments:
    """Moments of rows with missing values (NaN), shape (n, d), and what these cost.

    `parts` numbers the part of each row. The cost is that of moments in the leading directions, as
    many as latents (`rank`). Raises an `InputError` if a feature is observed in too few rows, or EM
    does not settle.
    """
    x = np.array(rows, dtype=np.float64)
    gaps: BoolArray = np.isnan(x)
    check_values(np.where(gaps, 0.0, x))
    n, d = x.shape
    seen, step = n - np.count_nonzero(gaps, axis=0), steps_of(x)
    if int(seen.min()) <= d + 1:
        raise InputError(
            f"feature {int(np.argmin(seen)) + 1} has {int(seen.min())} values in {n} rows, too few "
            f"for the covariance of {d} features from incomplete rows",
            'Leave the feature out, or leave incomplete rows out (missing="drop").',
        )
    centre, scale = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
    scale[scale == 0] = 1.0
    patterns = _patterns(gaps)
    x = (x - centre) / scale
    x[gaps] = 0.0
    mean, C = _settled(x, gaps, patterns)
    _, _, T, hidden = _expected(x, gaps, patterns, mean, C)
    # A functional v of the features is T⁻ᵀ v in whitened coordinates; the average of B is T V Tᵀ.
    eye, units = np.eye(d), np.outer(scale, scale)
    leading = np.linalg.eigh(C * units)[1][:, ::-1][:, :rank]
    Q = np.linalg.qr(np.linalg.solve(T, eye).T @ (scale[:, None] * leading))[0]
    total = float(np.trace(Q.T @ np.linalg.solve(eye - T @ hidden @ T.T, Q)))
    of_means = max(total / Q.shape[1], 1.0)
    of_covariances = of_means**2

    def moments(n: int, m: FloatArray, S: FloatArray) -> Moments:
        """The rows count for as many complete ones."""
        count = max(round((n - 1) / of_covariances) + 1, 1)
        return Moments(count, centre + scale * m, (S + S.T) / 2 * units)

    own = []
    for part in np.unique(parts).tolist():
        at = np.flatnonzero(parts == part)
        m, S = _expected(x[at], gaps[at], _patterns(gaps[at]), mean, C)[:2]
        m = mean + np.sqrt(of_means * of_covariances) * (m - mean)
        S = _cut(C + of_covariances * (S - C), 0.0)
        own.append(moments(len(at), m, S))
    away = np.where(gaps, 0.0, x - mean)
    return replace(
        moments(n, mean, C),
        # Of the values that are there.
        third=np.sum(away**3, axis=0) / seen * scale**3,
        fourth=np.sum(away**4, axis=0) / seen * scale**4,
        parts=tuple(own),
        incomplete=Incomplete(n, int(np.count_nonzero(gaps.any(axis=1))), of_means),
        step=step,
    )


def _cut(S: FloatArray, least: float) -> FloatArray:
    """The matrix with eigenvalues below `least`, if there are some, set to zero."""
    values, vectors = np.linalg.eigh(S)
    if values[0] >= least:
        return S
    return np.asarray((vectors * np.where(values < least, 0.0, values)) @ vectors.T)


def _settled(
    x: FloatArray, gaps: BoolArray, patterns: list[_Gaps]
) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance by EM; missing entries of x are zero."""
    n, d = x.shape
    mean, complete = np.zeros(d), x[~gaps.any(axis=1)]
    C = (x.T @ x / n + np.eye(d)) / 2
    if len(complete) > 2 * d:
        C = np.cov(complete.T, bias=True).reshape(d, d)
    for _ in range(MOST_ROUNDS):
        before = C
        mean, C, T, _ = _expected(x, gaps, patterns, mean, C)
        if np.abs(T @ (C - before) @ T.T).max() < PRECISION / np.sqrt(n):
            # Directions with less variance have none: what is left is what RIDGE allows.
            return mean, _cut(C, 100 * RIDGE)
    raise InputError(
        f"the covariance of incomplete rows does not settle in {MOST_ROUNDS} rounds of EM",
        "Too much is missing: leave out the features with most gaps, or incomplete rows "
        '(missing="drop").',
    )


def _expected(
    x: FloatArray, gaps: BoolArray, patterns: list[_Gaps], mean: FloatArray, C: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """One round of EM: the next mean and covariance, T with `T C Tᵀ = I`, and the average of V."""
    n = len(x)
    T = np.linalg.inv(np.linalg.cholesky(C + RIDGE * np.eye(len(C))))
    K = T.T @ T
    away = np.where(gaps, 0.0, x - mean)
    spread = np.zeros_like(C)
    pulls = away @ K
    for features, weight, rows, patterns_of in patterns:
        where = features[:, :, None], features[:, None, :]
        V: FloatArray = np.asarray(np.linalg.inv(K[where]), dtype=np.float64)
        np.add.at(spread, where, weight[:, None, None] * V)
        for k in range(0, len(rows), TOGETHER):
            pattern = patterns_of[k : k + TOGETHER]
            missing = rows[k : k + TOGETHER, None], features[pattern]
            away[missing] = -(V[pattern] @ pulls[missing][:, :, None])[:, :, 0]
    step = away.sum(axis=0) / n
    covariance = away.T @ away / n + spread - np.outer(step, step)
    return mean + step, covariance, T, spread
