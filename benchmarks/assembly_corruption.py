"""Clients without error, and ways to spoil their statements, for the benchmark of assembly."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jigsaw_crl import Fragment
from jigsaw_crl.fragment.fragment import CANNOT_SAY, NO, YES, BayesFactors, Statements
from jigsaw_crl.truth.simulate import World, world_from_graph

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from assembly.perfect import perfect_fragment


def plain(fragment: Fragment, ancestor: npt.NDArray[np.int8]) -> Fragment:
    """The fragment with other statements, and without sets or spouses, which no longer fit."""
    return replace(fragment, statements=Statements(ancestor))


def flipped(fragment: Fragment, rate: float, rng: np.random.Generator) -> Fragment:
    """Every statement turned into its opposite with probability `rate`, and not marked as such."""
    assert fragment.statements is not None
    said = fragment.statements.ancestor.copy()
    turn = (rng.random(said.shape) < rate) & (said != CANNOT_SAY) & ~np.eye(len(said), dtype=bool)
    said[turn] = np.where(said[turn] == YES, NO, YES)
    return plain(fragment, said)


def weighed(fragment: Fragment, rate: float) -> Fragment:
    """The statements as log Bayes factors that the error rate implies."""
    assert fragment.statements is not None
    said = fragment.statements.ancestor
    strength = np.log((1 - rate) / rate)
    odds = np.where(said == YES, strength, -strength)
    odds = np.where((said == CANNOT_SAY) | np.eye(len(said), dtype=bool), np.nan, odds)
    apart = np.where(np.isnan(odds) & np.isnan(odds.T), np.nan, -30.0)
    return replace(
        fragment,
        statements=None,
        bayes=BayesFactors((0.5, 0.05), np.stack([odds, odds]), apart),
        n_samples={"control": 1000},
    )


def perfect(world: World) -> list[Fragment]:
    """What clients without error say."""
    return [perfect_fragment(world.truth(k)) for k in range(world.n_clients)]


def large_world(labels: int, clients: int, size: int, rng: np.random.Generator) -> World:
    """A sparse world with clients that access `size` labels each."""
    present = np.triu(rng.random((labels, labels)) < 3 / labels, 1)
    sets = [sorted(rng.choice(labels, size=size, replace=False).tolist()) for _ in range(clients)]
    return world_from_graph(present.T, sets, [size] * clients, seed=0)
