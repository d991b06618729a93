"""Chances of what further data settle: honest, and in agreement with what then happens."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.assembly.design import SiteSearch
from jigsaw_crl.assembly.futures import Outlook, stated
from jigsaw_crl.truth.simulate.views import View

from .clients import lab

ROWS = 1000


@cache
def study(seed):
    hard = jc.simulate.Intervention("hard", shift=1.0)
    world = jc.simulate.random_world(8, 3, 0.6, seed=seed, intervention=hard)
    return world, jc.recover([rows_of(world, k, 1) for k in range(3)])


def rows_of(world, k, factor):
    """A site with `factor` times the rows; the first ones are always the same."""
    parts = [world.rows(k, ROWS, seed=1)]
    if factor > 1:
        parts.append(world.rows(k, (factor - 1) * ROWS, seed=2))
    control = np.vstack([part[0] for part in parts])
    regimes = {x: np.vstack([part[1][x] for part in parts]) for x in parts[0][1]}
    name = world.views[k].name
    return jc.Client.from_samples(name, observational=control, interventions=regimes)


def with_site(world, labels, seed):
    """What a new site with these labels says."""
    nodes = np.array([world.node(label) for label in labels], dtype=np.intp)
    mixing = np.random.default_rng(seed).normal(size=(2 * len(nodes), len(nodes)))
    grown = replace(world, views=(*world.views, View("new", nodes, mixing)))
    return jc.recover_fragment(grown.client(world.n_clients, n_samples=ROWS))


@pytest.mark.slow
def test_a_new_site_settles_the_share_of_pairs_that_was_stated():
    stated, real = [], []
    for seed in range(70, 110):
        world, result = study(seed)
        order, labels = result.order, jc.next_client(result.order).labels
        chances = SiteSearch(order).chances(np.flatnonzero(np.isin(order.labels, labels)))
        left = jc.assemble([*order.fragments, with_site(world, labels, seed)]).undetermined()
        for pair in order.undetermined():
            if set(pair) <= set(labels):
                stated.append(chances[order.indices(*pair)])
                real.append(pair not in left)
    assert len(stated) > 700
    chance, settled = np.array(stated), np.array(real)
    # They understate: what several new pairs do together is judged pair by pair.
    for third in np.array_split(np.argsort(chance), 3):
        assert -0.25 < chance[third].mean() - settled[third].mean() < 0.15
    assert ((chance - settled) ** 2).mean() < settled.var()


def test_a_future_without_data_settles_nothing():
    _, result = study(70)
    outlook = Outlook(result.order, 0)
    pairs = outlook.asked(np.arange(len(result.order)))
    nobody_tells = np.zeros((len(outlook.orders), len(pairs[0])))
    nothing_hard = np.zeros(len(result.order), dtype=bool)
    assert outlook.open.any()
    assert outlook.chance(pairs, nobody_tells, nothing_hard).sum() == 0


def test_a_pair_that_the_future_is_not_about_is_settled_only_if_decided_pairs_imply_it():
    """Pump to valve is known; the future finds valve to tank, and so pump to tank."""
    order = jc.assemble([lab("lab-1", "pvt", yes=[("p", "v")], no=[("v", "p")])])
    outlook, (v, t) = Outlook(order, 0), order.indices("v", "t")
    pairs = np.array([v, t]), np.array([t, v])
    for yes, found in (
        ([True, False], {"pt", "vt", "tp", "tv"}),
        ([False, False], {"vt", "tp", "tv"}),
    ):
        said = outlook.settled(pairs, stated(np.array(yes), order.said.n_scales)) & outlook.open
        # Were tank an ancestor of pump, it would be one of valve.
        assert {order.labels[a] + order.labels[d] for a, d in np.argwhere(said)} == found


def test_more_rows_help_where_a_client_reads_an_open_pair_in_two_districts():
    order = study(70)[1].order
    told = re.findall(r"(\d+) pairs? at ([\w-]+)", jc.next_client(order).more_rows)
    assert told
    for count, site in told:
        (sent,) = [f for f in order.fragments if f.client == site]
        pairs = [x for x in order.undetermined() if set(x) <= set(sent.labels)]
        apart = [x for x in pairs if not any(set(x) <= group for group in sent.districts)]
        assert int(count) <= len(apart)
