"""Why a probability beyond a threshold can come with an undetermined verdict."""

from dataclasses import replace

import numpy as np
import pytest

from jigsaw_crl import Verdict, assemble
from jigsaw_crl.assembly.pairs import Bounds
from jigsaw_crl.assembly.verdict import CERTAIN_NO, LEAST_AGAINST, NO, OPEN, YES, Why, decide

from .clients import weighs


def client(name, ancestor):
    """Two labels apart from each other, with these log Bayes factors of ancestry."""
    district = [[0, -20], [-20, 0]]
    return weighs(name, ("pump", "valve"), [ancestor], district, rank_one="no-ancestor")


def test_a_probability_that_only_the_prior_makes_low_is_undetermined_and_explained():
    low = np.array([[0.0, 0.02], [0.0, 0.0]])
    order = assemble([client("north", [[0, -0.9], [-9, 0]])])
    why = order.why.copy()
    why[0, 1] = Why.PRIOR
    order = replace(order, chances=low, why=why)
    assert order.probability("pump", "valve") < CERTAIN_NO
    assert -LEAST_AGAINST < order.table.evidence[order.indices("pump", "valve")] < 0
    assert order.verdict("pump", "valve") is Verdict.UNDETERMINED
    text = str(order.explain("pump", "valve"))
    assert "the probability comes from the prior or from other pairs" in text
    assert '"not ancestor" one below -1.0 (here -0.9)' in text
    assert text.count("log Bayes factor") == 1
    why[0, 1] = Why.DISPUTED
    reason = replace(order, why=why).explain("pump", "valve").reason
    assert "the chains that sample orders disagree on this pair" in reason


@pytest.mark.parametrize("said", [-4.0, 2.0, 5.0])
def test_evidence_is_a_log_bayes_factor_without_the_prior_and_called_so(said):
    order = assemble([client("north", [[0, said], [-9, 0]])])
    pair = order.indices("pump", "valve")
    (claims,) = order.said.claims
    assert claims.log_factor[0, 1] == pytest.approx(said, abs=0.03)
    # Some effects are too small to see, which bounds what speaks against.
    assert order.table.evidence[pair] == pytest.approx(np.log(0.99 * np.exp(said) + 0.01), abs=0.1)
    text = str(order.explain("pump", "valve"))
    assert "log Bayes factor" in text
    assert "odds" not in text


@pytest.mark.parametrize(
    ("probability", "evidence", "verdict", "why"),
    [
        (0.97, -5.0, OPEN, Why.PRIOR),
        (0.97, 0.3, OPEN, Why.PRIOR),
        (0.97, 3.0, YES, Why.EVIDENCE),
        (0.01, -3.0, NO, Why.EVIDENCE),
        (0.01, -0.5, OPEN, Why.PRIOR),
        (0.01, 5.0, OPEN, Why.PRIOR),
        (0.6, 5.0, OPEN, Why.UNSURE),
    ],
)
def test_a_verdict_needs_evidence_that_points_the_same_way(probability, evidence, verdict, why):
    P, E = np.zeros((2, 2)), np.zeros((2, 2))
    P[0, 1], E[0, 1] = probability, evidence
    decided = decide(P, E)
    assert (decided.verdicts[0, 1], decided.why[0, 1]) == (verdict, why)


@pytest.mark.parametrize(
    ("back", "verdict", "why"),
    [(3.5, YES, Why.EVIDENCE), (4.5, YES, Why.EVIDENCE), (5.5, OPEN, Why.BOTH)],
)
def test_evidence_for_either_direction_decides_none(back, verdict, why):
    P, E = np.array([[0.0, 0.97], [0.01, 0.0]]), np.array([[0.0, 10.0], [back, 0.0]])
    decided = decide(P, E)
    assert (decided.verdicts[0, 1], decided.why[0, 1]) == (verdict, why)


