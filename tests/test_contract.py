"""Every name and command that others may call, called once."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import jigsaw_crl as jc

ROWS = 500


@pytest.fixture(scope="module")
def world():
    return jc.simulate.setting("A", seed=1)


@pytest.fixture(scope="module")
def hard():
    protocol = jc.simulate.Intervention("hard", shift=1.0)
    return jc.simulate.random_world(5, 3, 0.9, seed=1, intervention=protocol)


def test_clients_are_made_from_samples_covariances_precisions_and_tables(world):
    control, regimes = world.rows(0, ROWS)
    first, *others = regimes
    halves = {first: np.array_split(regimes[first], 2), **{x: regimes[x] for x in others}}
    for moved, n_latent in ((regimes, None), (halves, None), ({first: regimes[first]}, 4)):
        made = jc.Client.from_samples(
            "lab-1", observational=control, interventions=moved, n_latent=n_latent
        )
        assert set(made.labels) == set(moved)
    tables = {"control": control, **regimes}
    covariances = {x: np.cov(rows.T) for x, rows in tables.items()}
    means = {x: rows.mean(axis=0) for x, rows in tables.items()}
    given = {x: covariances[x] for x in regimes}
    for n_samples in (ROWS, dict.fromkeys(tables, ROWS)):
        made = jc.Client.from_covariances(
            "lab-1", observational=covariances["control"], interventions=given,
            n_samples=n_samples, means=means,
        )  # fmt: skip
        assert made.n_samples["control"] == ROWS
    square = jc.simulate.random_world(4, 1, 1.0, seed=2, features=1.0).client(0)
    inverse = {x: np.linalg.inv(ms[0].covariance) for x, ms in square.interventions.items()}
    exact = jc.Client.from_precisions(
        "lab-1", observational=np.linalg.inv(square.control.covariance), interventions=inverse,
        n_samples=None,
    )  # fmt: skip
    assert exact.n_samples is None
    frames = [pd.DataFrame(x).add_prefix("x").assign(regime=r) for r, x in tables.items()]
    named = {"regime": "regime", "control": "control", "name": "lab-1"}
    assert set(jc.Client.from_table(pd.concat(frames), **named).labels) == set(regimes)


def test_a_fragment_has_its_parts_and_options(world):
    client = world.client(0, ROWS)
    for options in (
        {"method": "paper", "tau": 0.05},
        {"confounding": "none"},
        {"rank_one": "no-ancestor"},
        {"rank_one": "unsure"},
        {"method": "null-cone", "confounding": "allow"},
    ):
        fragment = jc.recover_fragment(client, **options)
        assert (fragment.districts is None) == (options.get("method") == "paper")
    a, d = fragment.labels[:2]
    assert fragment.is_block_ancestor(a, d) in (True, False)
    assert set().union(*fragment.blocks) == set(fragment.labels)
    assert len(fragment.block_order.matrix) == len(fragment.blocks)
    assert fragment.evidence.shape == (len(fragment.labels),) * 2
    assert fragment.basis.shape == (len(fragment.labels), client.n_features)
    assert fragment.transform(world.rows(0, 10)[0]).shape == (10, len(fragment.labels))
    assert fragment.effects is None
    assert str(fragment.outcome)


def test_an_order_answers(world):
    fragments = [jc.recover_fragment(c) for c in world.clients()]
    order = jc.assemble(fragments)
    assert jc.assemble(fragments, method="null-cone").pairs() == order.pairs()
    assert order.pairs() == world.order.pairs() == order.best_guess().pairs()
    a, d = next(iter(sorted(order.pairs())))
    assert order.verdict(a, d) is jc.Verdict.ANCESTOR
    assert order.verdict(d, a) is jc.Verdict.NOT_ANCESTOR
    assert order.probability(a, d) == 1
    assert (a in order.ancestors(d), d in order.descendants(a)) == (True, True)
    named = {"ancestor", "descendant", "verdict", "probability", "supporting", "contradicting"}
    assert named <= set(order.to_frame().columns)
    assert set(order.hasse().edges) <= order.pairs()
    assert a in str(order.explain(a, d))
    assert set(order.client_weights) == {f.client for f in fragments}
    apart = jc.assemble(fragments[3:])
    proposal = jc.next_client(apart, size=3)
    assert len(proposal.labels) == 3
    assert proposal.expected_gain > 0
    assert set(proposal.settles) <= apart.undetermined()
    published = jc.recover(iter(world.clients()), method="paper", tau=0.05).order
    assert {published.verdict(*p) for p in published.pairs()} == {jc.Verdict.ANCESTOR}


def test_a_result_has_effects_and_changes(hard, tmp_path):
    first, *others = hard.clients(2_000)
    result = jc.recover([first, *others], "null-cone", interventions="hard", seed=0, n_jobs=1)
    assert {"cause", "effect", "total", "standard_error", "low", "high", "sites", "verdict",
            "heterogeneity_p"} <= set(result.effects.columns)  # fmt: skip
    about = [x for *_, x in result.graph.edges(data=True)]
    assert all({"weight", "standard_error", "verdict"} <= x.keys() for x in about)
    label = result.order.labels[0]
    assert list(result.predict_shift({label: 1.0}).columns) == ["label", "change", "low", "high"]
    assert set(result.remove(first.name).add(first, interventions="hard").fragments) == {
        c.name for c in (first, *others)
    }
    assert result.add(jc.recover_fragment(others[0]), replace=True).fragments
    a, d, *_ = result.order.labels
    for known in (jc.Knowledge(tiers=[[a], [d]]), jc.Knowledge(not_ancestor=[(d, a)])):
        said = jc.recover([first, *others], interventions={a: "hard"}, knowledge=known)
        assert said.order.verdict(d, a) is jc.Verdict.NOT_ANCESTOR
    again = jc.load_result(result.save(tmp_path / "out"))
    assert again.order.pairs() == result.order.pairs()
    assert again.report(tmp_path / "report.html").is_file()
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"result.json", "order.csv", "hasse.graphml", "report.html"} <= written
    control, regimes = hard.rows(0, ROWS)
    X, y = np.vstack([control, *regimes.values()]), np.repeat(["control", *regimes], ROWS)
    fitted = jc.BlockRecovery(control="control").fit(X, y)
    assert len(fitted.transform(control)) == len(control)


def test_worlds_and_scores(world):
    truths, clients = [world.truth(k) for k in range(world.n_clients)], world.clients()
    fragments = [jc.recover_fragment(c) for c in clients]
    assert jc.metrics.global_f1(world.order, jc.assemble(fragments)) == 1
    assert jc.metrics.subspace_error(truths, fragments) < 1e-9
    assert jc.metrics.support_leakage(truths, fragments) == 0
    for truth in truths:
        assert set().union(*truth.blocks) == set().union(*truth.districts) == set(truth.labels)
        assert len(truth.Q) == len(truth.order.matrix) == len(truth.labels)
    assert world.client(0, n_samples=None, noise="laplace", seed=1).n_samples is None
    assert len(world.clients(ROWS, departures=["nonlinear-system=0.5"])) == world.n_clients


@pytest.mark.slow
def test_commands(tmp_path, monkeypatch, told):
    monkeypatch.chdir(tmp_path)

    def jigsaw(command, code=0):
        return told(*command.split(), code=code)

    jigsaw("simulate --out study --setting A --samples 500 --noise laplace --seed 1")
    jigsaw("simulate --out other --latent 4 --clients 2 --coverage 0.9 --samples 500 --format csv")
    assert json.loads(jigsaw("check study --json"))["fit"]
    assert json.loads(jigsaw("recover study --out result --method null-cone --json"))["pairs"]
    jigsaw("recover study --method paper --tau 0.05")
    for k in (1, 2):
        jigsaw(f"moments study/client-{k}.parquet -o {k}.npz")
        jigsaw(f"fragment {k}.npz -o {k}.json")
    jigsaw("fragment study/client-3.parquet -o 3.json")
    jigsaw("assemble 1.json 2.json 3.json --out assembled")
    a, d = jc.load_result("result").order.labels[:2]
    assert a in jigsaw(f"explain result {a} {d}")
    jigsaw("design result --size 3")
    jigsaw("report result -o page.html")
    assert Path("page.html").is_file()
    jigsaw("demo")
    jigsaw("reproduce figures --quick --only nothing", code=2)
    for wrong in ("recover nowhere", f"explain result {a} nothing", "recover study --tau 0.1"):
        assert jigsaw(wrong, code=2).count("\n") == 1
