"""The leading directions of many columns from one pass."""

from __future__ import annotations

import numpy as np

from jigsaw_crl.client.reduction import ColumnSketch, Scatter


def rows_of(n: int, m: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of p latents in m columns with noise of variance 1, and the mixing."""
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(p, m))
    return rng.normal(size=(n, p)) @ mixing + rng.normal(size=(n, m)), mixing


def held(directions: np.ndarray, mixing: np.ndarray) -> float:
    """The smallest cosine between the space of the mixing and that of the directions."""
    q, g = np.linalg.qr(directions)[0], np.linalg.qr(mixing.T)[0]
    return float(np.linalg.svd(q.T @ g)[1].min())


def sketch_of(x: np.ndarray, cells: np.ndarray, wanted: int, step: int = 300) -> ColumnSketch:
    sketch = ColumnSketch(x.shape[1], wanted=wanted)
    for start in range(0, len(cells), step):
        sketch.add(x[start : start + step], cells[start : start + step])
    return sketch


def test_the_sketch_holds_the_latents_as_well_as_all_columns_do():
    x, mixing = rows_of(3000, 400, 6)
    found = sketch_of(x, np.zeros(3000, dtype=int), 6).scatter().leading(np.ones(400))
    _, vectors = np.linalg.eigh(np.cov(x.T))
    assert held(found.vectors[:, :6], mixing) > held(vectors[:, -6:], mixing) - 1e-3


def test_means_of_cells_do_not_count_however_rows_are_mixed():
    x, _ = rows_of(1200, 100, 3)
    cells = np.repeat([0, 1, 2], 400)
    shifted = x + 1e6 * np.array([[0.0], [1.0], [-3.0]])[cells]
    order = np.random.default_rng(1).permutation(1200)
    plain = sketch_of(x, cells, 3).scatter()
    within = sum(np.var(x[cells == c], axis=0) * 400 for c in range(3))
    np.testing.assert_allclose(plain.variances, within / 1197, rtol=0.01)
    for rows, own in ((shifted, cells), (shifted[order], cells[order])):
        found = sketch_of(rows, own, 3).scatter()
        # Means are taken anew at each exchange of Ω.
        assert 1180 < found.degrees <= 1197
        np.testing.assert_allclose(found.variances, within / 1197, rtol=0.02)


def test_further_directions_that_stand_out_are_followed_on_request():
    x, mixing = rows_of(4000, 300, 30)
    for grows, least in ((True, 0.99), (False, 0.0)):
        sketch = ColumnSketch(300, wanted=2, grows=grows)
        sketch.add(x, np.zeros(4000, dtype=int))
        top = sketch.scatter().leading(np.ones(300))
        assert (top.visible == 30) == grows
        assert held(top.vectors, mixing) > least


def exact_scatter(covariance: np.ndarray, degrees: int) -> Scatter:
    values, vectors = np.linalg.eigh(covariance * degrees)
    return Scatter(vectors * np.sqrt(values), np.diagonal(covariance) * degrees, degrees)


def test_the_noise_of_each_column_is_found_with_more_latents_than_labels():
    rng = np.random.default_rng(1)
    noise = np.exp(rng.normal(size=150))
    x = rng.normal(size=(3000, 6)) @ rng.normal(size=(6, 150))
    x += rng.normal(size=x.shape) * np.sqrt(noise)
    scatter = exact_scatter(np.cov(x.T), 2999)
    found = scatter.fitted(3, 40)
    assert np.std(np.log(found.noise / noise)) < 2 * np.sqrt(2 / 3000)
