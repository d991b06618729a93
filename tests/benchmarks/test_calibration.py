"""The calibration benchmark: which wrong "no" lie above the bound that was stated."""

from dataclasses import replace

import calibration
import numpy as np

import jigsaw_crl as jc


def test_a_wrong_no_is_above_its_bound_or_below_it():
    world = calibration.Cell(latent=8, clients=6).world(calibration.SEEDS["choose"])
    order = jc.recover(world.clients(2_000)).order
    shares = calibration.true_shares(world)
    assert set(shares) <= world.order.pairs()
    assert all(0 < share < 1 + 1e-9 for share in shares.values())
    assert calibration.above_bound(world, order) == 0
    # Say "no" everywhere: an ancestor above its bound is then a wrong "no" above its bound.
    denied = replace(order, verdicts=np.zeros_like(order.verdicts))
    beyond = {p for p in world.order.pairs() if not shares.get(p, 2.0) <= order.bound(*p)}
    assert calibration.above_bound(world, denied) == len(beyond)
    assert 0 < len(beyond) < len(world.order.pairs())
