"""The compiled loops say what plain array code, or a search by hand, says."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.order import strongly_connected, transitive_closure
from jigsaw_crl.nullcone import arrow_pairs, arrows, basis, pairs, structure
from jigsaw_crl.nullcone.basis import orthogonal_rows
from jigsaw_crl.nullcone.basis_loops import off_ancestors
from jigsaw_crl.nullcone.lines import duals, null_lines
from jigsaw_crl.nullcone.pairs import by_reading, pair_statistics
from jigsaw_crl.nullcone.structure import Structure, greedy_order
from jigsaw_crl.nullcone.targets import arrow_targets
from jigsaw_crl.nullcone.whitening import pool, reduce
from jigsaw_crl.truth.simulate import Intervention


def relative(found, wanted):
    return np.max(np.abs(found - wanted) / (1.0 + np.abs(wanted)))


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("n", [None, 400, 20_000])
def test_statistics_of_pairs_agree_with_array_code(n, noisy, monkeypatch):
    world = jc.simulate.random_world(16, 2, 0.8, seed=51_000)
    for k in range(world.n_clients):
        whitened = pool(reduce(world.client(k, n_samples=n)))
        lines = null_lines(whitened.spikes)
        p = lines.n.shape[2]
        noise = np.diag(np.linspace(0.05, 0.3, p)) if noisy else None
        i, j = np.triu_indices(len(lines.rank), 1)
        keep = (lines.rank[i] > 0) & (lines.rank[j] > 0)
        i, j = i[keep], j[keep]
        assert {1, 2} <= set(lines.rank.tolist())
        assert len(i) > 10
        given = (lines, whitened.n, whitened.n_eff, i, j, noise)
        monkeypatch.setattr(pairs, "FEW", 0)
        found = pair_statistics(*given)
        turned = by_reading(found, lines)
        monkeypatch.setattr(pairs, "FEW", len(i))
        plain = pair_statistics(*given)
        assert relative(found.T, plain.T) < 1e-12
        size = np.abs(plain.covariance).max(axis=(1, 2), keepdims=True)
        assert np.max(np.abs(found.covariance - plain.covariance) / size) < 1e-12
        again = by_reading(found, lines)
        assert relative(turned.values, again.values) < 1e-12
        size = np.abs(again.covariance).max(axis=(1, 2, 3), keepdims=True)
        assert np.max(np.abs(turned.covariance - again.covariance) / size) < 1e-12


@pytest.mark.parametrize("few", [0, 100])
def test_a_greedy_order_is_the_one_grown_by_hand(few, monkeypatch):
    monkeypatch.setattr(structure, "FEW", few)
    rng = np.random.default_rng(0)
    for p in (2, 5, 9, 14):
        odds = rng.normal(size=(p, p)) * 3
        odds[rng.random((p, p)) < 0.2] = -np.inf
        np.fill_diagonal(odds, -np.inf)
        order = np.zeros((p, p), dtype=bool)
        pairs = sorted(np.argwhere(odds > 0).tolist(), key=lambda pair: -odds[tuple(pair)])
        for a, d in pairs:
            trial = order.copy()
            trial[a, d] = True
            trial = transitive_closure(trial)
            new = trial & ~order
            gained = odds[new & np.isfinite(odds)].sum()
            if not order[a, d] and not np.diagonal(trial).any() and gained > 0:
                order = trial
        assert np.array_equal(greedy_order(odds), order)


@pytest.mark.parametrize("few", [0, 100])
def test_rows_are_what_projections_on_the_ancestors_leave(few, monkeypatch):
    monkeypatch.setattr(basis, "FEW", few)
    rng = np.random.default_rng(1)
    for p in (1, 6, 15):
        ancestor = transitive_closure(np.triu(rng.random((p, p)) < 0.3, 1))
        same = transitive_closure((pairs := np.triu(rng.random((p, p)) < 0.1, 1)) | pairs.T)
        np.fill_diagonal(same, True)
        reach = transitive_closure(ancestor | same)
        found = Structure(same, ancestor, strongly_connected(reach), reach)
        # Nearly dependent rows: the projections must survive bad conditioning.
        functionals = rng.normal(size=(p, p)) + 30 * rng.normal(size=p)
        rows = orthogonal_rows(functionals, found)
        above = found.strict_block_ancestors()
        for i in range(p):
            span = functionals[above[:, i]].T
            left = functionals[i].copy()
            if span.size:
                left -= span @ np.linalg.lstsq(span, left, rcond=None)[0]
            left /= np.linalg.norm(left)
            assert np.allclose(rows[i], left, atol=1e-9)


def test_projections_do_not_depend_on_what_their_working_space_held():
    rng = np.random.default_rng(2)
    unit = rng.normal(size=(6, 8))
    above = np.triu(np.ones((6, 6), dtype=bool), 1)
    found = []
    for content in (0.0, np.nan):
        rows = unit.copy()
        space = np.full((6, 6), content), np.full(6, content)
        off_ancestors(unit, unit @ unit.T, above, *space, rows)
        found.append(rows)
    np.testing.assert_array_equal(*found)
    assert np.abs(unit[:5] @ found[0][5]).max() < 1e-12


def estimated(kind, shift, n, seed):
    world = jc.simulate.random_world(
        14, 1, 0.7, seed=seed, intervention=Intervention.named(kind, shift=shift)
    )
    reduced = reduce(world.client(0, n_samples=n))
    return reduced, pool(reduced)


CASES = [("paper", 0.0, 10_000), ("hard", 0.3, 2_000), ("shrink", 3.0, 500)]


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize(("kind", "shift", "n"), CASES)
def test_statistics_of_arrows_are_the_same_in_loops_and_in_array_code(
    kind, shift, n, noisy, monkeypatch
):
    found = arrow_targets(*estimated(kind, shift, n, 51_100)).arrows
    p = found.u.shape[2]
    if noisy:
        found = replace(found, noise=np.diag(np.linspace(0.05, 0.3, p)))
    found.has[:, arrows.ZERO] = True
    given = np.triu_indices(len(found.has), 1)
    said = []
    for few in (0, 10**9):
        monkeypatch.setattr(arrow_pairs, "FEW", few)
        said.append(arrow_pairs.arrow_statistics(found, *given))
    loops, plain = said
    np.testing.assert_array_equal(loops.values, plain.values)
    size = np.abs(plain.covariance).max(axis=(2, 3), keepdims=True) + 1e-300
    assert np.max(np.abs(loops.covariance - plain.covariance) / size) < 1e-12


@pytest.mark.parametrize(("kind", "shift", "n"), CASES)
def test_lines_are_the_same_in_loops_and_in_array_code(kind, shift, n, monkeypatch):
    reduced, whitened = estimated(kind, shift, n, 51_200)
    said = []
    for few in (0, 10**9):
        monkeypatch.setattr(arrows, "FEW", few)
        said.append(arrow_targets(reduced, whitened).arrows)
    loops, plain = said
    np.testing.assert_array_equal(loops.has, plain.has)
    cosine = np.abs(np.einsum("rsp,rsp->rs", loops.u, plain.u))
    np.testing.assert_allclose(cosine[loops.has], 1.0, atol=1e-9)
    np.testing.assert_allclose(loops.odds, plain.odds, rtol=1e-8, atol=1e-6)


def test_functionals_are_the_same_in_loops_and_in_array_code(monkeypatch):
    world = jc.simulate.random_world(10, 1, 0.7, seed=51_300)
    client = world.client(0, n_samples=5_000)
    found = []
    for few in (0, 10**9):
        monkeypatch.setattr(basis, "FEW", few)
        found.append(jc.recover_fragment(client).basis)
    # The correction is in single precision.
    np.testing.assert_allclose(*found, atol=1e-4)


def test_duals_of_two_lines_read_one_and_not_the_other():
    lines = np.random.default_rng(3).normal(size=(7, 2, 5))
    lines[0, 1] = lines[0, 0] + 1e-3 * lines[0, 1]  # nearly parallel
    products = np.einsum("rsp,rtp->rst", duals(lines), lines)
    wanted = np.broadcast_to([[0.0, 1.0], [1.0, 0.0]], products.shape)
    np.testing.assert_allclose(products, wanted, atol=1e-8)


@pytest.mark.slow
def test_a_client_with_twenty_regimes_needs_no_compiler():
    code = (
        "import sys, jigsaw_crl as jc\n"
        "world = jc.simulate.random_world(20, 1, 1.0, seed=51_400)\n"
        "found = [jc.recover_fragment(world.client(0, n)) for n in (None, 5_000)]\n"
        "assert [len(f.labels) for f in found] == [20, 20]\n"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
