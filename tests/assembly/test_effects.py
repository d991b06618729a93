"""Effects of several clients: pooling, directions, sites that differ, the graph, predictions."""

import re
from dataclasses import replace

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl import assemble
from jigsaw_crl.assembly.effects import pool_effects
from jigsaw_crl.assembly.explanation import check_certificate
from jigsaw_crl.assembly.panel import Use, read_fragments
from jigsaw_crl.truth.simulate import Intervention

from .clients import with_totals


@pytest.fixture(scope="module")
def world():
    intervention = Intervention("hard", shift=1.0)
    return jc.simulate.random_world(8, 10, 0.7, 720_001, intervention=intervention)


@pytest.fixture(scope="module")
def result(world):
    return jc.recover(world.clients(n_samples=5_000), interventions="hard")


def used(fragments):
    panel = read_fragments(fragments)
    return panel, Use.all_of(panel)


def test_pooled_effects_are_close_to_the_truth(world, result):
    effects = result.order.effects
    total = world.effects(effects.labels).total
    off = effects.known & ~np.eye(len(total), dtype=bool)
    # Directions are a convention: sizes are compared.
    error = (np.abs(effects.estimate) - np.abs(total))[off]
    assert np.sqrt(np.mean(error**2)) < 0.03
    inside = np.abs(error) < 1.96 * effects.error[off]
    # 95 % of them, less four standard errors of so many pairs.
    assert inside.mean() > 0.95 - 4 * np.sqrt(0.95 * 0.05 / inside.size)
    frame = result.effects
    assert (frame.total[frame.verdict == "not ancestor"] == 0).all()
    assert (frame.sites >= 1).all()
    assert (frame.low < frame.high).all()
    assert ((frame.low <= frame.total) & (frame.total <= frame.high)).all()


def test_every_direct_edge_that_is_stated_is_there(world, result):
    labels = result.order.labels
    direct = world.effects(labels).direct
    stated = [(a, d) for a, d, verdict in result.graph.edges(data="verdict") if verdict == "direct"]
    assert len(stated) >= 0.9 * (direct != 0).sum()
    assert all(direct[labels.index(a), labels.index(d)] != 0 for a, d in stated)


def test_signs_are_those_of_the_interventions_and_a_site_that_is_turned_is_named(world, result):
    fragments = list(result.fragments.values())
    straight = pool_effects(*used(fragments))
    total = world.effects(straight.labels).total
    clear = (np.abs(total) > 0.1) & straight.known
    np.fill_diagonal(clear, False)
    assert clear.sum() > 5
    assert np.array_equal(np.sign(straight.estimate)[clear], np.sign(total)[clear])
    assert straight.notes == ()
    # The label with the clearest effects at the first site moves the other way there.
    first = fragments[0]
    z = np.nan_to_num(np.abs(first.hard.total.value) / first.hard.total.error)
    j = int((np.where(z > 5, z, 0).sum(axis=0) + np.where(z > 5, z, 0).sum(axis=1)).argmax())
    sign = np.where(np.arange(len(z)) == j, -1.0, 1.0)
    turned = with_totals(first, first.hard.total.value * sign[:, None] * sign[None, :])
    pooled = pool_effects(*used([turned, *fragments[1:]]))
    assert np.allclose(pooled.estimate, straight.estimate, equal_nan=True)
    (note,) = pooled.notes
    assert first.labels[j] in note
    assert first.client in note


def test_predictions_are_total_effects_and_add_up(result):
    a, b = result.order.labels[:2]
    one, two = result.predict_shift({a: 1.0}), result.predict_shift({a: 1.0, b: -2.0})
    rest = result.predict_shift({b: -2.0})
    assert np.allclose(one.change + rest.change, two.change, equal_nan=True)
    assert (two.low <= two.change).all()
    assert (two.change <= two.high).all()
    frame = result.effects.set_index(["cause", "effect"]).total
    for label, change in zip(one.label, one.change, strict=True):
        if label != a:
            assert change == pytest.approx(frame[a, label])
    assert one.change[one.label == a].item() == 1.0
    assert one.equals(result.predict_shift({a: 1.0, b: 0.0}))
    with pytest.raises(jc.InputError, match="no client has the label"):
        result.predict_shift({"nowhere": 1.0})


