"""Clients without error, and ways to spoil their statements, for the assembly benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from jigsaw_crl import Fragment, PartialOrder
from jigsaw_crl.fragment.fragment import CANNOT_SAY, NO, YES, BayesFactors, Statements
from jigsaw_crl.truth.simulate import World, random_world, world_from_graph
from jigsaw_crl.truth.simulate.perfect import perfect_fragment

KINDS = ("permuted", "reversed", "colluding")


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


def permuted(fragment: Fragment, rng: np.random.Generator) -> Fragment:
    """The labels dealt out anew among the client's own statements."""
    assert fragment.statements is not None
    deal = rng.permutation(len(fragment.labels))
    return plain(fragment, fragment.statements.ancestor[np.ix_(deal, deal)])


def reversed_(fragment: Fragment) -> Fragment:
    """Every ancestor called a descendant."""
    assert fragment.statements is not None
    return plain(fragment, fragment.statements.ancestor.T.copy())


def malicious(
    world: World, fragments: Sequence[Fragment], bad: Sequence[int], kind: str, seed: int
) -> list[Fragment]:
    """The fragments with the clients `bad` spoilt in one of three ways."""
    rng = np.random.default_rng([seed, 77])
    out = list(fragments)
    fake: PartialOrder[str] | None = None
    if kind == "colluding":
        other = random_world(world.n_latent, 1, 1.0, seed=seed + 100_000)
        deal = rng.permutation(world.n_latent)
        names = {other.labels[i]: world.labels[deal[i]] for i in range(world.n_latent)}
        fake = other.order.relabel(names.__getitem__)
    for k in bad:
        fragment = plain(out[k], out[k].statements.ancestor)  # type: ignore[union-attr]
        if kind == "permuted":
            out[k] = permuted(fragment, rng)
        elif kind == "reversed":
            out[k] = reversed_(fragment)
        else:
            assert fake is not None
            out[k] = plain(fragment, fake.restrict(fragment.labels).matrix.astype(np.int8))
    return out


def perfect(world: World) -> list[Fragment]:
    """What clients without error say."""
    return [perfect_fragment(world.truth(k)) for k in range(world.n_clients)]


def large_world(labels: int, clients: int, size: int, rng: np.random.Generator) -> World:
    """A sparse world with clients that access `size` labels each."""
    present = np.triu(rng.random((labels, labels)) < 3 / labels, 1)
    sets = [sorted(rng.choice(labels, size=size, replace=False).tolist()) for _ in range(clients)]
    return world_from_graph(present.T, sets, [size] * clients, seed=0)
