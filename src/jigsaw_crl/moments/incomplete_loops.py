"""The sums over patterns of missing values that `incomplete` needs, compiled.

A pattern is a set M of features that are missing together. `missing` holds the features of all
patterns one after the other: those of pattern u are `missing[start[u] : start[u + 1]]`. K is the
inverse of the covariance of all features.
"""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.compiled import compiled

__all__ = ["expect_values", "sum_of_spreads"]


@compiled(kept=False)
def _inverse_of(K, features, inverse):  # type: ignore[no-untyped-def]
    """The inverse of K at some features, by Cholesky factors, into `inverse`."""
    m = len(features)
    for a in range(m):
        for b in range(a + 1):
            total = K[features[a], features[b]]
            for c in range(b):
                total -= inverse[a, c] * inverse[b, c]
            if a == b:
                inverse[a, a] = np.sqrt(total)
            else:
                inverse[a, b] = total / inverse[b, b]
    # The factor G becomes its own inverse, row by row, and then G⁻ᵀ G⁻¹.
    for a in range(m):
        inverse[a, a] = 1.0 / inverse[a, a]
        for b in range(a):
            total = 0.0
            for c in range(b, a):
                total += inverse[a, c] * inverse[c, b]
            inverse[a, b] = -total * inverse[a, a]
    for a in range(m):
        for b in range(a + 1):
            total = 0.0
            for c in range(a, m):
                total += inverse[c, a] * inverse[c, b]
            inverse[b, a] = total
    for a in range(m):
        for b in range(a):
            inverse[a, b] = inverse[b, a]


@compiled()
def expect_values(K, missing, start, first, pulls, away, spread):  # type: ignore[no-untyped-def]
    """Fill the missing entries of `away` with what the others let expect.

    Parameters
    ----------
    K : array, shape (d, d)
    missing, start : array of int
        The patterns.
    first : array of int, shape (patterns + 1,)
        Rows `first[u]` up to `first[u + 1]` have pattern u.
    pulls : array, shape (n, d)
        `away K`, with zeros in `away` for missing values.
    away : array, shape (n, d)
        Rows less their mean; missing entries are overwritten.
    spread : array, shape (d, d)
        The covariances of the missing values given the others are added to it.
    """
    most = 0
    for u in range(len(start) - 1):
        most = max(most, start[u + 1] - start[u])
    inverse = np.empty((most, most))
    for u in range(len(start) - 1):
        own = missing[start[u] : start[u + 1]]
        m, rows = len(own), first[u + 1] - first[u]
        _inverse_of(K, own, inverse)
        for a in range(m):
            for b in range(m):
                spread[own[a], own[b]] += rows * inverse[a, b]
        for i in range(first[u], first[u + 1]):
            for a in range(m):
                total = 0.0
                for b in range(m):
                    total += inverse[a, b] * pulls[i, own[b]]
                away[i, own[a]] = -total


@compiled()
def sum_of_spreads(K, missing, start, weight, middle, total):  # type: ignore[no-untyped-def]
    """Add `Σ_u weight_u V_u Y_u V_u` to `total`, V_u the inverse of K at the features of u.

    Y_u is `middle` at these features; each summand stands at them, and is zero elsewhere.
    """
    most = 0
    for u in range(len(start) - 1):
        most = max(most, start[u + 1] - start[u])
    inverse, half = np.empty((most, most)), np.empty((most, most))
    for u in range(len(start) - 1):
        own = missing[start[u] : start[u + 1]]
        m = len(own)
        _inverse_of(K, own, inverse)
        for a in range(m):
            for b in range(m):
                x = 0.0
                for c in range(m):
                    x += inverse[a, c] * middle[own[c], own[b]]
                half[a, b] = x
        for a in range(m):
            for b in range(m):
                x = 0.0
                for c in range(m):
                    x += half[a, c] * inverse[c, b]
                total[own[a], own[b]] += weight[u] * x
