"""Rows of the latent basis: duals of lines, and projections on the rows of ancestors."""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.order import strongly_connected, transitive_closure
from jigsaw_crl.nullcone.basis import duals, orthogonal_rows
from jigsaw_crl.nullcone.structure import Structure


def test_rows_are_what_projections_on_the_ancestors_leave():
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


def test_duals_of_two_lines_read_one_and_not_the_other():
    lines = np.random.default_rng(3).normal(size=(7, 2, 5))
    lines[0, 1] = lines[0, 0] + 1e-3 * lines[0, 1]  # nearly parallel
    products = np.einsum("rsp,rtp->rst", duals(lines), lines)
    wanted = np.broadcast_to([[0.0, 1.0], [1.0, 0.0]], products.shape)
    np.testing.assert_allclose(products, wanted, atol=1e-8)
