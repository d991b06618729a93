"""Effects, edges and latents against the truth."""

from dataclasses import replace

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.truth.metrics import (
    EdgeCounts,
    EffectScores,
    edge_counts,
    effect_scores,
    latent_correlation,
)
from jigsaw_crl.truth.simulate import Intervention, random_world


@pytest.fixture(scope="module")
def world():
    return random_world(6, 4, 0.8, 740_001, intervention=Intervention("hard", shift=1.0))


@pytest.fixture(scope="module")
def result(world):
    return jc.recover(world.clients(), interventions="hard")


@pytest.fixture(scope="module")
def truth(world, result):
    return world.effects(result.order.labels)


def with_effects(order, **changes):
    """The order with other pooled effects."""
    changed = replace(order)
    changed.__dict__["effects"] = replace(order.effects, **changes)
    return changed


def test_exact_moments_score_perfectly(world, result, truth):
    scores = effect_scores(truth, result.order)
    assert scores.zero + scores.other == 30
    assert scores.rms < 1e-8
    assert scores.coverage == scores.coverage_of_zero == scores.coverage_of_effects == 1
    edges = edge_counts(truth, result.order)
    assert edges == EdgeCounts(*[int((truth.direct != 0).sum())] * 3, undetermined=0)
    assert edges.f1 == 1
    truths = [world.truth(k) for k in range(4)]
    assert latent_correlation(truths, result.fragments) == pytest.approx(1, abs=1e-12)


def test_an_interval_covers_the_truth_or_not(result, truth):
    off = ~np.eye(6, dtype=bool)
    zero = (truth.total == 0) & off
    effects = result.order.effects
    wide = np.full((6, 6), 0.1)
    moved = np.where(zero, effects.estimate + 0.19, effects.estimate + 0.2)
    scores = effect_scores(truth, with_effects(result.order, estimate=moved, error=wide))
    assert (scores.zero, scores.other) == (zero.sum(), (off & ~zero).sum())
    assert (scores.coverage_of_zero, scores.coverage_of_effects) == (1, 0)
    assert scores.coverage == pytest.approx(zero.sum() / 30)
    # The verdict "not ancestor" makes the total zero, whatever the estimate is.
    assert scores.rms == pytest.approx(np.sqrt(0.2**2 * scores.other / 30))


def test_small_edges_count_neither_as_found_nor_as_missed(result, truth):
    sizes = np.sort(np.abs(truth.direct[truth.direct != 0]))
    above = float(sizes[1])
    large = len(sizes) - 2
    assert edge_counts(truth, result.order, above) == EdgeCounts(large, large, large)
    # One false edge, and the largest is missed.
    changed = replace(result.order)
    direct = result.order.direct_effects
    odds = direct.log_odds.copy()
    a, d = np.argwhere(truth.direct == 0)[1]
    odds[a, d] = 10.0
    odds[np.unravel_index(np.abs(truth.direct).argmax(), (6, 6))] = 0.0
    changed.__dict__["direct_effects"] = replace(direct, log_odds=odds)
    found = edge_counts(truth, changed, above)
    assert found == EdgeCounts(large, large, large - 1, undetermined=1)
    assert found.f1 == pytest.approx((large - 1) / large)


def test_an_order_without_effects_has_no_pairs_and_misses_every_edge(world):
    order = jc.recover(world.clients()).order
    truth = world.effects(order.labels)
    nothing = effect_scores(truth, order)
    assert nothing == EffectScores()
    assert np.isnan(nothing.rms)
    assert edge_counts(truth, order) == EdgeCounts(true=int((truth.direct != 0).sum()))
    assert edge_counts(truth, order).f1 == 0


def test_labels_in_another_order_are_refused(world, result):
    other = world.effects(result.order.labels[::-1])
    for score in (effect_scores, edge_counts):
        with pytest.raises(jc.InputError, match="order's labels"):
            score(other, result.order)
