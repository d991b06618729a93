"""Rows of the latent basis: projections on the rows of ancestors."""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.order import transitive_closure
from jigsaw_crl.nullcone.basis import orthogonal_rows
from jigsaw_crl.nullcone.structure import Structure


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
