"""The two lowest and two highest eigenpairs of every regime.

A regime's second moment is `S_j = C_j + δ_j δ_jᵀ` (δ_j its mean minus the control's). In
coordinates `W`, for instance whitened by the control, it is `M_j = W (S_j − Ψ) Wᵀ`. From
dimension `DENSE` on, a block Krylov method finds its outermost eigenpairs without forming any
`M_j`: with `X` four rows per regime, the space spanned by `X, X M_j, X M_j², …` approximates the
outermost directions, better with every product. All regimes advance together, so each product
with `W` is one matrix product. For 60 regimes of 100 to 400 dimensions it takes a third of the time
of `scipy.sparse.linalg.eigsh`, and between a third and an eighth of the time of
`scipy.linalg.eigh(subset_by_index=…)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import daxpy

from jigsaw_crl.client.client import Client

__all__ = ["DENSE", "Extremes", "Form", "Regimes", "dense_pairs", "extreme_pairs"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

# Below these dimensions LAPACK's full diagonalisation is as fast as a few products in Python:
# without a start, and with one.
DENSE, WARM_DENSE = 64, 40
# If a residual above INVERSE is allowed, vectors come from one step of inverse iteration, with a
# shift SHIFT outside the spectrum, far enough that no pivot vanishes.
INVERSE, SHIFT = 1e-8, 1e-13
# New rows whose part outside the space is shorter than this are projected again, because rounding
# errors dominate them.
NEARLY_DEPENDENT = 1e-3
# Two pairs at either end.
WANTED = 4
# Products before the space is compressed to the wanted pairs: in the first cycle without a start,
# and in the others.
FIRST_STEPS, STEPS = 7, 5
MAX_CYCLES = 12
# Up to this many numbers (a megabyte), all regimes are copied into one array and taken together.
STACKED = 131_072
# Most regimes that advance together. In many dimensions they are fewer, so that their moments stay
# in the cache: CACHED numbers, about 5 MB, but not fewer than FEWEST regimes.
TOGETHER, CACHED, FEWEST = 64, 600_000, 16


@dataclass(frozen=True, eq=False)
class Regimes:
    """Second moments of all interventional regimes about the control mean.

    Parameters
    ----------
    covariances : tuple of array, shape (d, d)
        The client's own arrays; small ones are copied into one array for speed.
    shifts : array, shape (r, d)
        Mean of each regime minus the control mean.
    """

    covariances: tuple[FloatArray, ...]
    shifts: FloatArray

    @classmethod
    def of(cls, client: Client) -> Regimes:
        moments = [m for label in client.labels for m in client.interventions[label]]
        shifts = np.array([m.mean for m in moments]) - client.control.mean
        return cls(tuple(m.covariance for m in moments), shifts)

    def about_own_means(self) -> Regimes:
        """The same regimes, each about its own mean."""
        return Regimes(self.covariances, np.zeros_like(self.shifts))

    def __len__(self) -> int:
        return len(self.covariances)

    @cached_property
    def _moved(self) -> bool:
        return bool(self.shifts.any())

    @cached_property
    def stack(self) -> FloatArray | None:
        """The covariances as one array, shape (r, d, d), if they are small; None otherwise."""
        r, d = self.shifts.shape
        return np.array(self.covariances) if r * d * d <= STACKED else None

    def traces(self) -> FloatArray:
        """`tr S_j`, shape (r,)."""
        if self.stack is not None:
            own = np.einsum("rdd->r", self.stack)
        else:
            own = np.array([np.trace(c) for c in self.covariances])
        return np.asarray(own + np.einsum("rd,rd->r", self.shifts, self.shifts))

    def inner(self, A: FloatArray) -> FloatArray:
        """`tr(A S_j)` for a symmetric A, shape (r,)."""
        if self.stack is not None:
            own = self.stack.reshape(len(self), -1) @ A.ravel()
        else:
            own = np.array([np.vdot(A, c) for c in self.covariances])
        return np.asarray(own + np.einsum("rd,rd->r", self.shifts @ A, self.shifts))

    def times(self, X: FloatArray, chosen: IntArray) -> FloatArray:
        """`X_j S_j` for the chosen regimes; X has shape (len(chosen), b, d)."""
        if self.stack is not None:
            out = X @ self.stack[chosen]
        else:
            out = np.empty_like(X)
            for x, y, j in zip(X, out, chosen, strict=True):
                np.matmul(x, self.covariances[j], out=y)
        if self._moved:
            shifts = self.shifts[chosen]
            out += (X @ shifts[:, :, None]) * shifts[:, None, :]
        return np.asarray(out)

    def weighted(self, weights: FloatArray) -> FloatArray:
        """`Σ_j w_j S_j`, shape (d, d)."""
        d = self.shifts.shape[1]
        if self.stack is not None:
            total = weights @ self.stack.reshape(len(self), -1)
        else:
            total = np.zeros(d * d)
            for w, c in zip(weights, self.covariances, strict=True):
                if w != 0:
                    daxpy(c.ravel(), total, a=w)
        return np.asarray(total.reshape(d, d) + (self.shifts.T * weights) @ self.shifts)


@dataclass(frozen=True, eq=False)
class Form:
    """`M_j = W (S_j − Ψ) Wᵀ` for every regime, Ψ diagonal.

    Parameters
    ----------
    regimes : Regimes
    W : array, shape (p, d)
    floor : float or array, shape (d,)
        The diagonal of Ψ: the noise variance of the sensors.
    """

    regimes: Regimes
    W: FloatArray
    floor: float | FloatArray = 0.0

    @cached_property
    def noise(self) -> FloatArray | None:
        """`W Ψ Wᵀ`, the sensors' noise in these coordinates; None without any."""
        return (self.W * self.floor) @ self.W.T if np.any(self.floor) else None

    @property
    def dimension(self) -> int:
        return int(self.W.shape[0])

    def __call__(self, X: FloatArray, chosen: IntArray) -> FloatArray:
        """`X_j M_j` for the chosen regimes; X has shape (len(chosen), b, p)."""
        if "dense" in self.__dict__:
            return np.asarray(X @ self.dense[chosen])
        c, b, p = X.shape
        inner = X.reshape(c * b, p) @ self.W
        moved = self.regimes.times(inner.reshape(c, b, -1), chosen).reshape(c * b, -1)
        if np.any(self.floor):
            moved -= self.floor * inner
        return np.asarray((moved @ self.W.T).reshape(c, b, p))

    @cached_property
    def dense(self) -> FloatArray:
        """All `M_j`, exactly symmetric, shape (r, p, p)."""
        S, shifts = self.regimes.stack, self.regimes.shifts
        if S is None:
            S = np.array(self.regimes.covariances)
        if shifts.any():
            S = S + shifts[:, :, None] * shifts[:, None, :]
        M = self.W @ S @ self.W.T
        if self.noise is not None:
            M -= self.noise
        return np.asarray((M + np.swapaxes(M, 1, 2)) / 2)

    def some(self, chosen: IntArray) -> FloatArray:
        """`M_j` of the chosen regimes, symmetric up to rounding, shape (len(chosen), p, p)."""
        if "dense" in self.__dict__:
            return self.dense[chosen]
        identity = np.eye(self.dimension)[None]
        found = np.empty((len(chosen), self.dimension, self.dimension))
        for k in range(len(chosen)):
            found[k] = self(identity, chosen[k : k + 1])[0]
        return found

    def project(self, S: FloatArray, count: float = 1.0) -> FloatArray:
        """`W (S − count · Ψ) Wᵀ`, exactly symmetric."""
        M = self.W @ S @ self.W.T
        if self.noise is not None:
            M -= count * self.noise
        return np.asarray((M + M.T) / 2)


