"""Wide tables are reduced, in one pass, to the directions that hold their latents."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import jigsaw_crl as jc
from jigsaw_crl.client.reduction import ColumnSketch

from ..study.tables import client_of
from .wide_rows import probabilities, wide_regimes


def noisy_rows(n, m, p, seed=0):
    """Rows of p latents in m columns with noise of variance 1, and the mixing."""
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(p, m))
    return rng.normal(size=(n, p)) @ mixing + rng.normal(size=(n, m)), mixing


def held(directions, mixing):
    """The smallest cosine between the space of the mixing and that of the directions."""
    q, g = np.linalg.qr(directions)[0], np.linalg.qr(mixing.T)[0]
    return float(np.linalg.svd(q.T @ g)[1].min())


def sketch_of(x, cells, wanted, step=300):
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
    np.testing.assert_allclose(plain.squares / plain.degrees, within / 1197, rtol=0.01)
    for rows, own in ((shifted, cells), (shifted[order], cells[order])):
        found = sketch_of(rows, own, 3).scatter()
        # Means are taken anew at each exchange of Ω.
        assert 1180 < found.degrees <= 1197
        np.testing.assert_allclose(found.squares / found.degrees, within / 1197, rtol=0.02)


def test_without_noise_the_fragment_is_that_of_all_columns():
    regimes = wide_regimes(60, 2000, latents=8, noise=0.0, seed=1)
    full, reduced = (
        jc.recover_fragment(client_of(regimes, reduce=reduce)) for reduce in (False, True)
    )
    assert reduced.blocks == full.blocks
    assert reduced.districts == full.districts
    np.testing.assert_allclose(probabilities(reduced), probabilities(full), atol=1e-4)


def test_the_directions_have_equal_noise_and_are_as_many_as_said():
    client = client_of(wide_regimes(600, unequal=1.0))
    reduction = client.reduction
    assert client.n_latent == reduction.leading == 5
    assert client.n_features == reduction.matrix.shape[1] == 5 + 16
    assert reduction.message.startswith("600 columns are reduced to 21 directions: 5 that hold")
    within = sum(m.covariance for ms in client.interventions.values() for m in ms) / 5
    noise = np.linalg.eigvalsh(within)[:16]
    np.testing.assert_allclose(noise / noise.mean(), 1, atol=2 * np.sqrt(16 / 1500))


def test_the_basis_and_the_latents_are_those_of_the_columns():
    regimes = wide_regimes(600, 400)
    names = [f"gene-{i}" for i in range(600)]
    frames = {k: pd.DataFrame(x, columns=names) for k, x in regimes.items()}
    client = client_of(frames, hard=True)
    fragment = jc.recover_fragment(client)
    assert client.columns == fragment.features == tuple(names)
    assert fragment.basis.shape == (5, 600)
    z = fragment.transform(frames["control"])
    assert list(z.columns) == list(fragment.labels)
    np.testing.assert_allclose(z.mean(), 0, atol=1e-10)
    full = jc.recover_fragment(client_of(frames, hard=True, reduce=False))
    other = full.transform(frames["control"])
    for label in fragment.labels:
        assert abs(np.corrcoef(z[label], other[label])[0, 1]) > 0.95
    pd.testing.assert_frame_equal(fragment.transform(frames["control"][names[::-1]]), z)
    with pytest.raises(jc.InputError, match="columns of the client are missing: gene-0"):
        fragment.transform(frames["control"][names[1:]])


def test_a_refused_label_leaves_the_directions_of_the_others():
    regimes = wide_regimes(600)
    regimes["z2"][7] *= 1e5
    fragment = jc.recover_fragment(client_of(regimes, n_latent=5))
    assert "z2" not in fragment.labels
    assert fragment.basis.shape == (4, 600)


def test_errors_name_the_regime():
    regimes = wide_regimes(600)
    with pytest.raises(jc.InputError, match="'z2': it has 599 features where the control has 600"):
        client_of({**regimes, "z2": regimes["z2"][:, 1:]})
    spoilt = regimes["z2"].copy()
    spoilt[3, 4] = np.nan
    with pytest.raises(jc.InputError, match=r"'z2': .*missing or infinite"):
        client_of({**regimes, "z2": spoilt})
    with pytest.raises(jc.InputError, match='missing="em" needs all columns'):
        client_of(regimes, missing="em", reduce=True)
    assert client_of(regimes, missing="em").reduction is None


def test_no_matrix_of_all_columns_is_made():
    regimes = wide_regimes(4000, 60, latents=3)
    tracemalloc.start()
    client_of(regimes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4000**2 * 8 / 4
