"""One task: a calibration run, or an evaluation of every method on one data set."""

from __future__ import annotations

from collections.abc import Mapping
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
        record: Record = {"task": task.key, "fingerprint": plan.fingerprint}
        if task.phase == "calibration":
            scores = {}
            for candidate in plan.grid:
                done = recover_with("paper", clients, tau=candidate, budget=plan.budget)
                e1, e2, e3 = _errors(world, done)
                scores[str(candidate)] = e1 - e2 - e3
            return {**record, "scores": scores}
        rows = []
        for method in plan.methods:
            warm_up(method)
            used = tau if method == "paper" and task.n is not None else None
            done = recover_with(method, clients, tau=used, budget=plan.budget)
            e1, e2, e3 = _errors(world, done)
            rows.append(
                {
                    "scenario": task.scenario.key,
                    "n": task.n,
                    "replicate": task.replicate,
                    "method": method,
                    "tau": used,
                    "e1": e1,
                    "e2": e2,
                    "e3": e3,
                    "clients": world.n_clients,
                    "stopped": done.stopped,
                    "seconds": round(done.seconds, 4),
                }
            )
        return {**record, "rows": rows}


def chosen_tau(plan: Plan, task: Task, finished: Mapping[str, Record]) -> float | None:
    """τ with the best mean score over the calibration runs of the task's scenario and n."""
    if task.n is None or "paper" not in plan.methods:
        return None
    scores = [
        {float(tau): score for tau, score in finished[other.key]["scores"].items()}
        for other in (
            Task(task.scenario, task.n, "calibration", r) for r in range(plan.calibration_runs)
        )
    ]
    return calibrate_tau([s.__getitem__ for s in scores], plan.grid) if scores else DEFAULT_TAU


def _errors(world: World, done: Recovered) -> tuple[float, float, float]:
    truths = [world.truth(k) for k in range(world.n_clients)]
    return (
        global_f1(world.order, done.pairs),
        subspace_error(truths, done.fragments),
        support_leakage(truths, done.fragments),
    )
