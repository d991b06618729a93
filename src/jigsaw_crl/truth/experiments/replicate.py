"""One task: a calibration run, or the evaluation of a method on one data set."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from threadpoolctl import threadpool_limits

from jigsaw_crl.baseline import DEFAULT_TAU, calibrate_tau
from jigsaw_crl.truth.experiments.methods import Recovered, recover_with, warm_up
from jigsaw_crl.truth.experiments.scenarios import Plan, Task
from jigsaw_crl.truth.metrics import global_f1, subspace_error, support_leakage
from jigsaw_crl.truth.simulate import World

__all__ = ["chosen_tau", "run_task"]

Record = dict[str, Any]


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
        return DEFAULT_TAU
    return calibrate_tau([s.__getitem__ for s in scores], plan.candidates(task.scenario))


def _errors(world: World, done: Recovered) -> tuple[float, float, float]:
    truths = [world.truth(k) for k in range(world.n_clients)]
    return (
        global_f1(world.order, done.pairs),
        subspace_error(truths, done.fragments),
        support_leakage(truths, done.fragments),
    )
