"""The calibration benchmark: which wrong "no" lie above the bound that was stated."""

from dataclasses import replace

import calibration
import numpy as np
import pytest

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


@pytest.mark.slow
def test_a_fast_part_of_the_page_is_as_good_as_the_page_says(tmp_path):
    # The page's means are .97–.99 for E1 and for the share decided; single worlds spread by .03.
    cells = [calibration.Cell(*x) for x in (("paper", 0.0), ("hard", 1.0), ("mild", 0.3))]
    assert set(cells) <= set(calibration.PAGE["Kinds of interventions"])
    tasks, out = [(cell, 1) for cell in cells], tmp_path / "part.jsonl"
    records = calibration.run(calibration.Cell, calibration.run_world, tasks, "choose", 1, out)
    counts = calibration.total(records)
    assert np.mean([r["E1"] for r in records]) > 0.93
    assert counts.decided > 0.93
    assert counts.wrong_yes <= 0.01 * counts.yes
    assert counts.wrong_no <= 0.015 * counts.no
    assert all(r["above"] <= r["counts"]["wrong_no"] for r in records)
    assert sum(r["above"] for r in records) <= 0.005 * counts.no
