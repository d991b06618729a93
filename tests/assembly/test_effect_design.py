"""What would narrow an effect: predicted errors are those that further data then have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.assembly.plan import effect_needs
from jigsaw_crl.truth.simulate.world import View

ROWS = 2000
NAMES = ("pump", "valve", "flow", "tank")
HARD = jc.simulate.Intervention("hard", shift=1.0)


@pytest.fixture(scope="module")
def world() -> jc.simulate.World:
    effects = np.zeros((4, 4))
    effects[1, 0], effects[2, 1], effects[3, 2] = 0.8, -0.7, 0.6
    sites = [["pump", "valve", "flow"], ["valve", "flow", "tank"]]
    return jc.simulate.world_from_graph(
        effects, sites, None, 5, names=NAMES, intervention=HARD, client_names=["north", "south"]
    )


@pytest.fixture(scope="module")
def result(world) -> jc.Result:
    return jc.recover(world.clients(n_samples=ROWS), interventions="hard")


def needs(result, *labels, **options):
    return {(e.cause, e.effect): e for e in effect_needs(result.order, labels, **options)}


def test_the_error_with_a_new_site_is_the_one_that_follows(world, result):
    labels = ("pump", "valve", "flow")
    stated = needs(result, *labels, rows=ROWS)
    nodes = np.array([world.node(x) for x in labels], dtype=np.intp)
    mixing = np.random.default_rng(1).normal(size=(6, 3))
    grown = replace(world, views=(*world.views, View("west", nodes, mixing)))
    after = result.add(grown.client(2, n_samples=ROWS), interventions="hard").order.effects
    for a, d in (("pump", "valve"), ("valve", "flow"), ("pump", "flow")):
        i, j = result.order.indices(a, d)
        assert stated[a, d].error_new_site < stated[a, d].error
        assert after.error[i, j] == pytest.approx(stated[a, d].error_new_site, rel=0.3)


def test_the_error_with_twice_the_rows_is_the_one_that_follows(world, result):
    stated = needs(result)["pump", "valve"]
    assert stated.site == "north"
    clients = [world.client(0, n_samples=2 * ROWS), world.client(1, n_samples=ROWS)]
    after = jc.recover(clients, interventions="hard").order
    error = after.effects.error[after.indices("pump", "valve")]
    assert error == pytest.approx(stated.error_more_rows, rel=0.1)


def test_more_rows_of_a_new_site_narrow_more(result):
    few, many = (needs(result, "pump", "valve", rows=n)["pump", "valve"] for n in (500, 50_000))
    assert many.error_new_site < few.error_new_site < few.error
    assert needs(result, "pump", "flow")["pump", "valve"].error_new_site is None


def test_an_effect_that_nobody_can_measure_says_what_is_missing(result):
    found = needs(result)
    assert found["pump", "tank"].missing.startswith("no site has both labels")
    assert found["pump", "tank"].total is None


def test_a_soft_intervention_on_the_effect_is_named(world):
    mixed = dict.fromkeys(NAMES, "hard") | {"flow": "soft"}
    result = jc.recover(world.clients(n_samples=ROWS), interventions=mixed)
    found = needs(result)["valve", "flow"]
    assert found.missing == "needs a hard intervention on flow"
    assert found.total is None


def test_soft_and_exact_studies_have_no_needs(world):
    assert effect_needs(jc.recover(world.clients(n_samples=ROWS)).order) == ()
    assert effect_needs(jc.recover(world.clients(), interventions="hard").order) == ()


@pytest.mark.slow
def test_the_rows_that_decide_an_edge_decide_it():
    world = jc.simulate.random_world(6, 2, 1.0, seed=4, intervention=HARD)
    order = jc.recover(world.clients(n_samples=600), interventions="hard").order
    factors = [e for e in effect_needs(order) if e.factor is not None]
    assert factors
    for e in factors:
        a, d = order.indices(e.cause, e.effect)
        assert order.direct_effects.verdict_at(a, d, e.factor * 1.05) != "undetermined"
        assert order.direct_effects.verdict_at(a, d, 1.0) == e.edge == "undetermined"
