"""Findings about batches of rows."""

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.diagnostics import check_client
from jigsaw_crl.truth.simulate import Batches, Intervention, random_world

from ..study.tables import client_of

NAMES = ("batch-wander", "batch-without-control", "batch-offset")


def client(batches, seed=0, n=2_000):
    kind = Intervention.named("hard", shift=1.0)
    return random_world(8, 1, 1.0, seed=75_000 + seed, intervention=kind).client(
        0, n, seed=seed, batches=batches
    )


def found(one):
    """Severity and message of the findings about batches, by name."""
    return {
        f.check: (f.severity, f.message) for f in check_client(one).findings if f.check in NAMES
    }


def test_batches_that_wander_are_said_to_and_by_how_much():
    severity, message = found(client(Batches(0.3, "own")))["batch-wander"]
    assert severity == "info"
    assert "standard deviations" in message
    assert set(found(client(Batches(0.3, "own")))) == {"batch-wander"}


def test_a_regime_that_is_alone_in_its_batch_is_named():
    one = found(client(Batches(0.3, "apart")))
    severity, message = one["batch-without-control"]
    assert severity == "warning"
    assert "uncertain by" in message
    assert found(client(Batches(0.0, "apart")))["batch-without-control"][0] == "info"


def test_means_are_not_used_if_nothing_shows_how_much_batches_differ():
    one = client(Batches(0.3, "apart", count=1))
    severity, message = found(one)["batch-without-control"]
    assert severity == "warning"
    assert "these means are not used" in message
    fragment = jc.recover_fragment(one)
    assert "batch-offset" not in {f.check for f in fragment.findings}


def test_regimes_that_share_a_batch_without_controls_are_named():
    rng = np.random.default_rng(0)
    rows = {x: rng.normal(size=(300, 3)) * (1 + i) for i, x in enumerate(["control", "a", "b"])}
    one = client_of(rows, batch={"control": ["p1"] * 150 + ["p2"] * 150, "a": "p3", "b": "p3"})
    assert found(one)["batch-without-control"][1].startswith("a, b: some or all rows")


def test_the_remedy_for_unknown_batches_is_the_column():
    fragment = jc.recover_fragment(client(Batches(0.3, "apart", count=1, told=False)))
    remedies = [f.remedy for f in fragment.findings if f.check == "batch-offset"]
    assert remedies
    assert "--batch" in remedies[0]


@pytest.mark.slow
def test_the_batch_column_restores_what_offsets_cost():
    kind = Intervention.named("hard", shift=1.0)
    worlds = [random_world(12, 8, 0.6, seed, intervention=kind) for seed in (76_000, 76_001)]

    def score(batches):
        orders = [jc.recover(w.clients(10_000, seed=w.seed, batches=batches)).order for w in worlds]
        return np.mean(list(map(jc.metrics.global_f1, (w.order for w in worlds), orders)))

    clean, told, untold = map(score, (None, Batches(0.3, "own"), Batches(0.3, "own", told=False)))
    assert told >= clean - 0.05
    assert untold < clean - 0.3
