"""The linear part of covariates is taken off the moments of every regime."""

import covariates as worlds
import numpy as np
import pandas as pd
import pytest

import jigsaw_crl as jc
from jigsaw_crl.study import merge_clients, write_moments

N = {"control": 400, "pump": 300, "valve": 200}


@pytest.fixture(scope="module")
def frame():
    """Three regimes in which two covariates have other means, spreads and slopes."""
    rng = np.random.default_rng(0)
    blocks = []
    for j, (regime, n) in enumerate(N.items()):
        w = rng.normal(size=(n, 2)) * (1 + j) + [5 + j, -3]
        x = rng.normal(size=(n, 4)) * (1 + j) + w @ rng.normal(size=(2, 4))
        own = pd.DataFrame(np.hstack([x, w]), columns=["a", "b", "c", "d", "depth", "heat"])
        blocks.append(own.assign(regime=regime)[["heat", "a", "b", "regime", "c", "d", "depth"]])
    return pd.concat(blocks)


def table(frame, **asked):
    return jc.Client.from_table(frame, name="lab", covariates=["depth", "heat"], **asked)


def test_moments_are_those_of_the_residuals_at_the_controls_covariates(frame):
    client = table(frame)
    assert client.features == ("a", "b", "c", "d")
    origin = frame[frame.regime == "control"][["depth", "heat"]].mean().to_numpy()
    moments = {"control": client.control} | {x: ms[0] for x, ms in client.interventions.items()}
    for regime, m in moments.items():
        own = frame[frame.regime == regime]
        x, w = own[["a", "b", "c", "d"]].to_numpy(), own[["depth", "heat"]].to_numpy() - origin
        design = np.column_stack([np.ones(len(w)), w])
        fit, *_ = np.linalg.lstsq(design, x, rcond=None)
        left = x - design @ fit
        free = len(x) - 3
        np.testing.assert_allclose(m.mean, fit[0], atol=1e-10)
        unbiased = m.covariance * m.counted.n / (m.counted.n - 1)
        np.testing.assert_allclose(unbiased, left.T @ left / free, atol=1e-10)
        # The variance of the fitted mean, over that of a mean of so many rows.
        factor = N[regime] * np.linalg.inv(design.T @ design)[0, 0]
        assert m.counted.n == N[regime] - 2
        assert m.rows == N[regime]
        np.testing.assert_allclose(m.mean_rows, N[regime] / factor / m.counted.mean)
    assert client.n_samples == N


def test_moments_files_keep_covariates_so_that_rows_can_be_added(frame, tmp_path):
    whole, half = table(frame, n_latent=3), np.arange(len(frame)) % 2 == 0
    earlier, later = (table(frame[rows], n_latent=3) for rows in (half, ~half))
    path = write_moments(earlier, tmp_path / "lab.moments.npz")
    assert jc.read_client(path).covariates.names == ("depth", "heat")
    both = merge_clients(jc.read_client(path), later)
    for (_, a), (_, b) in zip(both.named_regimes, whole.named_regimes, strict=True):
        np.testing.assert_allclose(a.mean, b.mean, atol=1e-10)
        np.testing.assert_allclose(a.covariance, b.covariance, atol=1e-10)
        assert (a.rows, a.uncounted().n) == (b.rows, b.uncounted().n)
    frame.to_csv(tmp_path / "lab.csv", index=False)
    (tmp_path / "study.toml").write_text('covariates = ["depth", "heat"]\n')
    read = jc.read_client(tmp_path / "lab.csv", n_latent=3)
    np.testing.assert_allclose(read.control.covariance, whole.control.covariance, atol=1e-10)
    with pytest.raises(jc.InputError, match="the covariates differ"):
        merge_clients(earlier, jc.Client.from_table(frame[~half], name="lab"))


def test_a_covariate_that_is_no_number_or_never_changes_is_refused(frame, tmp_path, refused):
    frame.assign(heat=1.0, depth="deep").to_csv(tmp_path / "lab.csv", index=False)
    for name, said in (("depth", "no numeric column 'depth'"), ("heat", "'heat' is constant")):
        path, out = tmp_path / "lab.csv", tmp_path / "out.npz"
        refused(["moments", path, "-o", out, "--covariate", name], said)


def test_latents_are_read_without_the_covariate():
    world = worlds.covariate_world(1)
    client = worlds.clients(world, 2_000, 1, "off", season=0.5)[0]
    fragment = jc.recover_fragment(client)
    assert fragment.features[-1] == worlds.NAME
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5, len(fragment.features)))
    moved = rows.copy()
    moved[:, -1] += 1.0
    moved[:, :-1] += client.covariates.slopes[:, 0]
    np.testing.assert_allclose(fragment.transform(moved), fragment.transform(rows), atol=1e-9)
    assert {f.check for f in jc.recover([client]).diagnostics} >= {"covariate-differs"}
    assert worlds.NAME not in fragment.to_json()


def test_a_client_without_a_label_keeps_the_covariates_of_the_others(frame):
    whole = table(frame)
    _, control, labels = whole.without({"pump"}).recorded
    assert list(labels) == ["valve"]
    assert control is whole.recorded[1]
    assert labels["valve"] == whole.recorded[2]["valve"]
