"""The benchmark of effects, on a few worlds of every part."""

from __future__ import annotations

import importlib
from dataclasses import replace

import pytest


@pytest.fixture
def effects():
    """The benchmark as a module."""
    return importlib.import_module("effects")


def one(effects, part, **changes):
    cell = replace(effects.CELLS[part][0], **changes)
    return effects.run_world(cell, "choose", 0)


def test_exact_moments_give_the_truth(effects):
    found = one(effects, "population")
    assert max(found["latents"], found["total"], found["direct"]) < 1e-8
    assert (found["open"], found["wrong"], found["unread"]) == (0, 0, 0)
    assert found["pairs"] > 50


def test_samples_come_close(effects):
    found = one(effects, "study", latent=8, clients=6)
    scores = effects.EffectScores(**found["effects"])
    assert scores.rms < 0.02
    assert scores.coverage > 0.85
    assert effects.EdgeCounts(**found["visible"]).f1 > 0.9
    assert found["latents"] > 0.99
    assert effects.study_table([found]).count("\n") == 2


def test_soft_interventions_that_are_said_to_be_hard_are_named(effects):
    assert one(effects, "claim", kind="paper", n=10_000)["study"]
    assert not one(effects, "claim", n=10_000)["study"]


def test_liars_seldom_move_an_effect_unseen(effects):
    lies = one(effects, "malice", latent=8, n=5_000)["lies"]
    assert set(lies) == set(importlib.import_module("lies").LIES)
    for told in lies.values():
        assert told["pairs"] > 40
    assert lies["shifted by 1"]["silent"] == 0
