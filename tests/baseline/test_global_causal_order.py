"""Algorithm 3: what is joined, what is left out, and that it equals the literal version."""

import numpy as np
from hypothesis import given

import jigsaw_crl as jc
from jigsaw_crl import baseline
from jigsaw_crl.baseline import literal

from .clients import SEEDS


def fragment(client, blocks, *pairs):
    """A fragment from blocks written as strings of one-letter labels."""
    sets = {b: frozenset(b) for b in blocks}
    order = jc.PartialOrder.from_pairs(sets.values(), [(sets[a], sets[d]) for a, d in pairs])
    return jc.Fragment(client, "paper", tuple("".join(blocks)), tuple(sets.values()), order)


def random_fragment(client, rng):
    """Some of eight labels in random blocks with a random order."""
    labels = rng.permutation(list("abcdefgh"))[: rng.integers(2, 9)].tolist()
    cuts = np.flatnonzero(rng.random(len(labels) - 1) < 0.7) + 1
    blocks = ["".join(part) for part in np.split(np.array(labels), cuts)]
    pairs = [(a, d) for i, a in enumerate(blocks) for d in blocks[i + 1 :] if rng.random() < 0.4]
    return fragment(client, blocks, *pairs)


@given(SEEDS)
def test_pairs_equal_those_of_the_literal_algorithm(seed):
    rng = np.random.default_rng(seed)
    given_fragments = [random_fragment(f"client-{k}", rng) for k in range(rng.integers(1, 5))]

    def as_printed(part):
        blocks = [tuple(sorted(b)) for b in part.blocks]
        above = {(tuple(sorted(d)), tuple(sorted(a))) for a, d in part.block_order.pairs()}
        return blocks, above

    literally = literal.id_global_causal_order(map(as_printed, given_fragments))
    ours = baseline.assemble_pairs(given_fragments)
    assert ours.pairs == {(j, i) for i, j in literally if i != j}
    assert bool(ours.cyclic) == any(i == j for i, j in literally)
