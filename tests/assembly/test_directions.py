"""Signs of effects without shifts: stated where the data determine them, and only there."""

from itertools import product

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.assembly.directions import open_signs
from jigsaw_crl.truth.simulate import Intervention


def gauge(estimate, true, oriented):
    """Directions of the labels in which the estimates are nearest to the true effects."""
    y = np.array(list(product((1.0, -1.0), repeat=len(true))))
    y = y[(y[:, oriented] > 0).all(axis=1)]
    apart = np.abs(estimate - y[:, :, None] * y[:, None, :] * true)
    return y[np.nansum(apart, axis=(1, 2)).argmin()]


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_no_sign_or_edge_of_exact_moments_is_wrong_in_20_confounded_worlds(shift):
    unsigned = stated = 0
    for seed in range(20):
        world = jc.simulate.random_world(
            8, 4, 0.6, 770_000 + seed, intervention=Intervention("hard", shift=shift)
        )
        order = jc.assemble(
            [jc.recover_fragment(client, interventions="hard") for client in world.clients()]
        )
        effects, direct, true = order.effects, order.direct_effects, world.effects(order.labels)
        y = gauge(effects.estimate, true.total, effects.oriented)
        sign, off = np.outer(y, y), ~np.eye(len(y), dtype=bool)
        known = effects.known & off
        assert np.abs(effects.estimate - sign * true.total)[known].max() < 1e-7
        only = ~np.isnan(effects.unsigned)
        assert np.allclose(effects.unsigned[only], np.abs(true.total)[only], atol=1e-7)
        assert only.any() == any("is not determined" in note for note in effects.notes)
        exact = (direct.error == 0) & (direct.carried == 0) & off
        assert np.abs(direct.weight - sign * true.direct)[exact].max(initial=0.0) < 1e-7
        for a, d in np.argwhere(off).tolist():
            verdict = direct.verdict(a, d)
            assert verdict != "direct" or true.direct[a, d] != 0
            assert verdict != "not direct" or abs(true.direct[a, d]) < 1e-7
            stated += verdict == "direct"
        unsigned += int(only.sum())
    assert stated > 60
    assert (unsigned == 0) == (shift == 1.0)


def tables(*clients, p=4):
    value = np.full((len(clients), p, p), np.nan)
    for k, effects in enumerate(clients):
        for (i, j), size in effects.items():
            value[k, i, j], value[k, j, i] = size, 0.0
    here = ~np.isnan(value).all(axis=2)
    return value, np.where(np.isnan(value), np.nan, 0.01), here


def test_clients_that_share_an_effect_determine_each_others_signs():
    value, error, here = tables({(0, 1): 0.5, (1, 2): 0.4, (0, 2): 0.3}, {(0, 1): 0.5, (0, 3): 0.2})
    masks = open_signs(value, error, here, np.zeros_like(here))
    # The second client as a whole may be turned around, which changes no effect.
    assert masks[1, 0] == masks[1, 1] == masks[1, 3]
    assert not masks[0].any()


def test_a_triangle_from_three_clients_leaves_one_sign_open():
    value, error, here = tables({(0, 1): 0.5}, {(1, 2): 0.4}, {(0, 2): 0.3})
    masks = open_signs(value, error, here, np.zeros_like(here))
    pairs = [(0, 0, 1), (1, 1, 2), (2, 0, 2)]
    assert sum(masks[k, i] != masks[k, j] for k, i, j in pairs) == 1
    # A shift of every label at every client closes it.
    assert not open_signs(value, error, here, here).any()