@pytest.mark.parametrize(
    ("own", "opposed", "verdict", "why"),
    [
        (0.0, None, YES, Why.IMPLIED),  # no evidence of its own
        (5.0, (0, 2), YES, Why.IMPLIED),  # one client clearly opposes what the others imply
        (5.0, (0, 1), OPEN, Why.OPPOSED),  # or what nothing else implies
    ],
)
def test_what_decided_pairs_imply_is_decided_and_what_a_client_opposes_is_not(
    own, opposed, verdict, why
):
    """Pump is an ancestor of valve, and valve of tank: so pump is one of tank."""
    P, E = (x * np.triu(np.ones((3, 3)), 1) for x in (0.99, 6.0))
    E[0, 2], against, pair = own, np.zeros((3, 3), dtype=bool), opposed or (0, 2)
    against[pair] = opposed is not None
    decided = decide(P, E, opposed=against)
    assert (decided.verdicts[pair], decided.why[pair]) == (verdict, why)
    assert (decided.verdicts.T[decided.verdicts == YES] == NO).all()


def test_chains_that_disagree_decide_nothing():
    P = np.array([[0.0, 0.97], [0.0, 0.0]])
    E = np.array([[0.0, 9.0], [-9.0, 0.0]])
    chains = np.stack([P, P * 0.5])
    decided = decide(P, E, chains=chains)
    assert decided.verdicts[0, 1] == OPEN
    assert decided.why[0, 1] == Why.DISPUTED


def test_a_size_that_matters_never_denies_a_pair_that_is_probably_an_ancestor():
    P = np.array([[0.0, 0.931], [0.02, 0.0]])
    E = np.array([[0.0, 1.5], [-2.0, 0.0]])
    room = np.array([[np.nan, 0.4], [3.0, np.nan]])
    decided = decide(P, E, room=room, size_matters=True)
    assert decided.verdicts[0, 1] == OPEN
    assert (decided.verdicts[1, 0], decided.why[1, 0]) == (OPEN, Why.LARGE)
    small = decide(0.5 * P, E, room=room, size_matters=True)
    assert (small.verdicts[0, 1], small.why[0, 1]) == (NO, Why.SMALL)


def test_a_no_whose_bound_leaves_room_for_a_large_effect_is_open_unless_the_opposite_holds():
    # 0 and 1 are unrelated; 2 is an ancestor of 3.
    P = np.full((4, 4), 0.001)
    E = np.full((4, 4), -8.0)
    P[2, 3], E[2, 3] = 0.999, 20.0
    room = np.full((4, 4), 0.5)
    room[0, 1] = room[3, 2] = 1.5
    decided = decide(P, E, room=room)
    assert decided.verdicts[0, 1] == OPEN
    assert decided.why[0, 1] == Why.LARGE
    assert decided.verdicts[1, 0] == NO
    assert decided.verdicts[3, 2] == NO
    value, units = np.array([[0.6, 0.6], [1.2, np.nan]]), np.array([[1, 0], [0, 0]])
    large = Bounds(value, units, np.zeros_like(units, dtype=bool)).room(None) > 1
    assert large.tolist() == [[True, False], [True, False]]


@pytest.mark.parametrize(
    ("own", "theirs", "verdict"),
    [
        (0.5, 0.5, NO),  # measured, and small
        (1.5, 0.5, OPEN),  # measured, and its own evidence excludes nothing
        (np.nan, 0.5, NO),  # not measured: the bound of the pair from which it follows
        (np.nan, np.nan, OPEN),  # neither has a bound
        (0.5, np.nan, NO),
    ],
)
def test_a_no_that_follows_from_others_needs_a_bound(own, theirs, verdict):
    """Pump is an ancestor of valve, and not of tank: so valve is none of tank."""
    P = np.array([[0.0, 0.999, 0.01], [0.0, 0.0, 0.01], [0.01, 0.01, 0.0]])
    E = np.array([[0.0, 20.0, -3.5], [-20.0, 0.0, -0.2], [0.0, 0.0, 0.0]])
    room = np.full((3, 3), 0.5)
    room[1, 2], room[0, 2] = own, theirs
    decided = decide(P, E, room=room)
    assert decided.verdicts[0, 2] == NO
    assert decided.verdicts[1, 0] == NO
    assert decided.verdicts[1, 2] == verdict
    assert decided.why[1, 2] == {NO: Why.IMPLIED}.get(verdict, Why.LARGE if own > 1 else Why.PRIOR)
