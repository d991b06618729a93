"""The conductor: many clients at once change how long it takes, never what comes out."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import jigsaw_crl as jc
from jigsaw_crl.cli.app import run
from jigsaw_crl.client.extremes import DENSE, Form, Regimes, dense_pairs, extreme_pairs
from jigsaw_crl.study import write_moments


def sampled_study(seed: int, n: int, kind: str, shift: float) -> dict[str, dict[str, np.ndarray]]:
    """Rows of four clients, each with its control first."""
    protocol = jc.simulate.Intervention.named(kind, shift=shift)
    world = jc.simulate.random_world(6, 4, 0.7, seed=83_000 + seed, intervention=protocol)
    drawn = [world.rows(k, n, seed=seed) for k in range(4)]
    return {f"lab-{k}": {"control": x, **rest} for k, (x, rest) in enumerate(drawn)}


def as_client(name: str, regimes: dict[str, np.ndarray]) -> jc.Client:
    rest = {k: v for k, v in regimes.items() if k != "control"}
    return jc.Client.from_samples(name, observational=regimes["control"], interventions=rest)


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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "shift"), [("paper", 0), ("hard", 2)])
@pytest.mark.parametrize("n", [60, 300])
def test_a_label_that_is_silent_at_every_client_is_in_no_verdict(kind, shift, n):
    for seed in range(5):
        labs = sampled_study(seed, n, kind, shift)
        other = sampled_study(seed, 2 * n, kind, shift)
        quiet = sorted({x for lab in labs.values() for x in lab} - {"control"})[seed % 3]
        for name, lab in labs.items():
            if quiet in lab:
                lab[quiet] = other[name]["control"][n:]
        result = jc.recover([as_client(*item) for item in labs.items()])
        weak = {(f.client, f.regime) for f in result.diagnostics if f.check == "weak-intervention"}
        assert {(name, quiet) for name, lab in labs.items() if quiet in lab} <= weak
        order = result.order
        others = [x for x in order.labels if x != quiet]
        said = {order.verdict(*pair) for x in others for pair in ((x, quiet), (quiet, x))}
        assert said == {jc.Verdict.UNDETERMINED}


def defects(seed: int) -> list[jc.Client]:
    """A study in which many things are wrong, drawn at random."""
    rng = np.random.default_rng(seed)
    kind, shift = [("paper", 0), ("hard", 2), ("mean-only", 0), ("weak", 0)][seed % 4]
    labs = sampled_study(seed, int(rng.choice([40, 200, 1000])), kind, shift)
    for regimes in labs.values():
        label, second = rng.choice([x for x in regimes if x != "control"], 2, replace=False)
        x = regimes[label]
        match rng.integers(8):
            case 0:
                regimes[label] = regimes[second].copy()
            case 1:
                regimes[label] = x[:5]
            case 2:
                regimes[label] = np.vstack([x[: len(x) // 2], regimes[second][len(x) // 2 :]])
            case 3:
                x[0] *= 1e3
            case 4:
                x += 3.0 * rng.normal(size=x.shape[1])
            case 5:
                regimes[label] = regimes["control"][::2]
            case 6:
                regimes["control"], regimes[label] = x, regimes["control"]
            case _:
                pass
    return [as_client(*item) for item in labs.items()]


@pytest.mark.slow
def test_the_checks_and_recovery_name_the_same_things_that_are_left_out(tmp_path, capsys):
    left_out = refused = 0
    for seed in range(8):
        clients = defects(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        for client in clients:
            write_moments(client, folder / f"{client.name}.npz")
        code = run(["check", str(folder), "--json"])
        document = json.loads(capsys.readouterr().out)
        try:
            result = jc.recover(jc.read_study(folder))
        except jc.InputError:
            assert code == 2
            assert not document["fit"]
            refused += 1
            continue
        assert code == 0
        assert document["left_out"] == [asdict(part) for part in result.left_out]
        assert document["outcomes"] == {
            name: asdict(fragment.outcome) for name, fragment in result.fragments.items()
        }
        told = [f.to_document() for f in result.diagnostics if f.check != "always-confounded"]
        assert document["findings"] == json.loads(json.dumps(told))
        left_out += len(result.left_out)
    assert left_out > 2
    assert refused < 4
