"""One task: a calibration run, or the evaluation of a method on one data set.

The methods that are compared have one signature; all get the same data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from time import perf_counter
from typing import Any

from threadpoolctl import threadpool_limits

from jigsaw_crl import baseline
from jigsaw_crl.base.errors import choose
from jigsaw_crl.client.client import Client
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.pipeline import recover
from jigsaw_crl.truth.experiments.scenarios import Plan, Task
from jigsaw_crl.truth.metrics import global_f1, scored_pairs, subspace_error, support_leakage
from jigsaw_crl.truth.simulate import World, setting

__all__ = ["METHODS", "chosen_tau", "run_task"]

Record = dict[str, Any]


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


def run_task(plan: Plan, task: Task, tau: float | None) -> Record:
    """Run a task and return its record.

    It uses one BLAS thread, because the rounding of a product can depend on the number of threads.
    """
    with threadpool_limits(limits=1):
        world_seed, sample_seed = task.seeds()
        world = task.scenario.world(world_seed)
        clients = world.clients(task.n, task.scenario.noise, sample_seed)
        record: Record = {
            "task": task.key,
            "fingerprint": plan.fingerprint(task.method),
            "date": date.today().isoformat(),
        }
        if task.phase == "calibration":
            scores = {}
            for candidate in plan.candidates(task.scenario):
                done = recover_with(task.method, clients, tau=candidate, budget=plan.budget)
                e1, e2, e3 = _errors(world, done)
                scores[str(candidate)] = e1 - e2 - e3
            return {**record, "scores": scores}
        warm_up(task.method)
        done = recover_with(task.method, clients, tau=tau, budget=plan.budget)
        e1, e2, e3 = _errors(world, done)
        row = {
            "scenario": task.scenario.key,
            "n": task.n,
            "replicate": task.replicate,
            "method": task.method,
            "tau": tau,
            "e1": e1,
            "e2": e2,
            "e3": e3,
            "clients": world.n_clients,
            "stopped": done.stopped,
            "seconds": round(done.seconds, 4),
        }
        return {**record, "row": row}


def chosen_tau(plan: Plan, task: Task, finished: Mapping[str, Record]) -> float | None:
    """τ with the best mean score over the calibration runs of the task's scenario and n.

    None for exact moments, and for methods that do not use τ.
    """
    if task.n is None or task.method != "paper":
        return None
    scores = [
        {float(tau): score for tau, score in finished[other.key]["scores"].items()}
        for other in (
            Task(task.scenario, task.n, "calibration", r, task.method)
            for r in range(plan.calibration_runs)
        )
    ]
    if not scores:
        return baseline.DEFAULT_TAU
    # math.fsum: ties do not depend on the order of the runs. The τ nearest to the default wins.
    mean = {tau: math.fsum(s[tau] for s in scores) for tau in plan.candidates(task.scenario)}
    ties = [tau for tau, score in mean.items() if score == max(mean.values())]
    return min(ties, key=lambda tau: (round(abs(tau - baseline.DEFAULT_TAU), 12), tau))


def _errors(world: World, done: Recovered) -> tuple[float, float, float]:
    truths = [world.truth(k) for k in range(world.n_clients)]
    return (
        global_f1(world.order, done.pairs),
        subspace_error(truths, done.fragments),
        support_leakage(truths, done.fragments),
    )
