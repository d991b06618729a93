"""The budget of a search."""

from __future__ import annotations

import pytest

import jigsaw_crl as jc
from jigsaw_crl import baseline
from jigsaw_crl.baseline.budget import Budget, BudgetSpent

from .clients import sampled_client


def test_a_budget_is_never_overspent():
    budget = Budget(10)
    budget.spend(10)
    with pytest.raises(BudgetSpent):
        budget.spend(1)
    assert budget.spent == 10


@pytest.mark.parametrize("budget", [0, -5, 1.5, True, None, "many"])
def test_a_budget_that_is_no_positive_whole_number_is_refused(budget):
    with pytest.raises(jc.InputError, match=r"client 'client-1': budget is .* at least 1"):
        baseline.recover_fragment(sampled_client(5, 1000), budget=budget)
