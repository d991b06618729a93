"""Wide tables are reduced, in one pass, to the directions that hold their latents."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import jigsaw_crl as jc
from jigsaw_crl.client.reduction import ColumnSketch, Scatter

from .wide_rows import client_from, probabilities, wide_regimes


def noisy_rows(n: int, m: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
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
    x, mixing = noisy_rows(3000, 400, 6)
    found = sketch_of(x, np.zeros(3000, dtype=int), 6).scatter().leading(np.ones(400))
    _, vectors = np.linalg.eigh(np.cov(x.T))
    assert held(found.vectors[:, :6], mixing) > held(vectors[:, -6:], mixing) - 1e-3


def test_means_of_cells_do_not_count_however_rows_are_mixed():
    x, _ = noisy_rows(1200, 100, 3)
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


def test_further_directions_that_stand_out_are_followed():
    x, mixing = noisy_rows(4000, 300, 30)
    top = sketch_of(x, np.zeros(4000, dtype=int), 2, step=4000).scatter().leading(np.ones(300))
    assert top.visible == 30
    assert held(top.vectors, mixing) > 0.99


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


def test_without_noise_the_fragment_is_that_of_all_columns():
    regimes = wide_regimes(60, 2000, latents=8, noise=0.0, seed=1)
    full, reduced = (
        jc.recover_fragment(client_from(regimes, reduce=reduce)) for reduce in (False, True)
    )
    assert reduced.blocks == full.blocks
    assert reduced.districts == full.districts
    np.testing.assert_allclose(probabilities(reduced), probabilities(full), atol=1e-4)


def test_the_directions_have_equal_noise_and_are_as_many_as_said():
    client = client_from(wide_regimes(600, unequal=1.0))
    reduction = client.reduction
    assert client.n_latent == reduction.leading == 5
    assert client.n_features == reduction.matrix.shape[1] == 5 + 16
    assert reduction.message.startswith("600 columns are reduced to 21 directions: 5 that hold")
    within = sum(m.covariance for ms in client.interventions.values() for m in ms) / 5
    noise = np.linalg.eigvalsh(within)[:16]
    np.testing.assert_allclose(noise / noise.mean(), 1, atol=2 * np.sqrt(16 / 1500))


def test_latents_without_a_label_are_counted():
    regimes = wide_regimes(600, 500, latents=8, noise=0.2)
    kept = {k: regimes[k] for k in ("control", "z1", "z2", "z3")}
    client = client_from(kept)
    assert (client.n_latent, client.counted.visible, len(client.labels)) == (8, 8, 3)
    assert client_from(kept, n_latent=4).n_latent == 4
    findings = jc.recover_fragment(client_from(kept, n_latent=4)).findings
    assert "more-latents" in {f.check for f in findings}


def test_the_basis_and_the_latents_are_those_of_the_columns():
    regimes = wide_regimes(600, 400)
    names = [f"gene-{i}" for i in range(600)]
    frames = {k: pd.DataFrame(x, columns=names) for k, x in regimes.items()}
    client = client_from(frames, hard=True)
    fragment = jc.recover_fragment(client)
    assert client.columns == fragment.features == tuple(names)
    assert fragment.basis.shape == (5, 600)
    z = fragment.transform(frames["control"])
    assert list(z.columns) == list(fragment.labels)
    np.testing.assert_allclose(z.mean(), 0, atol=1e-10)
    full = jc.recover_fragment(client_from(frames, hard=True, reduce=False))
    other = full.transform(frames["control"])
    for label in fragment.labels:
        assert abs(np.corrcoef(z[label], other[label])[0, 1]) > 0.95
    with pytest.raises(jc.InputError, match="in another order"):
        fragment.transform(frames["control"][names[::-1]])


def test_a_refused_label_leaves_the_directions_of_the_others():
    regimes = wide_regimes(600)
    regimes["z2"][7] *= 1e5
    fragment = jc.recover_fragment(client_from(regimes, n_latent=5))
    assert "z2" not in fragment.labels
    assert fragment.basis.shape == (4, 600)


def test_batches_and_missing_rows_are_taken_off_the_sketch():
    regimes = wide_regimes(600)
    offset = np.random.default_rng(0).normal(size=600) * 1e3
    moved = {k: x + np.repeat([0.0, 1.0], 150)[:, None] * offset for k, x in regimes.items()}
    days = {k: np.repeat(["monday", "tuesday"], 150) for k in regimes}
    plain = probabilities(jc.recover_fragment(client_from(regimes, batch=days)))
    found = probabilities(jc.recover_fragment(client_from(moved, batch=days)))
    np.testing.assert_allclose(found, plain, atol=0.02)
    holes = {k: np.vstack([x, np.full((1, 600), np.nan)]) for k, x in regimes.items()}
    client = client_from(holes, missing="drop")
    assert set(client.n_samples.values()) == {300}
    np.testing.assert_array_equal(client.control.mean, client_from(regimes).control.mean)


def test_errors_name_the_regime():
    regimes = wide_regimes(600)
    with pytest.raises(jc.InputError, match="'z2': it has 599 features where the control has 600"):
        client_from({**regimes, "z2": regimes["z2"][:, 1:]})
    spoilt = regimes["z2"].copy()
    spoilt[3, 4] = np.nan
    with pytest.raises(jc.InputError, match=r"'z2': .*missing or infinite"):
        client_from({**regimes, "z2": spoilt})
    with pytest.raises(jc.InputError, match='missing="em" needs all columns'):
        client_from(regimes, missing="em", reduce=True)
    assert client_from(regimes, missing="em").reduction is None


def test_no_matrix_of_all_columns_is_made():
    regimes = wide_regimes(4000, 60, latents=3)
    tracemalloc.start()
    client_from(regimes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4000**2 * 8 / 4
