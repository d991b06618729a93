"""The budget of a search: the number of label sets it may examine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.errors import InputError

__all__ = ["DEFAULT_BUDGET", "Budget", "BudgetSpent", "check_budget"]

# Examining a set means computing the eigenvalues of a p_k × p_k matrix, about 20 µs at p_k = 24, so
# a search stops after about 20 s. The budget counts sets, not seconds, so that results do not
# depend on the machine.
DEFAULT_BUDGET = 1_000_000


class BudgetSpent(Exception):
    """The budget is too small for the next step of a search; caught inside this package."""


@dataclass
class Budget:
    """Label sets that may be examined for one client, and how many have been."""

    total: int
    spent: int = 0

    def spend(self, sets: int) -> None:
        """Count `sets` more; raises `BudgetSpent` when the total would be exceeded."""
        if self.spent + sets > self.total:
            self.spent = self.total
            raise BudgetSpent
        self.spent += sets


def check_budget(budget: object, *, client: str | None = None) -> int:
    """The budget as an int; raises an `InputError` unless it is a positive whole number."""
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer) or budget < 1:
        raise InputError(
            f"budget is {budget!r}",
            "Pass the number of label sets the search may examine: a whole number, at least 1.",
            client=client,
        )
    return int(budget)
