"""What each kind of intervention does to the system and to a client's population moments."""

import numpy as np
import pytest

from jigsaw_crl.truth.simulate import INTERVENTIONS, Intervention, random_world, setting

PROTOCOLS = sorted(INTERVENTIONS)


def affected(world):
    """A label whose target has parents, and a client that accesses it."""
    label = next(x for x in world.labels if (world.sem.A[world.node(x)] != 0).any())
    k = next(k for k in range(world.n_clients) if label in world.truth(k).labels)
    return k, label


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_every_protocol_changes_its_target_as_described(kind):
    world = setting("C", seed=1, intervention=kind)
    k, label = affected(world)
    node, before = world.node(label), world.sem
    after = before.changed(world.change(k, label))
    others = np.delete(np.arange(world.n_latent), node)
    assert np.array_equal(after.A[others], before.A[others])
    assert np.array_equal(after.variances[others], before.variances[others])
    parents = before.A[node] != 0
    assert not after.A[node, ~parents].any()
    moved, kept = (
        f(after.A[node, parents], before.A[node, parents]) for f in (np.subtract, np.divide)
    )
    noise, mean, spread = after.variances[node], after.means[node], before.covariance()[node, node]
    (low, high), effects = world.intervention.range, after.total_effects()
    fall = (effects @ after.means)[node] / np.sqrt(spread)

    def drawn(x):
        return bool(((x >= low) & (x <= high)).all())

    is_so = {
        **dict.fromkeys(
            ("paper", "weak", "strong"), drawn(moved) and drawn(noise - 1) and not mean
        ),
        "shrink": np.allclose(kept, 0.5) and noise == 0.25,
        "mild": drawn(kept) and noise == 1,
        "knock-down": np.allclose(
            [after.covariance()[node, node] / spread, fall], [0.5, -(0.5**0.5)]
        ),
        "hard": not kept.any() and 0.25 <= noise <= 4,
        "set": not kept.any() and np.isclose(noise, 0.49 * spread),
        "hard-keep": not kept.any() and noise == 1,
        "hard-replace": not kept.any() and noise >= 3,
        "noise-only": not moved.any() and noise > 1 and mean == 0,
        "mean-only": not moved.any() and noise == 1 and mean > 0,
        "mean-noise": not moved.any() and noise > 1 and mean > 0,
    }
    assert is_so[kind]


def test_penetrance_mixes_the_moments_of_the_control_and_of_the_intervention():
    whole, part = (
        random_world(6, 1, 1.0, seed=4, intervention=Intervention("hard", shift=2, penetrance=x))
        for x in (1.0, 0.25)
    )
    control = whole.client(0).control
    for label in whole.labels:
        acting = whole.client(0).interventions[label][0]
        mixed = part.client(0).interventions[label][0]
        gap = acting.mean - control.mean
        assert np.allclose(mixed.mean - control.mean, 0.25 * gap)
        expected = 0.25 * acting.covariance + 0.75 * control.covariance
        assert np.allclose(mixed.covariance, expected + 0.25 * 0.75 * np.outer(gap, gap))


def test_the_off_target_share_of_interventions_hits_a_second_latent():
    world = random_world(20, 5, 0.8, seed=1, intervention=Intervention("hard", off_target=0.3))
    pairs = [(k, label) for k in range(5) for label in world.truth(k).labels]
    seconds = [world.off_target(k, label) for k, label in pairs]
    hit = [s is not None for s in seconds]
    assert 0.15 < np.mean(hit) < 0.45
    assert all(s.target != world.node(x) for s, (_, x) in zip(seconds, pairs, strict=True) if s)
    for (k, label), second in zip(pairs[:16], seconds[:16], strict=True):
        client = world.client(k)
        change = client.interventions[label][0].covariance - client.control.covariance
        rank = np.linalg.matrix_rank(change, tol=1e-9)
        assert rank <= 2 or (second is not None and rank <= 4)
