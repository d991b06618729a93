"""Run the paper's experiments and compare the results with its printed numbers.

Finished tasks are kept by `joblib.Memory`, whose key holds a hash of the code, so that results of
different code never mix and a run that was killed resumes. The methods that are compared have one
signature; all get the same data.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from datetime import date
from functools import cache
from hashlib import sha256
from math import fsum, inf
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd
from joblib import Memory, Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits

import jigsaw_crl
from jigsaw_crl import baseline
from jigsaw_crl.base.errors import InputError, choose
from jigsaw_crl.base.files import writable, write_text
from jigsaw_crl.base.terminal import counted, working
from jigsaw_crl.client.client import Client
from jigsaw_crl.pipeline import recover
from jigsaw_crl.truth.experiments.pages import Pages, summarise, write_pages
from jigsaw_crl.truth.experiments.plan import Plan, Task
from jigsaw_crl.truth.metrics import global_f1, subspace_error, support_leakage
from jigsaw_crl.truth.simulate import setting

# The sub-folder of finished tasks, by which the folder of an earlier run is known again.
REPLICATES = "replicates"
# Rooms whose code changes no number of a replicate.
_NO_NUMBERS = ("cli", "federated", "report")


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
"""From clients, τ and the search budget to an order and the clients' fragments."""


@cache
def code_hash() -> str:
    """Hash of the code that numbers depend on; comments and layout are no part of it."""
    root = Path(jigsaw_crl.__file__).parent
    code = sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in _NO_NUMBERS:
            code.update(ast.dump(ast.parse(path.read_bytes())).encode())
    return code.hexdigest()


@cache
def _warm_up(method: str) -> None:
    """Import and compile everything once per process, so that no timing includes it."""
    world = setting("A", 0)
    for n in (None, 1000):
        METHODS[method](world.clients(n), 0.05, 1000)


def run_task(task: Task, method: str, taus: Sequence[float | None], budget: int, _code: str) -> Any:
    """Scores of a method on one data set, one row for each τ; `_code` is a part of the key.

    It uses one BLAS thread, because the rounding of a product can depend on the number of threads.
    """
    with threadpool_limits(limits=1):
        world_seed, sample_seed = task.seeds()
        world = task.scenario.world(world_seed)
        n = None if task.n == inf else int(task.n)
        clients = world.clients(n, task.scenario.noise, sample_seed)
        truths = [world.truth(k) for k in range(world.n_clients)]
        _warm_up(method)
        rows = []
        for tau in taus:
            start = perf_counter()
            order, fragments = METHODS[method](clients, tau, budget)
            row = {
                "scenario": task.scenario.key,
                "n": task.n,
                "replicate": task.replicate,
                "method": method,
                "tau": tau,
                "seconds": round(perf_counter() - start, 4),
                "e1": global_f1(world.order, order),
                "e2": subspace_error(truths, fragments),
                "e3": support_leakage(truths, fragments),
                "clients": world.n_clients,
                "stopped": sum(not f.outcome.ok for f in fragments),
                "date": date.today().isoformat(),
            }
            rows.append(row)
        return rows


def run_plan(plan: Plan, folder: Path, *, workers: int = 1, force: bool = False) -> Pages:
    """Run the missing tasks of a plan, then write its pages.

    An interrupted run resumes when it is called again with the same folder. A method can be added
    later, or run alone. The numbers, runtimes apart, do not depend on `workers`: processes, or what
    the backend of joblib takes for them. With `force` files in the folder that no earlier run has
    written are overwritten.
    """
    for method in plan.methods:
        choose(method, METHODS, "method")
    store = folder / REPLICATES
    taken = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    if taken and not force and not store.is_dir():
        raise InputError(
            f"it exists and has no folder {REPLICATES} of an earlier run",
            "Choose another folder, or pass --force to overwrite files in it.",
            path=folder,
        )
    with writable(store, "the folder"):
        store.mkdir(parents=True, exist_ok=True)
    kept = Memory(store, verbose=0).cache(run_task)
    tuned = plan.tasks("calibration") if "paper" in plan.methods else []
    calls: list[tuple[Any, ...]] = [
        (task, "paper", plan.candidates(task.scenario), plan.budget, code_hash()) for task in tuned
    ]
    found = pd.DataFrame([row for rows in _results(kept, calls, workers, "τ") for row in rows])
    calls = [
        (task, method, (_tau(task, found),), plan.budget, code_hash())
        if method == "paper"
        else (task, method, (None,), 0, code_hash())
        for task in plan.tasks("evaluation")
        for method in plan.methods
    ]
    done = [row for rows in _results(kept, calls, workers, plan.kind) for row in rows]
    rows = pd.DataFrame(done).assign(
        budget=plan.budget, candidates=len(plan.grid), tuned_on=plan.calibration_runs
    )
    write_text(folder / "replicates.csv", rows.to_csv(index=False))
    return write_pages(summarise(rows), plan.kind, folder)


def _tau(task: Task, found: pd.DataFrame) -> float | None:
    """τ with the best mean score over the calibration runs of the task's scenario and n.

    None for exact moments.
    """
    if task.n == inf:
        return None
    if found.empty:
        return baseline.DEFAULT_TAU
    own = found[(found["scenario"] == task.scenario.key) & (found["n"] == task.n)]
    # math.fsum: ties do not depend on the order of the runs. The τ nearest to the default wins.
    scores = (own["e1"] - own["e2"] - own["e3"]).groupby(own["tau"]).agg(fsum)
    ties = [float(str(tau)) for tau, score in scores.items() if score == scores.max()]
    return min(ties, key=lambda tau: (round(abs(tau - baseline.DEFAULT_TAU), 12), tau))


def _results(
    function: Callable[..., Any], calls: list[tuple[Any, ...]], workers: int, what: str
) -> list[Any]:
    """The results of independent calls, in their order; progress goes to stderr."""
    # Batches of one: calls differ a thousandfold in cost, and each result is kept at once.
    parallel = Parallel(n_jobs=workers, return_as="generator", batch_size=1)
    try:
        with working(f"reproduce {what}"):
            results = parallel(delayed(function)(*given) for given in calls)
            return list(counted(results, len(calls)))
    except TerminatedWorkerError as error:
        raise InputError(
            f"a worker process was killed ({str(error)[:200]})",
            "Check that memory suffices; run the same command again to resume.",
        ) from None
