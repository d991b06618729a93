"""Chances of what further data settle: honest, and in agreement with what then happens."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.assembly.design import site_chances
from jigsaw_crl.assembly.more_rows import (
    NEVER_TOGETHER,
    ONE_DISTRICT,
    more_rows,
    rows_chances,
)
from jigsaw_crl.cli.app import run
from jigsaw_crl.truth.simulate.world import View, World

ROWS = 1000
SEEDS = range(70, 76)


@cache
def study(seed: int) -> tuple[World, jc.Result]:
    hard = jc.simulate.Intervention("hard", shift=1.0)
    world = jc.simulate.random_world(8, 3, 0.6, seed=seed, intervention=hard)
    return world, jc.recover([rows_of(world, k, 1) for k in range(3)])


def rows_of(world: World, k: int, factor: int) -> jc.Client:
    """A site with `factor` times the rows; the first ones are always the same."""
    parts = [world.rows(k, ROWS, seed=1)]
    if factor > 1:
        parts.append(world.rows(k, (factor - 1) * ROWS, seed=2))
    control = np.vstack([part[0] for part in parts])
    regimes = {x: np.vstack([part[1][x] for part in parts]) for x in parts[0][1]}
    name = world.views[k].name
    return jc.Client.from_samples(name, observational=control, interventions=regimes)


def with_site(world: World, labels: tuple[str, ...], seed: int) -> jc.Fragment:
    """What a new site with these labels says."""
    nodes = np.array([world.node(label) for label in labels], dtype=np.intp)
    mixing = np.random.default_rng(seed).normal(size=(2 * len(nodes), len(nodes)))
    grown = replace(world, views=(*world.views, View("new", nodes, mixing)))
    return jc.recover_fragment(grown.client(world.n_clients, n_samples=ROWS))


def assert_calibrated(stated: list[float], real: list[bool], slack: float) -> None:
    """In the lower, middle and upper third, as much is settled as was stated."""
    chance, settled = np.array(stated), np.array(real)
    order = np.argsort(chance)
    for part in np.array_split(order, 3):
        assert abs(chance[part].mean() - settled[part].mean()) < slack
    assert ((chance - settled) ** 2).mean() < settled.var()


@pytest.mark.slow
def test_a_new_site_settles_the_share_of_pairs_that_was_stated():
    stated, real = [], []
    for seed in SEEDS:
        world, result = study(seed)
        labels = jc.next_client(result.order).labels
        left = result.order.add(with_site(world, labels, seed)).undetermined()
        for pair, chance in site_chances(result.order, labels).items():
            if set(pair) <= set(labels):
                stated.append(chance)
                real.append(pair not in left)
    assert len(stated) > 90
    assert_calibrated(stated, real, slack=0.15)


def test_more_rows_settle_the_share_of_pairs_that_was_stated():
    stated, real = [], []
    for seed in SEEDS:
        world, result = study(seed)
        k = seed % 3
        site = jc.recover_fragment(rows_of(world, k, 8))
        others = [f for f in result.order.fragments if f.client != site.client]
        left = jc.assemble([*others, site]).undetermined()
        for pair, chance in rows_chances(result.order, site.client, 8).items():
            if set(pair) <= set(site.labels):
                stated.append(chance)
                real.append(pair not in left)
    assert len(stated) > 60
    assert_calibrated(stated, real, slack=0.2)


def test_a_chance_is_never_certain_and_grows_with_the_rows():
    _, result = study(70)
    labels = jc.next_client(result.order).labels
    few, usual, many = (
        site_chances(result.order, labels, rows=rows) for rows in (100, ROWS, 100 * ROWS)
    )
    assert 0 < min(many.values()) <= max(many.values()) < 1
    assert sum(few.values()) < sum(usual.values()) < sum(many.values())


def test_chances_do_not_change_from_call_to_call():
    _, result = study(71)
    assert result.design() == result.design()


@pytest.mark.parametrize("seed", SEEDS)
def test_every_open_pair_gets_its_rows_or_the_reason_why_not(seed):
    _, result = study(seed)
    order = result.order
    found = more_rows(order)
    assert {(m.ancestor, m.descendant) for m in found} == order.undetermined()
    for m in found:
        sites = [f for f in order.fragments if {m.ancestor, m.descendant} <= set(f.labels)]
        assert (m.reason == NEVER_TOGETHER) == (not sites)
        both = [any({m.ancestor, m.descendant} <= d for d in f.districts or ()) for f in sites]
        assert m.joined == (bool(sites) and all(both))
        if m.site is None:
            assert (m.rows, m.even, m.good) == (None, None, None)
            assert m.reason
            continue
        assert m.site in {f.client for f in sites}
        assert ROWS == m.rows < m.even <= 64 * ROWS * 1.1
        assert m.good is None or m.good >= m.even
        assert not m.reason


def test_a_pair_in_one_district_gets_no_number_of_rows():
    """A hidden cause of both, far stronger than anything else: soft interventions leave it open."""
    effects = np.zeros((4, 4))
    effects[1, 0] = effects[2, 0] = 2.0
    effects[3, 1] = 1.0
    world = jc.simulate.world_from_graph(
        effects, [["a", "b", "c"]], None, 3, names=["h", "a", "b", "c"]
    )
    order = jc.recover(world.clients(n_samples=20_000)).order
    assert {("a", "b"), ("b", "a")} <= order.undetermined()
    reasons = {(m.ancestor, m.descendant): m.reason for m in more_rows(order)}
    assert reasons["a", "b"] == reasons["b", "a"] == ONE_DISTRICT


def test_rows_and_the_finding_agree_on_a_pair_that_is_confounded_as_far_as_rows_tell(
    tmp_path, capsys
):
    world = jc.simulate.random_world(6, 2, 0.6, seed=6001)
    result = jc.recover(world.clients(n_samples=1000))
    (said,) = (f for f in result.diagnostics if f.check == "always-confounded")
    unsure = [m for m in more_rows(result.order) if m.joined and m.site is not None]
    assert unsure
    for m in unsure:
        assert "–".join(sorted((m.ancestor, m.descendant))) in said.message
    assert "as far as its rows tell" in said.message
    assert "more rows" in said.remedy
    result.save(tmp_path / "result")
    assert run(["design", str(tmp_path / "result")]) == 0
    line = next(
        x for x in capsys.readouterr().out.splitlines() if "which more rows may change" in x
    )
    assert all(f"{m.ancestor}–{m.descendant}" in line for m in unsure)
    # Exact moments leave no doubt.
    exact = jc.recover(world.clients()).diagnostics
    assert not any("rows" in f.message for f in exact if f.check == "always-confounded")


def test_exact_moments_need_no_rows():
    world = jc.simulate.setting("A", 0)
    order = jc.recover([world.client(0), world.client(4)]).order
    assert order.undetermined()
    assert more_rows(order) == ()
    assert jc.next_client(order).rows is None


@pytest.mark.parametrize("rows", [1, 0, True, 2.5])
def test_a_site_needs_rows(rows):
    with pytest.raises(jc.InputError, match="two rows or more"):
        jc.next_client(study(70)[1].order, rows=rows)
