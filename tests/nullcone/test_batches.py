"""Recovery from batches that are offset: calibrated, as good as without offsets, and no loss."""

from __future__ import annotations

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.truth.simulate import Batches, Intervention, random_world


def scores(batches: Batches | None, worlds: int = 6) -> tuple[np.ndarray, int, float]:
    """E1 of each world, and over all: wrong "yes", and the share of pairs decided."""
    values, wrong, decided = [], 0, []
    for seed in range(76_000, 76_000 + worlds):
        kind = Intervention.named("hard", shift=1.0)
        world = random_world(12, 8, 0.6, seed=seed, intervention=kind)
        try:
            order = jc.recover(world.clients(10_000, "gaussian", seed, batches=batches)).order
        except jc.InputError:
            values.append(0.0)
            decided.append(0.0)
            continue
        counts = jc.metrics.verdict_counts(world.order, order, order.labels)
        values.append(jc.metrics.global_f1(world.order, order))
        wrong += counts.wrong_yes
        decided.append(counts.decided)
    return np.array(values), wrong, float(np.mean(decided))


@pytest.mark.slow
def test_the_batch_column_restores_what_offsets_cost_and_costs_nothing_without():
    clean, _, decided = scores(None)
    # Without controls in their batches, the means of the regimes say next to nothing.
    for layout, loss in (("own", 0.05), ("apart", 0.09)):
        e1, wrong, _ = scores(Batches(0.3, layout))
        assert e1.mean() >= clean.mean() - loss
        assert wrong <= 1
        without, _, _ = scores(Batches(0.3, layout, told=False), worlds=2)
        assert without.mean() < clean[:2].mean() - 0.3
        e1, wrong, share = scores(Batches(0.0, layout), worlds=2)
        assert e1.mean() >= clean[:2].mean() - 0.01
        assert share >= decided - 0.02
        assert wrong == 0
