"""The methods that are compared, with one signature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Any

from jigsaw_crl import baseline
from jigsaw_crl.base.errors import choose
from jigsaw_crl.client.client import Client
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.pipeline import recover
from jigsaw_crl.truth.metrics import scored_pairs
from jigsaw_crl.truth.simulate import setting

__all__ = ["METHODS", "Recovered", "recover_with", "warm_up"]


@dataclass(frozen=True)
class Recovered:
    """What a method recovers from a study.

    Parameters
    ----------
    pairs : frozenset of (ancestor, descendant)
        Those that E1 scores.
    fragments : tuple of Fragment
    seconds : float
        From moments to the global order.
    stopped : int
        Clients whose recovery ended with an outcome other than ok.
    """

    pairs: frozenset[tuple[str, str]]
    fragments: tuple[Fragment, ...]
    seconds: float
    stopped: int


def _paper(clients: Sequence[Client], tau: float | None, budget: int) -> tuple[Any, Any]:
    found = [baseline.recover_fragment(c, tau=tau, budget=budget) for c in clients]
    return baseline.assemble_pairs(found).pairs, found


def _null_cone(clients: Sequence[Client], _tau: float | None, _budget: int) -> tuple[Any, Any]:
    result = recover(list(clients), method="null-cone", seed=0)
    return result.order, list(result.fragments.values())


METHODS: dict[str, Callable[[Sequence[Client], float | None, int], tuple[Any, Any]]] = {
    "paper": _paper,
    "null-cone": _null_cone,
}


def recover_with(
    method: str, clients: Sequence[Client], *, tau: float | None, budget: int
) -> Recovered:
    """Recover the global order and the clients' fragments, and measure the time."""
    run = choose(method, METHODS, "method")
    start = perf_counter()
    order, fragments = run(clients, tau, budget)
    seconds = perf_counter() - start
    stopped = sum(not f.outcome.ok for f in fragments)
    return Recovered(scored_pairs(order), tuple(fragments), seconds, stopped)


@cache
def warm_up(method: str) -> None:
    """Import and compile everything once per process, so that no timing includes it."""
    world = setting("A", 0)
    for n in (None, 1000):
        recover_with(method, world.clients(n), tau=0.05, budget=1000)
