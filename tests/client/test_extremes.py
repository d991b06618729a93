"""Outermost eigenpairs of many regimes, against full diagonalisation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.client import extremes
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.extremes import DENSE, Form, Regimes, dense_pairs, extreme_pairs


def spiked(p: int, r: int, rng: np.random.Generator, n: int | None = None) -> tuple:
    """Covariances with one high and one low eigenvalue each, exact or of n rows."""
    matrices = []
    for _ in range(r):
        u, v = np.linalg.qr(rng.normal(size=(p, 2)))[0].T
        exact = np.eye(p) + 3.0 * np.outer(u, u) - 0.8 * np.outer(v, v)
        rows = rng.normal(size=(n or 1, p)) @ np.linalg.cholesky(exact).T
        matrices.append(exact if n is None else rows.T @ rows / n)
    return tuple(matrices)


def unresolved(r: int, width: float) -> tuple[np.ndarray, np.ndarray]:
    return np.full((r, 4), 1 - width), np.full((r, 4), 1 + width)


@pytest.mark.parametrize("n", [None, 20_000])
@pytest.mark.parametrize("warm", [False, True])
def test_pairs_in_many_dimensions_agree_with_full_diagonalisation(n, warm):
    p, rng = DENSE + 16, np.random.default_rng(0)
    form = Form(Regimes(spiked(p, 5, rng, n), np.zeros((5, p))), np.eye(p))
    full = dense_pairs(form.dense)
    start = full.vectors + 0.1 * rng.normal(size=full.vectors.shape) if warm else None
    inside = unresolved(5, 1e-12 if n is None else 0.2)
    found = extreme_pairs(form, inside, np.full(5, 1e-10), start)
    assert np.allclose(found.values[:, [0, 3]], full.values[:, [0, 3]], rtol=1e-10)
    cosine = np.abs(np.einsum("rkp,rkp->rk", found.vectors, full.vectors))[:, [0, 3]]
    assert np.allclose(cosine, 1.0, atol=1e-10)
    # Values inside the noise need not be accurate, but never lie beyond the true ones.
    assert (found.values[:, 1] >= full.values[:, 1] - 1e-13).all()
    assert (found.values[:, 2] <= full.values[:, 2] + 1e-13).all()


@given(st.integers(1, 12), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.05]))
def test_pairs_in_few_dimensions_agree_with_full_diagonalisation(p, seed, floor):
    rng = np.random.default_rng(seed)
    d = p + 2
    form = Form(Regimes(spiked(d, 3, rng), rng.normal(size=(3, d))), rng.normal(size=(p, d)), floor)
    found = extreme_pairs(form, unresolved(3, 0.0), np.full(3, 1e-3))
    values = np.linalg.eigvalsh(form.dense)
    pick = [0, min(1, p - 1), max(p - 2, 0), p - 1]
    np.testing.assert_allclose(found.values, values[:, pick], atol=1e-10 * np.abs(values).max())
    size = np.abs(values).max()
    for M, lam, V in zip(form.dense, found.values, found.vectors, strict=True):
        for k in (0, 3):
            assert np.linalg.norm(V[k] @ M - lam[k] * V[k]) <= 1e-3 * size


@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_products_with_regimes_agree_with_their_second_moments(p, r, seed):
    rng = np.random.default_rng(seed)
    d = max(p, r) + 1
    rows = {f"x{j}": rng.normal(size=(20, d)) + j for j in range(r + 1)}
    control = rows.pop("x0")
    client = Client.from_samples("lab", observational=control, interventions=rows)
    S = np.array([client.second_moments(label)[0] for label in client.labels])
    regimes = Regimes.of(client)
    weights = rng.uniform(size=r)
    A = S.sum(axis=0)
    np.testing.assert_allclose(regimes.traces(), np.trace(S, axis1=1, axis2=2))
    np.testing.assert_allclose(regimes.inner(A), np.einsum("de,red->r", A, S))
    np.testing.assert_allclose(regimes.weighted(weights), np.einsum("r,rde->de", weights, S))
    W, floor = rng.normal(size=(p, d)), 0.1
    form = Form(regimes, W, floor)
    M = W @ S @ W.T - floor * W @ W.T
    np.testing.assert_allclose(form.dense, M, atol=1e-12 * np.abs(M).max())
    X, chosen = rng.normal(size=(r, 2, p)), np.arange(r)
    np.testing.assert_allclose(form(X, chosen), X @ M, atol=1e-12 * np.abs(M).max() * 10)
    total = form.project(regimes.weighted(weights), float(weights.sum()))
    np.testing.assert_allclose(
        total, np.einsum("r,rpq->pq", weights, M), atol=1e-12 * np.abs(M).max() * 10
    )


def test_regimes_in_one_array_give_the_sums_of_regimes_one_by_one(monkeypatch):
    rng = np.random.default_rng(7)
    p, r = 6, 5
    A, X, weights = rng.normal(size=(p, p)), rng.normal(size=(3, 2, p)), rng.normal(size=r)
    covariances, shifts = spiked(p, r, rng, 50), rng.normal(size=(r, p))
    chosen, said = np.array([4, 0, 2]), []
    for most in (0, 10**9):
        monkeypatch.setattr(extremes, "STACKED", most)
        regimes = Regimes(covariances, shifts)
        assert (regimes.stack is None) == (most == 0)
        form = Form(regimes, rng.normal(size=(p, p)) if not said else said[0][0].W, 0.1)
        sums = (regimes.traces(), regimes.inner(A + A.T), regimes.weighted(weights))
        products = (regimes.times(X, chosen), form(X, chosen), form.some(chosen))
        said.append((form, *sums, *products, form.dense, form(X, chosen), form.some(chosen)))
    for one, other in zip(said[0][1:], said[1][1:], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)
    # The same before and after the matrices themselves are known.
    for k in (5, 6):
        np.testing.assert_allclose(said[1][k], said[1][k + 3], atol=1e-10)
