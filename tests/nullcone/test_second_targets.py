"""Regimes that act on a second target, whose line another regime shows."""

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.evidence.hypotheses import HYPOTHESES
from jigsaw_crl.nullcone.recovery import Recovery

from .readings import read, true_lines

MANY = 10**6


def unclean(seed, *, off_target=0.4, strength=0.3, kind="paper", **changes):
    """A world with eight latents, one client that sees all, and some unclean interventions."""
    protocol = jc.simulate.Intervention.named(
        kind, off_target=off_target, off_target_strength=strength, **changes
    )
    return jc.simulate.random_world(8, 1, 1.0, seed, intervention=protocol)


def nearly_exact(world, labels=None, n=MANY):
    """The exact moments of a client, as if estimated from many rows."""
    exact = world.client(0, labels=labels)
    return jc.Client.from_covariances(
        exact.name,
        observational=exact.control_second_moment,
        interventions={x: exact.second_moments(x)[0] for x in exact.labels},
        n_samples=n,
        n_latent=world.n_latent,
    )


def second_of(world, label):
    """The name of the second target; None without one."""
    change = world.off_target(0, label)
    return None if change is None else world.names[change.target]


@pytest.mark.parametrize("strength", [0.1, 0.3, 1.0])
def test_with_many_rows_second_targets_are_named_and_the_lines_are_right_without_them(strength):
    regimes, named, lines = 0, list[bool](), list[bool]()
    for seed in range(16):
        world = unclean(91_000 + seed, strength=strength)
        client = nearly_exact(world)
        reading = read(client)
        q = true_lines(world.truth(0), client.labels, reading.targets.white.W)
        regimes += sum(second_of(world, x) is not None for x in client.labels)
        second = reading.sight.second
        for r in np.flatnonzero(second.found):
            other = client.labels[reading.owner[second.regime[r]]]
            named.append(other == second_of(world, client.labels[r]))
            lines.append(abs(reading.targets.u[r, reading.choice.reading[r]] @ q[r]) > 0.99)
    assert len(named) > 0.3 * regimes
    assert sum(named) >= len(named) - 1
    # Which of a target's two lines is its own is wrong in 2 % of clean regimes too.
    assert sum(lines) > 0.85 * len(lines)


def test_nothing_is_said_about_a_target_and_its_second_one_which_needs_a_regime_of_its_own():
    world = unclean(91_000)
    client = nearly_exact(world)
    recovery = Recovery.of(client)
    told = {u.label: u.other for u in recovery.unread if u.check == "off-target"}
    fragment = recovery.fragment()
    for label, other in told.items():
        i, j = fragment.index(label), fragment.index(other)
        assert np.isnan(fragment.bayes.ancestor[:, [i, j], [j, i]]).all()
    label, other = next(iter(told.items()))
    without = Recovery.of(nearly_exact(world, [x for x in client.labels if x != other]))
    assert {u.label: u.check for u in without.unread}[label] == "several-targets"
    refused = without.fragment()
    assert refused.outcome.code == "partial"
    assert label in refused.outcome.message
    assert np.isnan(refused.evidence[refused.index(label)]).all()


def test_an_intervention_with_a_second_target_counts_as_soft():
    world = unclean(91_300, kind="hard-replace", shift=1.0)
    client = nearly_exact(world)
    hard = np.ones(len(client.labels), dtype=bool)
    reading = read(client, hypotheses=HYPOTHESES, hard=hard)
    second = reading.owner[reading.sight.second.found]
    assert len(second)
    assert not reading.hard[second].any()


def test_findings_name_the_second_target_and_have_the_number_that_was_measured():
    names, values = {"off-target", "several-targets", "unclear-regime"}, []
    for seed in range(3):
        world = unclean(seed, strength=1.0)
        client = world.client(0, 10_000, seed=seed)
        third = Recovery.of(client).reading.sight.judged.third.tolist()
        of_label = dict(zip(client.labels, third, strict=True))
        for f in jc.recover_fragment(client).findings:
            if f.check in names:
                values.append(f.value)
                assert f.value == pytest.approx(of_label[f.regime], abs=1e-3)
            if f.check == "off-target":
                assert repr(second_of(world, f.regime)) in f.message
                assert f.severity == "warning"
    assert max(values) > 3