def test_without_hard_interventions_there_are_no_effects(world):
    result = jc.recover([world.client(0), world.client(1)])
    assert result.effects.empty
    assert not result.graph.edges
    with pytest.raises(jc.InputError, match="no client measured one by interventions"):
        result.predict_shift({result.order.labels[0]: 1.0})


def test_hard_interventions_that_shift_nothing_are_not_called_soft():
    world = jc.simulate.world_from_graph(
        np.diag([0.8], k=-1), [("z1", "z2")], (5,), seed=1, intervention=Intervention("hard")
    )
    result = jc.recover(world.clients(5_000), interventions="hard")
    assert result.effects.empty
    with pytest.raises(jc.InputError, match="shift their means measure them"):
        result.predict_shift({result.order.labels[0]: 1.0})


def recovered(names, edges, *sites, features=None, seed=3):
    """A world of edges (cause, effect): weight, of whose labels each site has some; its result."""
    effects = np.zeros((len(names),) * 2)
    for (cause, effect), weight in edges.items():
        effects[names.index(effect), names.index(cause)] = weight
    world = jc.simulate.world_from_graph(
        effects, sites, features, seed, names=names, intervention=Intervention("hard", shift=1.0)
    )
    return world, jc.recover(world.clients(n_samples=10_000), interventions="hard")


PLANT = ("pump", "valve", "tank", "heater")


@pytest.fixture(scope="module")
def chain():
    """pump → valve → tank beside a heater, of which each site has two labels."""
    edges = {("pump", "valve"): 0.8, ("valve", "tank"): 0.8}
    return recovered(PLANT, edges, PLANT[:2], PLANT[1:3], PLANT[2:])[1]


def test_a_push_changes_nothing_only_where_the_order_excludes_any_effect(chain):
    result, order = chain, chain.order
    assert order.verdict("pump", "tank") is jc.Verdict.ANCESTOR
    pushed = result.predict_shift({"tank": 1.0}).set_index("label")
    # The pump is an ancestor of the tank, so no effect of any size runs back.
    assert tuple(pushed.loc["pump"]) == (0.0, 0.0, 0.0)
    # z1 moves z2 and not z3, so z2 does not move z3 either, but only up to the sizes that were
    # measured: nobody bounds this one.
    kind = Intervention("hard", shift=1.0)
    world = jc.simulate.random_world(7, 6, 0.45, 7, intervention=kind)
    result = jc.recover(world.clients(3_000), interventions="hard")
    told = str(result.order.explain("z2", "z3"))
    assert "z3: the opposite would contradict steps" in told
    assert "no size of effect is excluded by itself" in told
    change, low, high = result.predict_shift({"z2": 1.0}).set_index("label").loc["z3"]
    assert change == 0
    assert np.isnan([low, high]).all()
    you = jc.Knowledge(not_ancestor=[("z2", "z3")])
    told = jc.Result(result.fragments, assemble(result.fragments.values(), knowledge=you))
    assert tuple(told.predict_shift({"z2": 1.0}).set_index("label").loc["z3"]) == (0, 0, 0)


def test_a_direct_edge_beside_an_open_path_is_not_said_to_be_all_of_it(chain):
    told = str(chain.order.explain("valve", "tank"))
    assert "there is a direct edge; a path through heater is not excluded" in told
    assert "all of it" not in told


def test_a_path_through_a_label_that_a_site_lacks_is_not_direct():
    edges = {("pump", "valve"): 0.9, ("valve", "tank"): 0.8}
    _, result = recovered(PLANT, edges, ["pump", "tank"], ["valve", "heater"])
    assert str(result.order.verdict("pump", "tank")) == "ancestor"
    edge = result.graph["pump"]["tank"]
    assert edge["verdict"] == "undetermined"
    assert "valve" in edge["through"]
    assert edge["low"] <= 0 <= edge["high"]
    # Nobody measured these, and nothing is said about them.
    assert not set(result.graph.edges) & {("pump", "valve"), ("valve", "tank"), ("pump", "heater")}


