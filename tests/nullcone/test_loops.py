"""The compiled loops say what plain array code, or a search by hand, says."""

from __future__ import annotations

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.order import strongly_connected, transitive_closure
from jigsaw_crl.nullcone.basis import orthogonal_rows
from jigsaw_crl.nullcone.basis_loops import off_ancestors
from jigsaw_crl.nullcone.lines import null_lines
from jigsaw_crl.nullcone.pairs import pair_statistics
from jigsaw_crl.nullcone.structure import Structure, greedy_order
from jigsaw_crl.nullcone.whitening import pool, reduce

from . import plain_pairs


def relative(found, wanted):
    return np.max(np.abs(found - wanted) / (1.0 + np.abs(wanted)))


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("n", [None, 400, 20_000])
def test_statistics_of_pairs_agree_with_array_code(n, noisy):
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
        found, (T, C) = pair_statistics(*given), plain_pairs.statistics(*given)
        assert relative(found.T, T) < 1e-12
        size = np.abs(C).max(axis=(1, 2), keepdims=True)
        assert np.max(np.abs(found.covariance - C) / size) < 1e-12


def test_a_greedy_order_is_the_one_grown_by_hand():
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


def test_rows_are_what_projections_on_the_ancestors_leave():
    rng = np.random.default_rng(1)
    for p in (1, 6, 15):
        ancestor = transitive_closure(np.triu(rng.random((p, p)) < 0.3, 1))
        same = transitive_closure((pairs := np.triu(rng.random((p, p)) < 0.1, 1)) | pairs.T)
        np.fill_diagonal(same, True)
        reach = transitive_closure(ancestor | same)
        structure = Structure(same, ancestor, strongly_connected(reach), reach)
        # Nearly dependent rows: the projections must survive bad conditioning.
        functionals = rng.normal(size=(p, p)) + 30 * rng.normal(size=p)
        rows = orthogonal_rows(functionals, structure)
        above = structure.strict_block_ancestors()
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
