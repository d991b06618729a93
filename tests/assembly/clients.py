"""Small fragments for the assembly tests."""

from dataclasses import replace

import numpy as np

from jigsaw_crl import Fragment, PartialOrder
from jigsaw_crl.evidence.effects import Sizes
from jigsaw_crl.fragment.fragment import CANNOT_SAY, NO, YES, BayesFactors, Statements
from jigsaw_crl.nullcone import Recovery
from jigsaw_crl.truth.simulate import random_world


def lab(name, labels, *, yes=(), no=(), one_of=()):
    """A client that states exactly these pairs; labels of its open pairs share a district."""
    position = {label: i for i, label in enumerate(labels)}
    said = np.full((len(labels), len(labels)), CANNOT_SAY, dtype=np.int8)
    np.fill_diagonal(said, NO)
    for pairs, value in ((yes, YES), (no, NO)):
        for a, d in pairs:
            said[position[a], position[d]] = value
    together = PartialOrder.from_pairs([frozenset(labels)], [])
    return Fragment(
        name,
        "null-cone",
        tuple(labels),
        together.elements,
        together,
        together.elements,
        statements=Statements(said, tuple((frozenset(c), d) for c, d in one_of)),
    )


def weighs(name, labels, ancestor, district, *, rank_one=None, **factors):
    """A client that says these log Bayes factors; every label is a block of its own."""
    blocks = tuple(frozenset([x]) for x in labels)
    said = np.array(ancestor, dtype=float)
    return Fragment(
        name,
        "null-cone",
        tuple(labels),
        blocks,
        PartialOrder.from_pairs(blocks, []),
        blocks,
        bayes=BayesFactors((0.5, 0.05)[: len(said)], said, np.array(district, float), **factors),
        rank_one=rank_one,
    )


def with_totals(fragment, value, error=None):
    """The fragment with other sizes of total effects, with their own errors if none are given."""
    total = Sizes(value, fragment.hard.total.error if error is None else error)
    return replace(fragment, hard=replace(fragment.hard, total=total))


def perfect(world):
    """What exact moments tell: `tests/nullcone` shows that all of it is true."""
    return [Recovery.of(client).fragment() for client in world.clients()]


def small_world(seed, n_latent=12, n_clients=4):
    return random_world(n_latent, n_clients, 0.6, seed=seed)


def flipped(fragment, rate, rng):
    """Each statement negated with probability `rate`; disjunctions and spouses left out."""
    assert fragment.statements is not None
    said = fragment.statements.ancestor.copy()
    turn = (rng.random(said.shape) < rate) & (said != CANNOT_SAY) & ~np.eye(len(said), dtype=bool)
    said[turn] = 1 - said[turn]
    return replace(fragment, statements=Statements(said))


def weighed(fragment, rate):
    """The statements as log Bayes factors for an error rate."""
    assert fragment.statements is not None
    said = fragment.statements.ancestor
    odds = np.where(said == YES, 1.0, -1.0) * np.log((1 - rate) / rate)
    odds = np.where((said == CANNOT_SAY) | np.eye(len(said), dtype=bool), np.nan, odds)
    apart = np.where(np.isnan(odds) & np.isnan(odds.T), np.nan, -30.0)
    bayes = BayesFactors((0.5, 0.05), np.stack([odds, odds]), apart)
    return replace(fragment, statements=None, bayes=bayes, n_samples={"control": 1000})


def noisy(world, rate, seed=0):
    rng = np.random.default_rng(seed)
    return [weighed(flipped(f, rate, rng), rate) for f in perfect(world)]
