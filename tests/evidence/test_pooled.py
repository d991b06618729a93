"""Evidence of several clients adds up, in any order, and doubts about a target count once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.evidence.pooled import Pooled
from jigsaw_crl.evidence.priors import HIDDEN_SHARE, MISSED


def random_factors(rng, p, n_scales=2):
    district = rng.normal(size=(p, p)) * 3
    district += district.T
    lean = rng.normal(size=(p, p))
    ancestor = rng.normal(size=(n_scales, p, p)) * 4
    ancestor[:, rng.random((p, p)) < 0.2] = np.nan
    single = tuple((rng.random(p) < 0.4).tolist())
    settled = rng.random((p, p)) < 0.3
    scales = tuple(range(n_scales))
    return BayesFactors(scales, ancestor, district, lean + lean.T, single, settled)


def assert_same(one, other, tolerance=0.0):
    for name in one.__dataclass_fields__:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=tolerance)
    shares = (0.5, 0.3, 0.2)
    for arguments in ((), (shares, 0.3)):
        a, b = one.log_factor(*arguments), other.log_factor(*arguments)
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(1, 5))
def test_a_sum_is_the_same_in_any_order_and_without_what_was_added_and_taken_off(seed, p, n):
    rng = np.random.default_rng(seed)
    parts = [(w, np.arange(p), random_factors(rng, p).averaged()) for w in rng.random(n)]
    total = Pooled.sum(2, p, parts)
    assert_same(total, Pooled.sum(2, p, parts[::-1]), 1e-10)
    assert_same(total.minus(parts[:1]), Pooled.sum(2, p, parts[1:]), 1e-10)


@given(st.integers(0, 10_000), st.permutations(range(5)))
def test_every_field_of_the_evidence_follows_the_labels(seed, order):
    factors = random_factors(np.random.default_rng(seed), 5)
    index = np.array(order)
    grid = np.ix_(index, index)
    permuted = BayesFactors(
        factors.scales,
        factors.ancestor[:, index[:, None], index[None, :]],
        factors.district[grid],
        factors.lean[grid],
        tuple(factors.single[i] for i in order),
        factors.settled[grid],
    )
    for name in BayesFactors.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(factors.at(index), name), getattr(permuted, name))
    np.testing.assert_array_equal(permuted.log_factor, factors.log_factor[grid])
    np.testing.assert_array_equal(permuted.district_log_factor, factors.district_log_factor[grid])
    np.testing.assert_array_equal(permuted.summary(), factors.summary()[grid])
    np.testing.assert_allclose(permuted.joint()[1], factors.joint()[1][grid])
    assert_same(Pooled.sum(2, 5, [(1.0, index, permuted.averaged())]), factors.averaged(), 1e-12)


def test_a_district_pulls_the_odds_towards_zero_by_the_stated_formula():
    ancestor, district = 5.0, 2.0
    p = np.zeros((2, 2))
    p[0, 1] = ancestor
    d = np.array([[0.0, district], [district, 0.0]])
    factors = BayesFactors((0.5,), p[None], d)
    share = 0.2
    evidence = factors.averaged(np.full((2, 2), np.log(share)))
    open_ = share * np.exp(district)
    wanted = np.log(((1 - share) * np.exp(ancestor) + open_) / (1 - share + open_))
    assert evidence.log_factor()[0, 1] == pytest.approx(wanted)
    assert evidence.n_clients.tolist() == [[0, 1], [1, 0]]


def test_a_line_that_leans_at_one_client_excuses_no_other():
    """Where other clients saw two directions of a target, one that saw one missed it there."""
    no = np.full((1, 2, 2), -6.0)
    district, lean = np.full((2, 2), -30.0), np.full((2, 2), 9.0)
    log_open, missed = np.full((2, 2), np.log(1e-6)), np.array([False, True])
    leaning = BayesFactors((0.5,), no, district, lean, (False, True))
    straight = BayesFactors((0.5,), no, district, single=(True, False))
    others = [straight.averaged(log_open)] * 3
    shares, leans = (1.0, 0.0), 0.01

    def pooled(*parts):
        summed = Pooled.sum(1, 2, ((1.0, np.arange(2), one) for one in parts))
        return summed.log_factor(shares, leans)[0, 1]

    alone = pooled(*others)
    # It says about nothing itself, and takes nothing from what the others say.
    assert pooled(*others, leaning.averaged(log_open, missed)) == pytest.approx(alone, abs=0.1)
    # If the line leaned at all clients, the others would be excused.
    assert pooled(*others, leaning.averaged(log_open)) > alone + 3


@pytest.mark.parametrize("clear", [0.0, 3.0, 300.0])
def test_a_hidden_cause_without_an_effect_is_no_evidence_for_an_ancestor(clear):
    # With hard interventions, ancestors may be joined by a hidden cause as well. If the effect
    # itself says nothing, all that the pair shows is the hidden cause, however clear it is.
    p = 3
    district = np.full((p, p), clear)
    ancestor = np.logaddexp(np.log1p(-HIDDEN_SHARE), np.log(HIDDEN_SHARE) + clear)
    factors = BayesFactors(
        (0.5,), np.full((1, p, p), ancestor), district, settled=~np.eye(p, dtype=bool)
    )
    off = ~np.eye(p, dtype=bool)
    assert np.abs(factors.averaged().ancestor[0][off]).max() < 1e-3
    assert (factors.summary()[off] < 0).all()


def test_a_label_below_all_of_a_large_district_is_a_weak_member_of_it():
    p = 10
    district, ancestor = np.full((p, p), 30.0), np.zeros((1, p, p))
    ancestor[0, :, 0], district[:, 0], district[0] = 30.0, 27.0, 27.0
    weak = BayesFactors((0.5,), ancestor, district)
    assert weak.averaged().log_factor()[1:, 0].max() < 0.5
    # Below few labels that share nothing, it is their descendant.
    apart = BayesFactors((0.5,), ancestor, np.where(district == 30.0, -20.0, 27.0))
    assert apart.averaged().log_factor()[1:, 0].min() > 2.5


def test_only_labels_that_may_have_been_missed_keep_a_single_direction_in_a_district():
    apart = np.full((3, 3), -1.0)
    factors = BayesFactors((0.5,), np.zeros((1, 3, 3)), apart, single=(True, True, False))
    log_open = factors.joint(np.array([1.0, 0.01, 0.5]))[1]
    assert log_open[0, 1] == log_open[2, 1] == pytest.approx(log_open[0, 2] + np.log(0.01))


def test_a_missed_direction_is_counted_once_however_many_clients_saw_one():
    p = np.zeros((2, 2, 2))
    one = BayesFactors((0.5, 0.05), p, np.full((2, 2), -50.0), single=(False, True))
    evidence = one.averaged()
    total = evidence
    for _ in range(9):
        total = total + evidence
    assert total.log_factor()[0, 1] == pytest.approx(evidence.log_factor()[0, 1])
    assert total.log_factor()[0, 1] == pytest.approx(np.log(MISSED))
    assert total.log_factor()[1, 0] == pytest.approx(0.0)


def test_an_invisible_effect_can_never_be_excluded():
    factors = np.full((2, 2, 2), -1_000.0)
    apart = np.full((2, 2), -1_000.0)
    evidence = BayesFactors((0.5, 0.08), factors, apart).averaged()
    assert evidence.log_factor((0.5, 0.4, 0.1))[0, 1] == pytest.approx(np.log(0.1))
    assert evidence.log_factor()[0, 1] == pytest.approx(-1_000.0, abs=1.0)


def test_labels_below_a_hidden_cause_alone_are_no_ancestors_of_each_other():
    # h is hidden from every client and moves a and b, which have hard interventions.
    cut = jc.simulate.Intervention("hard", shift=1.0)
    graph = np.array([[0.0, 0.0, 0.9], [0.0, 0.0, -0.8], [0.0, 0.0, 0.0]])
    for seed in range(5):
        world = jc.simulate.world_from_graph(
            graph, [["a", "b"]] * 3, [4] * 3, seed, intervention=cut, names=["a", "b", "h"]
        )
        order = jc.recover(world.clients(5_000, seed=seed), interventions="hard").order
        assert (order.table.evidence[~np.eye(2, dtype=bool)] < 0).all()
