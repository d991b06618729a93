"""The choice of readings: its optimum, and how sure it is."""

from itertools import product

import numpy as np

from jigsaw_crl.nullcone.choice import choose_readings
from jigsaw_crl.nullcone.readings import IMPOSSIBLE


def random_pairs(seed, r=5, s=3):
    rng = np.random.default_rng(seed)
    F = np.zeros((r, r, s, s))
    for i, j in zip(*np.triu_indices(r, 1), strict=True):
        F[i, j] = 5 * rng.normal(size=(s, s))
        F[j, i] = F[i, j].T
    own = np.where(rng.random((r, s)) < 0.2, IMPOSSIBLE, rng.normal(size=(r, s)))
    own[:, 0] = 0.0
    return F, own


def value(F, own, choice):
    r = len(own)
    return sum(own[i, choice[i]] for i in range(r)) + sum(
        F[i, j, choice[i], choice[j]] for i in range(r) for j in range(i)
    )


def test_two_lines_that_may_be_exchanged_together_are_not_sure():
    F = np.zeros((2, 2, 2, 2))
    F[0, 1] = [[5.0, -50.0], [-50.0, 4.5]]
    F[1, 0] = F[0, 1].T
    choice = choose_readings(F, np.zeros((2, 2)))
    assert choice.reading.tolist() == [0, 0]
    assert np.allclose(choice.margin, 0.5)


def test_the_choice_is_the_best_of_all_and_the_margin_mostly_its_lead():
    best, sure = 0, 0
    for seed in range(40):
        F, own = random_pairs(seed)
        choice = choose_readings(F, own)
        every = {c: value(F, own, c) for c in product(range(3), repeat=len(own))}
        reached = value(F, own, choice.reading)
        best += np.isclose(reached, max(every.values()))
        for i, m in enumerate(choice.margin):
            lead = reached - max(v for c, v in every.items() if c[i] != choice.reading[i])
            sure += bool(m <= lead + 1e-6)
    assert best >= 36
    # Of 400 other worlds 85 %; sets of 40 spread by 2.3 %, and the limit is four of these below.
    assert sure >= 0.76 * 40 * 5
