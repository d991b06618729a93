"""Each statement of docs/theory.md, checked on random worlds with exact moments."""

import itertools
from functools import cache

import numpy as np

import jigsaw_crl as jc
from jigsaw_crl.base.order import strongly_connected, transitive_closure
from jigsaw_crl.client.white import whiten
from jigsaw_crl.nullcone.exact import exact_readings
from jigsaw_crl.nullcone.judge import judge

from .readings import read, relations, true_lines

WORLDS = [(p, seed) for p in (6, 12, 20) for seed in range(4)]
# Exact moments carry rounding only; zeros were measured at 1e-14 to 1e-12, signals from 1e-5 up.
ZERO = 1e-9


def cases():
    for p, seed in WORLDS:
        world = jc.simulate.random_world(p, 3, 0.6, seed=41_000 + 100 * p + seed)
        for k in range(world.n_clients):
            yield world, k


@cache
def read_cases():
    """What `both_lines` gives for every case."""
    return [both_lines(world, k) for world, k in cases()]


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def both_lines(world, k):
    """The true q, and q and c as the method finds them, the choice taken from the truth."""
    truth, white = world.truth(k), whiten(world.client(k))
    q = true_lines(truth, truth.labels, white.W)
    found, _ = exact_readings(white, judge(white))
    pick = np.abs(np.einsum("rsp,rp->rs", found.u[:, :2], q)).argmax(axis=1)
    rows = np.arange(len(q))
    return truth, found, q, found.u[rows, pick], found.u[rows, 1 - pick]


def test_t1_a_null_line_is_the_targets_own_and_the_only_one_without_ancestor_and_spouse():
    for truth, lines, q, found, _ in read_cases():
        assert np.abs(np.einsum("rp,rp->r", found, q)).min() > 1 - ZERO
        same, ancestor = relations(truth, truth.labels)
        alone = (same.sum(axis=0) == 1) & ~ancestor.any(axis=0)
        assert (lines.single == alone).all()


def test_t1_an_intervention_that_lowers_the_variance_gives_a_negative_rank_one_change():
    world = jc.simulate.random_world(8, 3, 0.6, seed=5, intervention="shrink")
    found = [both_lines(world, k)[1] for k in range(3)]
    lam = np.concatenate([x.lam[x.single, 0] for x in found])
    assert len(lam)
    assert (lam < 0).all()


def test_t2_t3_across_districts_a_line_meets_no_line_and_the_c_of_descendants_alone():
    for truth, lines, q, _, c in read_cases():
        same, ancestor = relations(truth, truth.labels)
        assert np.abs(q @ q.T)[~same].max(initial=0.0) < ZERO
        two = ~lines.single
        meets = np.abs(q @ unit(np.where(two[:, None], c, 1.0)).T)
        across = ~same & two[None, :]
        assert meets[across & ~ancestor].max(initial=0.0) < ZERO
        assert meets[across & ancestor].min(initial=1.0) > ZERO


def test_t4_generic_vectors_of_the_planes_give_the_blocks_by_one_solve():
    rng = np.random.default_rng(0)
    for truth, lines, _, q, c in read_cases():
        c = np.where(lines.single[:, None], 0.0, c)
        mix = rng.normal(size=(2, len(q), 2))
        W, other = (m[:, :1] * q + m[:, 1:] * c for m in mix)
        support = np.linalg.solve(W.T, other.T).T  # other = C W
        reach = transitive_closure(np.abs(support) > 1e-8 * np.abs(support).max())
        found = {frozenset(truth.labels[i] for i in b) for b in strongly_connected(reach)}
        assert found == set(truth.blocks)
        for a, d in itertools.permutations(truth.blocks, 2):
            i, j = truth.labels.index(min(a)), truth.labels.index(min(d))
            assert reach[j, i] == truth.block_order.is_ancestor(a, d)


def test_t5_the_choice_of_lines_leaves_what_is_said_across_districts_true():
    for world, k in cases():
        reading, truth = read(world.client(k)), world.truth(k)
        same, ancestor = relations(truth, truth.labels)
        factors, where = reading.factors, reading.hypotheses.where
        mean, district = factors[where("ancestor")].max(axis=0), factors[where("district")][0]
        across = ~same & ~np.isnan(mean)
        best_other = np.maximum(np.maximum(mean.T, district), 0.0)
        assert (mean[across & ancestor] > best_other[across & ancestor] + 10).all()
        unrelated = across & ~ancestor & ~ancestor.T
        assert (best_other[unrelated] == 0.0).all()
        assert (mean[unrelated] < -10).all()


def test_t6_the_inverse_gram_matrix_of_a_district_has_the_bidirected_edges():
    for truth, _, _, q, _ in read_cases():
        for district in truth.districts:
            members = [truth.labels.index(x) for x in sorted(district)]
            inverse = np.linalg.inv(q[members] @ q[members].T)
            size = np.abs(inverse) / np.sqrt(np.outer(np.diag(inverse), np.diag(inverse)))
            for a, b in itertools.combinations(range(len(members)), 2):
                pair = frozenset((truth.labels[members[a]], truth.labels[members[b]]))
                assert (size[a, b] > ZERO) == (pair in truth.spouses)


def test_inside_a_clique_district_reversing_the_order_can_leave_every_moment_unchanged():
    # h is hidden and causes 1 and 2. World M has 1 → 2, world M' has 2 → 1 and another mixing.
    w1, w2, a, b = 0.8, -0.6, 0.7, 0.5
    noise = np.array([1.0, 1.0, 1.0])
    M = np.array([[0.0, 0.0, 0.0], [w1, 0.0, 0.0], [w2, a, 0.0]])
    reversed_M = np.array([[0.0, 0.0, 0.0], [w1, 0.0, b], [w2, 0.0, 0.0]])
    G = np.array([[1.0, 0.3], [-0.4, 1.0], [0.5, 0.8]])
    reversed_G = G @ np.array([[1.0, -b], [a, 1 - a * b]])

    def features(A, variances, mixing):
        effects = np.linalg.inv(np.eye(3) - A)
        return mixing @ ((effects * variances) @ effects.T)[1:, 1:] @ mixing.T

    np.testing.assert_allclose(
        features(reversed_M, noise, reversed_G), features(M, noise, G), atol=1e-13
    )
    total_1, total_2 = 1 + w1**2, 1 + w2**2  # variances of E_1 and E_2, own and hidden part
    strength, extra = 2.5, 1.7
    # The intervention on 1 (in M only h is its parent), then that on 2 (in M: h and 1).
    for target, change, answer in (
        (1, {0: strength}, {0: strength - extra * total_2 / w2, 2: extra}),
        (2, {0: strength, 1: extra}, {0: strength + extra * total_1 / w1}),
    ):
        plain, reverse = M.copy(), reversed_M.copy()
        for parent, delta in change.items():
            plain[target, parent] += delta
        for parent, delta in answer.items():
            reverse[target, parent] += delta
        wanted = features(plain, noise + 40.0 * (np.arange(3) == target), G)
        # The two differ along the target's own effect only, which its noise variance makes up for.
        gap = wanted - features(reverse, noise, reversed_G)
        own = reversed_G @ np.linalg.inv(np.eye(3) - reversed_M)[1:, target]
        variance = own @ gap @ own / (own @ own) ** 2
        assert variance > -1.0
        np.testing.assert_allclose(gap, variance * np.outer(own, own), atol=1e-12)
