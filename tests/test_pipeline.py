"""The conductor: many clients at once change how long it takes, never what comes out."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import jigsaw_crl as jc
from jigsaw_crl.client.extremes import DENSE, Form, Regimes, dense_pairs, extreme_pairs


def study(n_samples):
    world = jc.simulate.random_world(8, 4, 0.7, seed=3)
    return [world.client(k, n_samples, seed=1) for k in range(4)]


def everything(result):
    """All that a result says, to the last bit."""
    fragments = {
        name: (f.to_json(), None if f.basis is None else f.basis.tobytes())
        for name, f in result.fragments.items()
    }
    frame = result.order.to_frame()
    return fragments, frame.to_csv(), result.diagnostics, result.provenance["spectra"]


@pytest.mark.parametrize("n_samples", [None, 2_000])
def test_any_number_of_workers_gives_the_same_result_to_the_last_bit(n_samples):
    clients = study(n_samples)
    alone = everything(jc.recover(clients))
    for n_jobs in (2, 3):
        assert everything(jc.recover(clients, n_jobs=n_jobs)) == alone


def test_the_number_of_blas_threads_outside_does_not_change_the_result():
    clients = study(2_000)
    with threadpool_limits(1):
        one = everything(jc.recover(clients))
    with threadpool_limits(2):
        assert everything(jc.recover(clients)) == one


def test_the_paper_method_is_the_same_for_any_number_of_workers():
    clients = study(5_000)
    alone = everything(jc.recover(clients, method="paper"))
    assert everything(jc.recover(clients, method="paper", n_jobs=2)) == alone


@pytest.mark.parametrize("n", [None, 20_000])
def test_extreme_pairs_of_large_clients_are_those_of_a_full_diagonalisation(n):
    p, rng = DENSE + 16, np.random.default_rng(0)
    matrices = []
    for _ in range(5):
        u, v = np.linalg.qr(rng.normal(size=(p, 2)))[0].T
        exact = np.eye(p) + 3.0 * np.outer(u, u) - 0.8 * np.outer(v, v)
        rows = rng.normal(size=(n or 1, p)) @ np.linalg.cholesky(exact).T
        matrices.append(exact if n is None else rows.T @ rows / n)
    form = Form(Regimes(tuple(matrices), np.zeros((5, p))), np.eye(p))
    noise = 1e-12 if n is None else 0.2
    inside = np.full((5, 4), 1 - noise), np.full((5, 4), 1 + noise)
    found = extreme_pairs(form, inside, np.full(5, 1e-10))
    full = dense_pairs(form.dense)
    assert np.allclose(found.values[:, [0, 3]], full.values[:, [0, 3]], rtol=1e-10)
    cosine = np.abs(np.einsum("rkp,rkp->rk", found.vectors, full.vectors))[:, [0, 3]]
    assert np.allclose(cosine, 1.0, atol=1e-10)
    # Inside the noise only the fact is asked: never beyond the true value, never far out.
    assert (found.values[:, 1] >= full.values[:, 1] - 1e-13).all()
    assert (found.values[:, 2] <= full.values[:, 2] + 1e-13).all()
