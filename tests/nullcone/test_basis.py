"""Rows of the latent basis: projections on the rows of ancestors."""

from __future__ import annotations

import numpy as np

import jigsaw_crl as jc
from jigsaw_crl.base.order import transitive_closure
from jigsaw_crl.nullcone.basis import orthogonal_rows
from jigsaw_crl.nullcone.structure import Structure
from jigsaw_crl.truth.simulate import Intervention, random_world


def test_rows_are_what_projections_on_the_ancestors_leave():
    rng = np.random.default_rng(1)
    for p in (1, 6, 15):
        ancestor = transitive_closure(np.triu(rng.random((p, p)) < 0.3, 1))
        same = transitive_closure((pairs := np.triu(rng.random((p, p)) < 0.1, 1)) | pairs.T)
        np.fill_diagonal(same, True)
        found = Structure(same, ancestor)
        # Nearly dependent rows: the projections must survive bad conditioning.
        functionals = rng.normal(size=(p, p)) + 30 * rng.normal(size=p)
        rows = orthogonal_rows(functionals, found)
        above = found.reach & ~found.reach.T
        for i in range(p):
            span = functionals[above[:, i]].T
            left = functionals[i].copy()
            if span.size:
                left -= span @ np.linalg.lstsq(span, left, rcond=None)[0]
            left /= np.linalg.norm(left)
            assert np.allclose(rows[i], left, atol=1e-9)


def test_lines_that_contradict_the_order_are_not_conditioned_on_it():
    # At one client, products that should vanish are hundreds of standard errors: the solver
    # diverged there, and recovery ended with an error.
    hard = Intervention.named("hard", shift=2.0)
    world = random_world(20, 15, 0.6, 3_000_005, intervention=hard)
    result = jc.recover(world.clients(1_000, seed=3_000_005))
    for fragment in result.fragments.values():
        assert np.isfinite(fragment.basis).all()