def test_the_error_of_a_direct_effect_covers_what_may_pass_through_others():
    # a → b → c and a → c; no site has both b and c. That a acts directly on c is sure, by how much
    # is not: a part of the total effect, -0.77, may pass through b.
    edges = {("a", "b"): 0.9, ("a", "c"): -0.8, ("b", "c"): -0.8, ("a", "d"): 0.5}
    world, result = recovered("abcd", edges, "abd", "acd", features=[7, 7], seed=1)
    edge, effects = result.graph.edges["a", "c"], world.effects(tuple("abcd"))
    assert edge["through"] == "b"
    assert abs(edge["weight"] - effects.direct[0, 2]) < 4 * edge["standard_error"]
    assert edge["low"] == pytest.approx(edge["weight"] - 1.96 * edge["standard_error"], abs=1e-3)


def test_a_site_that_does_not_say_that_its_interventions_are_hard_is_named():
    world = jc.simulate.random_world(6, 3, 1.0, 5, intervention=Intervention("hard", shift=1.0))
    hard = [client.with_interventions("hard") for client in world.clients(3_000)]
    result = jc.recover([*hard[:2], world.clients(3_000)[2]])
    (note,) = [x for x in result.order.notes if "hard at other clients" in x]
    assert "not at client-3" in note
    assert not [x for x in jc.recover(hard).order.notes if "hard at other clients" in x]


def test_an_explanation_states_the_total_effect_and_its_sites(result):
    order = result.order
    row = result.effects[result.effects.verdict == "ancestor"].iloc[0]
    certificate = order.explain(row.cause, row.effect)
    assert certificate.effect["total"] == row.total
    assert certificate.effect["sites"] == row.sites
    assert f"Total effect of {row.cause} on {row.effect}: {row.total:+.2f} standard" in str(
        certificate
    )
    assert certificate.bound is None
    assert check_certificate(certificate, order.fragments) == ""
    forged = replace(certificate, effect={**certificate.effect, "total": 5.0})
    assert "another effect" in check_certificate(forged, order.fragments)
    row = result.effects[result.effects.verdict == "not ancestor"].iloc[0]
    certificate = order.explain(row.cause, row.effect)
    assert certificate.effect is None
    assert certificate.bound_unit == "standard deviations"
    shown = re.search(r"  Effects above ([\d.]+) standard deviations are", str(certificate))
    assert certificate.bound <= float(shown[1]) < 1.1 * certificate.bound


@pytest.fixture(scope="module")
def wide():
    """Twelve sites of a larger system: most pairs are measured by one or two of them."""
    intervention = Intervention("hard", shift=1.0)
    world = jc.simulate.random_world(20, 12, 0.4, 9_101, intervention=intervention)
    return [
        jc.recover_fragment(client.with_interventions("hard"))
        for client in world.clients(n_samples=3_000)
    ]


@pytest.mark.slow
def test_one_site_cannot_make_labels_look_as_if_they_were_not_hard(wide):
    """It misstates one effect of each label, where one other site has measured it."""
    honest = assemble(wide)
    sites = honest.effects.by_site
    k = int(np.argmax([len(f.labels) for f in wide]))
    at = [honest.labels.index(label) for label in wide[k].labels]
    others = (~np.isnan(np.delete(sites, k, axis=0))).sum(axis=0)[np.ix_(at, at)]
    value, lies = wide[k].hard.total.value.copy(), 0
    for d in range(len(at)):
        for a in np.flatnonzero((others[:, d] == 1) & ~np.isnan(value[:, d]))[:1]:
            value[a, d] += 2.0
            lies += 1
    assert lies > 5
    lied = assemble([with_totals(f, value) if f is wide[k] else f for f in wide])
    assert not lied.use.soft
    assert lied.effects.known.sum() == honest.effects.known.sum()
