"""The conductor: many clients at once change how long it takes, never what comes out."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl.cli.app import run
from jigsaw_crl.study import write_moments

from .study.tables import client_of


def sampled_study(seed, n, kind, shift):
    """Rows of four clients, each with its control first."""
    protocol = jc.simulate.Intervention.named(kind, shift=shift)
    world = jc.simulate.random_world(6, 4, 0.7, seed=83_000 + seed, intervention=protocol)
    return {f"lab-{k}": world.sample(k, n, seed=seed).regimes for k in range(4)}


@pytest.mark.slow
@pytest.mark.parametrize(("n", "kind", "shift"), [(60, "hard", 2), (300, "paper", 0)])
def test_a_label_that_is_silent_at_every_client_is_in_no_verdict(n, kind, shift):
    for seed in range(5):
        labs, other = (sampled_study(seed, size, kind, shift) for size in (n, 2 * n))
        quiet = sorted({x for lab in labs.values() for x in lab} - {"control"})[seed % 3]
        having = {name for name, lab in labs.items() if quiet in lab}
        for name in having:
            labs[name][quiet] = other[name]["control"][n:]
        result = jc.recover([client_of(rows, name) for name, rows in labs.items()])
        weak = {f.client for f in result.diagnostics if f.check == "weak-intervention"}
        assert having <= weak
        order = result.order
        pairs = [pair for x in order.labels if x != quiet for pair in ((x, quiet), (quiet, x))]
        assert {order.verdict(*pair) for pair in pairs} == {jc.Verdict.UNDETERMINED}


def uniform(n, p, _, rng):
    """Noise of variance 1 that is bounded."""
    return rng.uniform(-(3**0.5), 3**0.5, (n, p))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["paper", "hard"])
@pytest.mark.parametrize("noise", ["gaussian", "laplace", "bounded"])
def test_sound_studies_are_not_said_to_be_anything_else(kind, noise, monkeypatch):
    """Whatever the noise of a linear system is, with few rows and with many."""
    if noise == "bounded":
        monkeypatch.setattr("jigsaw_crl.truth.simulate.rows.standard_noise", uniform)
        noise = "gaussian"
    odd, told = 0, []
    for seed in range(9):
        protocol = jc.simulate.Intervention.named(kind, shift=float(kind == "hard"))
        world = jc.simulate.random_world(12, 6, 0.7, 70 + seed, intervention=protocol)
        n = (300, 1_000, 10_000)[seed % 3]
        clients = [world.sample(k, n, noise, seed).to_client() for k in range(6)]
        result = jc.recover(clients, interventions="hard" if kind == "hard" else None)
        said = {f.check for f in result.diagnostics if f.severity != "info"}
        odd += not said <= {"heavy-tails"}
        told.append(jc.metrics.verdict_counts(world.order, result.order))
    # In 72 other worlds one finding, and wrong "ancestor" verdicts in three of them, two in each.
    # Two findings in nine worlds have a chance of 7e-3, more than 3 % wrong one of 5e-3.
    assert odd <= 1
    assert sum(c.wrong_yes for c in told) <= 0.03 * sum(c.yes for c in told)


@pytest.mark.slow
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["paper", "hard", "mild", "knock-down"]),
    st.sampled_from([200, 1_000, 5_000]),
)
def test_a_study_says_the_same_under_other_names_mixings_and_orders_of_its_rows(seed, kind, n):
    """The mixing of each site is another one, which changes units and the order of sensors too."""
    rng = np.random.default_rng(seed)
    n_latent, n_clients = rng.integers([3, 1], [6, 4]).tolist()
    world = jc.simulate.random_world(n_latent, n_clients, 0.8, seed, intervention=kind)
    names = dict(zip(world.labels, rng.permutation(world.labels).tolist(), strict=True))
    plain, other = [], []
    for k in range(n_clients):
        regimes = world.sample(k, n, seed=seed).regimes
        d = regimes["control"].shape[1]
        left, right = np.linalg.qr(rng.normal(size=(2, d, d)))[0]
        mixing = left * 10.0 ** rng.uniform(-2, 2, len(left)) @ right
        mixed = {names.get(x, x): rng.permutation(rows @ mixing) for x, rows in regimes.items()}
        mixed = {x: mixed[x] for x in rng.permutation(list(mixed))}
        plain.append(client_of(regimes, f"lab-{k}", hard=kind == "hard"))
        other.append(client_of(mixed, f"lab-{k}", hard=kind == "hard"))
    # Whether rows depend on those before them is judged by their order.
    counts = [sorted(m.n for c in clients for m in c.regimes) for clients in (plain, other)]
    assume(counts[0] == counts[1])
    try:
        one = jc.recover(plain).order
    except jc.InputError:
        with pytest.raises(jc.InputError):
            jc.recover(other)
        return
    two = jc.recover(other).order
    place = [two.labels.index(names[x]) for x in one.labels]
    grid = np.ix_(place, place)
    np.testing.assert_array_equal(one.verdicts, two.verdicts[grid])
    np.testing.assert_allclose(one.probabilities, two.probabilities[grid], atol=1e-3)


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
    return fragments, frame.to_csv(), result.diagnostics


@pytest.mark.slow
@pytest.mark.parametrize("n_samples", [None, 2_000])
def test_any_number_of_workers_gives_the_same_result_to_the_last_bit(n_samples):
    clients = study(n_samples)
    alone = everything(jc.recover(clients))
    for n_jobs in (2, 3):
        assert everything(jc.recover(clients, n_jobs=n_jobs)) == alone


def defects(seed):
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
    return [client_of(rows, name) for name, rows in labs.items()]


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
        told = [f.to_document() for f in result.diagnostics]
        assert document["findings"] == json.loads(json.dumps(told))
        left_out += len(result.left_out)
    assert left_out > 2
    assert refused < 4


@pytest.mark.parametrize(
    "option",
    [
        {"rank_one": "maybe"},
        {"confounding": "some"},
        *({"n_jobs": jobs} for jobs in (0, -2, 1.5, "all", None, True)),
    ],
)
def test_an_option_that_means_nothing_is_refused_before_any_work(option, monkeypatch):
    clients = jc.simulate.setting("A", 0).clients()
    monkeypatch.setattr("jigsaw_crl.pipeline.check_client", None)
    with pytest.raises(jc.InputError, match=f"{next(iter(option))} is"):
        jc.recover(clients, **option)


def test_what_follows_from_the_moments_is_that_of_the_labels_that_are_left():
    whole = study(2_000)[0]
    left = whole.without({whole.labels[0]})
    assert left.labels == whole.labels[1:]
    assert left.n_samples == {k: n for k, n in whole.n_samples.items() if k != whole.labels[0]}
    assert len(left.white.M) == len(left.regimes) == len(whole.regimes) - 1
    with pytest.raises(ValueError, match="read-only"):
        left.control_second_moment[0, 0] = 1.0
