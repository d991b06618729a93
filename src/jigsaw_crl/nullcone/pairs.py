"""Inner products of the readings of two targets, with their covariance.

For readings of regimes i and j let

    T = (u_i·u_j, u_i·c_j, c_i·u_j) .

Its derivatives are `∂T/∂u_i = (u_j, c_j, 0)`, `∂T/∂c_i = (0, 0, u_j)` and the same with i and j
exchanged; errors follow by `delta`. At second order the product of two free rotations adds
`(p−1)/(α_i α_j) vvᵀ`, `v = (1, −λ_j, −λ_i)`. Exact moments have the errors of `exact`.
"""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.evidence.mixture import Statistics
from jigsaw_crl.nullcone.delta import C_I, C_J, U_I, U_J, Errors, delta, upper
from jigsaw_crl.nullcone.exact import Rounding, exact_products
from jigsaw_crl.nullcone.readings import READINGS, ZERO, Readings

__all__ = ["statistics_of"]

# Where each entry of a symmetric 3 × 3 matrix is in its upper triangle.
FULL = np.array([0, 1, 2, 1, 3, 4, 2, 4, 5])
# Entries that are worked on at once: their matrices stay in the cache.
TOGETHER = 1000


def statistics_of(
    readings: Readings, first: IntArray, second: IntArray, rounding: Rounding | None = None
) -> Statistics:
    """Statistics of the pairs (first[k], second[k]) in all readings (s, t), t running fastest.

    With the `rounding` of exact moments, those in which rounding decides are left out.
    """
    has, n_readings = readings.has, READINGS**2
    exists = (has[first][:, :, None] & has[second][:, None, :]).reshape(-1, n_readings)
    s, t = np.divmod(np.arange(n_readings), READINGS)
    free = np.ascontiguousarray(
        np.broadcast_to(np.stack([s != ZERO, t != ZERO], axis=1), (*exists.shape, 2))
    )
    if rounding is not None:
        T, C, told = exact_products(readings, rounding, first, second)
        return Statistics(first, second, T, C, exists, free).of(told)
    T, C = np.zeros((*exists.shape, 3)), np.zeros((*exists.shape, 3, 3))
    pair, reading = np.nonzero(exists)
    place = np.cumsum(has.ravel()).reshape(has.shape) - 1
    i, j = place[first[pair], s[reading]], place[second[pair], t[reading]]
    at = np.nonzero(has)
    r = Errors.of(readings, *at)
    flat = np.concatenate([readings.u[at], readings.c[at]])
    G = flat @ flat.T
    # The rows carry the sensors' noise that was taken off the moments.
    noise = readings.white.noise
    N = G if noise is None else G + flat @ noise @ flat.T
    for k in range(0, len(pair), TOGETHER):
        some = slice(k, k + TOGETHER)
        values, errors = _products(r, G, N, max(len(flat[0]) - 1, 1), i[some], j[some])
        here = pair[some], reading[some]
        T[here], C[here] = values.T, errors[FULL].T.reshape(-1, 3, 3)
    return Statistics(first, second, T, C, exists, free)


def _products(
    r: Errors, G: FloatArray, N: FloatArray, free: int, i: IntArray, j: IntArray
) -> tuple[FloatArray, FloatArray]:
    """T, shape (3, k), and its covariance, shape (6, k), of readings i and j.

    `G` and `N` are inner products of all lines and then all c's, plain and in the metric of the
    rows; `free` is the number of directions that a line can turn to.
    """
    m = len(r.lam)
    rows = np.stack([i, i + m, j, j + m])
    K = G[rows[:, None], rows]
    R = K if N is G else N[rows[:, None], rows]
    T = np.stack([K[U_I, U_J], K[U_I, C_J], K[C_I, U_J]])
    a, b = np.zeros((2, 3, 4, len(i))), np.zeros((2, 3, 4, len(i)))
    a[0, 0, U_J] = a[0, 1, C_J] = b[0, 2, U_J] = 1.0
    a[1, 0, U_I] = a[1, 2, C_I] = b[1, 1, U_I] = 1.0
    C = delta(r, i, j, K, R, (a[0], a[1]), (b[0], b[1]))
    # The product of two free rotations.
    both = free / (r.alpha[i] * r.alpha[j])
    v = (1.0, -r.lam[j], -r.lam[i])
    C += [both * v[x] * v[y] for x, y in upper(3)]
    for place, zero in ((1, r.zero[j]), (2, r.zero[i])):
        T[place, zero] = 0.0
        for entry, pair in enumerate(upper(3)):
            if place in pair:
                C[entry, zero] = float(pair == (place, place))
    return T, C
