"""How many label sets a search may look at before it must stop and say so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.errors import InputError

__all__ = ["DEFAULT_BUDGET", "Budget", "BudgetSpent", "check_budget"]

# One look costs the eigenvalues of a p_k × p_k matrix, about 20 µs at p_k = 24: a client whose
# search cannot be finished gives up after some 20 s. Looks are counted, not seconds, so that a
# result never depends on the machine.
DEFAULT_BUDGET = 1_000_000


class BudgetSpent(Exception):
    """The search wants to look at more label sets than it may; caught inside this package."""


@dataclass
class Budget:
    """Looks left for one client, over all its searches."""

    total: int
    spent: int = 0

    def spend(self, looks: int) -> None:
        if self.spent + looks > self.total:
            self.spent = self.total
            raise BudgetSpent
        self.spent += looks


def check_budget(budget: object, *, client: str | None = None) -> int:
    """A positive whole number, or an `InputError`."""
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer) or budget < 1:
        raise InputError(
            f"budget is {budget!r}",
            "Pass the number of label sets the search may look at: a whole number, at least 1.",
            client=client,
        )
    return int(budget)
