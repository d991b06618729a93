"""Random small clients, for property tests."""

from dataclasses import replace
from itertools import permutations

import numpy as np
from hypothesis import strategies as st

from jigsaw_crl.base.order import transitive_closure
from jigsaw_crl.fragment.fragment import Statements

from .clients import lab, weighs

LABELS = "abcd"


@st.composite
def true_labs(draw):
    """One to three clients that state true facts about one random order of four labels."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shuffle = rng.permutation(len(LABELS))
    truth = transitive_closure(np.triu(rng.random((4, 4)) < 0.4, 1))[np.ix_(shuffle, shuffle)]
    return [_lab(name, rng, truth) for name in _names(draw)]


@st.composite
def any_labs(draw):
    """One to three clients whose statements may contradict each other."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return [_lab(name, rng, rng.random((4, 4)) < 0.4) for name in _names(draw)]


@st.composite
def sampled_labs(draw):
    """One to three clients with random Bayes factors of every kind."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return [_sampled_lab(name, rng) for name in _names(draw)]


def labs():
    """Clients of any of these kinds."""
    return st.one_of(true_labs(), any_labs(), sampled_labs())


def reordered(fragment, rng):
    """The same fragment with its labels, blocks and districts listed in another order."""
    deal = rng.permutation(len(fragment.labels))
    grid = np.ix_(deal, deal)
    bayes, stated, blocks = fragment.bayes, fragment.statements, fragment.block_order
    if bayes is not None:
        bayes = replace(
            bayes,
            ancestor=np.stack([x[grid] for x in bayes.ancestor]),
            district=bayes.district[grid],
            lean=bayes.lean[grid],
            single=tuple(bayes.single[i] for i in deal),
        )
    if stated is not None:
        stated = Statements(stated.ancestor[grid], stated.one_of[::-1], stated.spouses)
    listed = tuple(blocks.elements[i] for i in rng.permutation(len(blocks.elements)))
    return replace(
        fragment,
        labels=tuple(fragment.labels[i] for i in deal),
        blocks=listed,
        block_order=blocks.restrict(listed),
        districts=None if fragment.districts is None else fragment.districts[::-1],
        bayes=bayes,
        statements=stated,
    )


def assert_same(one, other):
    """Everything that the two orders say is equal."""
    assert (one.labels, one.mode, one.notes) == (other.labels, other.mode, other.notes)
    assert (one.options, one.convergence) == (other.options, other.convergence)
    assert one.client_weights == other.client_weights
    for name in ("verdicts", "why", "decoded", "probabilities"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_array_equal(one.table.evidence, other.table.evidence)
    assert one.to_frame().equals(other.to_frame())


def _names(draw):
    return [f"lab-{k}" for k in range(draw(st.integers(1, 3)))]


def _some_labels(rng):
    return [LABELS[i] for i in sorted(rng.permutation(4)[: rng.integers(2, 5)])]


def _lab(name, rng, truth):
    labels = _some_labels(rng)
    yes, no, one_of = [], [], []
    for a, d in permutations(labels, 2):
        if rng.random() < 0.4:
            (yes if truth[LABELS.index(a), LABELS.index(d)] else no).append((a, d))
    for d in labels:
        above = [a for a in labels if a != d and truth[LABELS.index(a), LABELS.index(d)]]
        if above and rng.random() < 0.5:
            others = [a for a in labels if a != d and a not in above and rng.random() < 0.5]
            one_of.append(([above[0], *others], d))
    return lab(name, labels, yes=yes, no=no, one_of=one_of)


def _sampled_lab(name, rng):
    labels = tuple(_some_labels(rng))
    p = len(labels)
    district, lean = rng.normal(-3.0, 3.0, size=(p, p)), rng.normal(size=(p, p))
    return weighs(
        name,
        labels,
        rng.normal(scale=4.0, size=(2, p, p)),
        district + district.T,
        lean=lean + lean.T,
        single=tuple(bool(x) for x in rng.random(p) < 0.3),
    )