@dataclass(frozen=True, eq=False)
class Extremes:
    """Lowest, second lowest, second highest and highest eigenpair of every regime.

    Parameters
    ----------
    values : array, shape (r, 4)
        Ascending; in dimension p < 4 some values appear twice.
    vectors : array, shape (r, 4, p)
        Unit rows; zeros for the inner two where they were not computed.
    """

    values: FloatArray
    vectors: FloatArray


def extreme_pairs(
    form: Form,
    inside: tuple[FloatArray, FloatArray],
    tolerance: FloatArray,
    start: FloatArray | None = None,
) -> Extremes:
    """Outermost eigenpairs of every regime.

    Parameters
    ----------
    form : Form
    inside : tuple of two arrays, shape (r, 4)
        Lower and upper end of the noise; eigenvalues between them need not be resolved further.
    tolerance : array, shape (r,)
        Largest residual `‖v M − λ v‖` of any other pair.
    start : array, shape (r, 4, p), optional
        Approximate eigenvectors, for instance those for a similar `W`.

    Returns
    -------
    Extremes
    """
    p, r = form.dimension, len(form.regimes)
    if p < (DENSE if start is None else WARM_DENSE):
        if p > 2 and float(tolerance.min()) > INVERSE:
            return _outer_pairs(form.dense)
        return dense_pairs(form.dense)
    values, vectors = np.empty((r, WANTED)), np.empty((r, WANTED, p))
    first = FIRST_STEPS if start is None else STEPS - 2
    block = _generic(WANTED, p)
    if start is None:
        start = np.broadcast_to(block, (r, WANTED, p))
    elif not start[0, 1].any():
        start = start.copy()
        start[:, 1:3] = block[1:3] / np.sqrt(p)
    together = int(np.clip(CACHED // p**2, FEWEST, TOGETHER))
    for k in range(0, r, together):
        chosen = np.arange(k, min(k + together, r))
        X, steps = start[chosen], first
        for _ in range(MAX_CYCLES):
            theta, X, residual = _cycle(form, X, chosen, steps)
            values[chosen], vectors[chosen] = theta, X
            limits = inside[0][chosen], inside[1][chosen]
            unsettled = ~_settled(theta, residual, limits, tolerance[chosen])
            if not unsettled.any():
                break
            chosen, X, steps = chosen[unsettled], X[unsettled], STEPS
    return Extremes(values, vectors)


def dense_pairs(M: FloatArray) -> Extremes:
    """Outermost eigenpairs by full diagonalisation of matrices of shape (r, p, p)."""
    values, vectors = np.linalg.eigh(M)
    p = M.shape[-1]
    pick = np.array([0, min(1, p - 1), max(p - 2, 0), p - 1])
    return Extremes(values[:, pick], np.swapaxes(vectors[:, :, pick], 1, 2))


def _outer_pairs(M: FloatArray) -> Extremes:
    """All four values, and the outer two vectors by one step of inverse iteration each.

    Much cheaper than all vectors. The error shrinks by the ratio of the shift's distance from the
    eigenvalue to the gap to the next eigenvalue.
    """
    r, p = M.shape[:2]
    values = np.asarray(np.linalg.eigvalsh(M)[:, [0, 1, -2, -1]], dtype=np.float64)
    off = SHIFT * (1.0 + np.abs(values[:, 3]))
    shifted = np.empty((2, r, p, p))
    shifted[:] = M
    diagonal = np.einsum("srpp->srp", shifted)
    diagonal[0] -= (values[:, 0] - off)[:, None]
    diagonal[1] -= (values[:, 3] + off)[:, None]
    near = np.linalg.solve(shifted, _generic(2, p)[:, None, :, None])[..., 0]
    near /= np.sqrt(np.einsum("srp,srp->sr", near, near))[:, :, None]
    vectors = np.zeros((r, WANTED, p))
    vectors[:, 0], vectors[:, 3] = near
    return Extremes(values, vectors)


@lru_cache(maxsize=64)
def _generic(count: int, p: int) -> FloatArray:
    """Any generic directions serve as a start; fixed ones make the result reproducible."""
    rows = np.random.default_rng(p).normal(size=(count, p))
    rows.flags.writeable = False
    return rows


def _settled(
    theta: FloatArray,
    residual: FloatArray,
    inside: tuple[FloatArray, FloatArray],
    tolerance: FloatArray,
) -> npt.NDArray[np.bool_]:
    """Which regimes need no further cycle: each pair is resolved or inside the noise."""
    low, high = inside
    # The error of a Ritz value is about residual² over the distance to the rest of the spectrum.
    off = 2 * residual**2 / np.maximum(high - low, np.finfo(np.float64).tiny)
    noise = (theta - off > low) & (theta + off < high)
    return np.asarray(((residual <= tolerance[:, None]) | noise).all(axis=1))


def _cycle(
    form: Form, X: FloatArray, chosen: IntArray, steps: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Ritz values, vectors and residuals in the Krylov space of `steps` products from X."""
    c, b, p = X.shape
    Z, AZ = np.empty((c, b * (steps + 1), p)), np.empty((c, b * (steps + 1), p))
    Q, _ = _orthonormal(X)
    for s in range(steps + 1):
        new, done = slice(s * b, (s + 1) * b), slice(0, (s + 1) * b)
        Z[:, new], AZ[:, new] = Q, form(Q, chosen)
        if s == steps:
            break
        Q, least = _orthonormal(_outside(AZ[:, new], Z[:, done]))
        # Once the space is complete (exact moments), the projection leaves only rounding errors,
        # which are not orthogonal to it.
        enough = NEARLY_DEPENDENT
        for _ in range(3):
            if least > enough:
                break
            Q, least = _orthonormal(_outside(Q, Z[:, done]))
            enough = 0.5  # of unit rows
    T = Z @ np.swapaxes(AZ, 1, 2)
    theta, U = np.linalg.eigh((T + np.swapaxes(T, 1, 2)) / 2)
    pick = np.array([0, 1, -2, -1])
    theta, U = theta[:, pick], np.swapaxes(U[:, :, pick], 1, 2)
    X, image = U @ Z, U @ AZ
    return theta, X, np.linalg.norm(image - theta[:, :, None] * X, axis=2)


def _outside(X: FloatArray, Z: FloatArray) -> FloatArray:
    """The part of X orthogonal to the orthonormal rows of Z."""
    return np.asarray(X - (X @ np.swapaxes(Z, 1, 2)) @ Z)


def _orthonormal(X: FloatArray) -> tuple[FloatArray, float]:
    """Orthonormal rows with the span of X's, and the smallest pivot of X, over all regimes."""
    Q, R = np.linalg.qr(np.swapaxes(X, 1, 2))
    least = float(np.abs(np.diagonal(R, axis1=1, axis2=2)).min())
    return np.ascontiguousarray(np.swapaxes(Q, 1, 2)), least
