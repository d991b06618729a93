"""How large an effect a "no" excludes."""

from __future__ import annotations

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.assembly.verdict import NO, OPEN, YES
from jigsaw_crl.nullcone.reading import read


@pytest.fixture(scope="module")
def world():
    return jc.simulate.random_world(8, 6, 0.7, 730_001)


@pytest.fixture(scope="module")
def clients(world):
    return world.clients(n_samples=2_000)


def test_bounds_shrink_with_more_rows_and_cover_the_true_shares(world, clients):
    few = jc.recover(clients).order.bounds.value
    many = jc.recover(world.clients(n_samples=50_000)).order.bounds.value
    order = jc.recover(clients).order
    no = (order.verdicts == NO) & ~np.isnan(few)
    assert np.median(many[no]) < 0.5 * np.median(few[no])
    true: dict[tuple[str, str], list[float]] = {}
    for k in range(world.n_clients):
        client, truth = world.client(k), world.truth(k)
        shares = np.abs(read(client).sizes[0])
        for i, a in enumerate(client.labels):
            for j, d in enumerate(client.labels):
                confounded = any({a, d} <= district for district in truth.districts)
                if truth.order.is_ancestor(a, d) and not confounded:
                    true.setdefault((a, d), []).append(float(shares[i, j]))
    covered = [np.mean(share) <= order.bound(a, d) for (a, d), share in true.items()]
    assert len(covered) > 8
    assert np.mean(covered) > 0.85


def test_the_smallest_effect_that_matters_decides_what_no_means(clients):
    plain = jc.recover(clients).order
    bound = plain.bounds.value
    size = float(np.nanmedian(bound[plain.verdicts == NO]))
    order = jc.recover(clients, smallest_effect=size).order
    off = ~np.eye(len(order), dtype=bool)
    measured = ~np.isnan(bound) & off
    assert (bound[measured & (order.verdicts == NO)] <= size).all()
    assert (order.verdicts[measured & (bound > size) & (plain.verdicts == NO)] == OPEN).all()
    assert np.array_equal(order.verdicts == YES, plain.verdicts == YES)
    with pytest.raises(jc.InputError, match="above 0"):
        jc.recover(clients, smallest_effect=-1.0)


def test_pairs_that_no_client_has_together_have_no_bound(world):
    first, second = (
        world.client(k, n_samples=2_000, labels=world.client(k).labels[:4]) for k in (0, 1)
    )
    order = jc.recover([first, second]).order
    apart = [
        (a, d)
        for a in set(first.labels) - set(second.labels)
        for d in set(second.labels) - set(first.labels)
    ]
    assert apart
    assert all(np.isnan(order.bound(a, d)) for a, d in apart)
