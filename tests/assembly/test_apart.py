"""A fifth of the sites sends wrong effects: they are named, and the effects of the others stay."""

from dataclasses import replace

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.assembly.conclusion import conclude
from jigsaw_crl.assembly.effects import labels_not_hard, pool_effects, sites_apart
from jigsaw_crl.truth.simulate import Intervention

from .clients import with_totals
from .test_effects import used

SEEDS = (760_001, 760_002)


@pytest.fixture(scope="module")
def studies():
    out = {}
    for seed in SEEDS:
        world = jc.simulate.random_world(
            14, 10, 0.6, seed, intervention=Intervention("hard", shift=1.0)
        )
        clients = world.clients(n_samples=10_000)
        out[seed] = [jc.recover_fragment(client, interventions="hard") for client in clients]
    return out


def lie(fragment, kind, rng):
    value, error = fragment.hard.total.value, fragment.hard.total.error
    order, signs = rng.permutation(len(value)), rng.choice([-1.0, 1.0], value.shape)
    grid = np.ix_(order, order)
    lies = {
        "permuted": (value[grid], error[grid]),
        "inverted": (-value, error),
        "inflated": (3.0 * value, error),
        "shifted": (value + signs, error),
        "sure": (value + 0.2 * signs, error / 100),
        "nudged": (value + 4.0 * error, error),
    }
    return with_totals(fragment, *lies[kind])


@pytest.mark.parametrize("seed", SEEDS)
def test_honest_sites_are_not_set_aside(studies, seed):
    honest = pool_effects(*used(studies[seed]))
    assert honest.apart == {}
    assert labels_not_hard(honest) == {}
    # Interventions on one label shift it the same way at all sites, or the noise turned it.
    assert not any("the other way" in note for note in honest.notes)


@pytest.mark.parametrize("kind", ["inflated", "permuted", "inverted", "shifted", "sure", "nudged"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_fifth_of_liars_moves_no_effect_without_a_note(studies, seed, kind):
    fragments, rng = studies[seed], np.random.default_rng(seed)
    bad = set(rng.choice(len(fragments), 2, replace=False).tolist())
    sent = [lie(f, kind, rng) if k in bad else f for k, f in enumerate(fragments)]
    liars = {fragments[k].client for k in bad}
    honest = pool_effects(*used(fragments))
    pooled = pool_effects(*used(sent))
    doubted = labels_not_hard(pooled)
    panel, use = used(sent)
    after = pool_effects(panel, replace(use, soft=frozenset(doubted)))
    known = honest.known & ~np.eye(len(honest.labels), dtype=bool)
    # Pairs that only liars have cannot stay.
    assert (after.known & known).sum() >= 0.85 * known.sum()
    moved = known & (np.abs(after.estimate - honest.estimate) > 2 * honest.error)
    marked = after.set_aside.any(axis=0) | (after.heterogeneity < 0.01)
    if kind == "inverted":
        # Most of the wrong signs look like interventions that went the other way: notes name them.
        named = {
            label
            for label in honest.labels
            if any(f"the intervention on {label} seems" in note for note in after.notes)
        }
        turned = np.array([label in named for label in honest.labels])
        marked = marked | turned[:, None] | turned
    else:
        assert set(pooled.apart) == liars
        assert all(any(client in note for note in pooled.notes) for client in liars)
    assert not (moved & ~marked).any()


def test_sites_that_all_differ_and_two_sites_blame_nobody():
    value = np.random.default_rng(3).normal(size=(9, 8, 8))
    assert not sites_apart(value, np.full(value.shape, 0.01))
    assert not sites_apart(value[:2], np.full(value[:2].shape, 0.01))


def test_a_result_names_the_site_whose_effects_stand_apart(studies):
    fragments = studies[SEEDS[0]]
    sent = [
        lie(f, "shifted", np.random.default_rng(0)) if k == 2 else f
        for k, f in enumerate(fragments)
    ]
    found = [f.client for f in conclude(sent).findings if f.check == "effects-apart"]
    assert found == [fragments[2].client]
