"""Run the paper's experiments and compare the results with its printed numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jigsaw_crl.base.errors import InputError, choose
from jigsaw_crl.base.files import sole_writer, write_text
from jigsaw_crl.truth.experiments import pages
from jigsaw_crl.truth.experiments.execution import Call, progress_bar, results_of
from jigsaw_crl.truth.experiments.methods import METHODS
from jigsaw_crl.truth.experiments.plots import plot_scenario
from jigsaw_crl.truth.experiments.replicate import chosen_tau, run_task
from jigsaw_crl.truth.experiments.scenarios import Plan, Task, plan_of
from jigsaw_crl.truth.experiments.store import Store
from jigsaw_crl.truth.experiments.summary import summarise, write_csv

__all__ = ["Reproduction", "run", "run_plan"]

# The sub-folder of finished tasks, by which the folder of an earlier run is known again.
REPLICATES = "replicates"
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Reproduction:
    """Files of a finished run.

    Parameters
    ----------
    csv : Path
        Every replicate.
    markdown, html : Path
        The page.
    pictures : tuple of Path
        One PNG per scenario; empty for tables.
    """

    csv: Path
    markdown: Path
    html: Path
    pictures: tuple[Path, ...]


def run(
    kind: str,
    out: str | Path = "reproduce",
    quick: bool = False,
    workers: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
    methods: tuple[str, ...] = ("paper", "null-cone"),
    force: bool = False,
) -> Reproduction:
    """Reproduce the paper's figures or tables.

    An interrupted run resumes when it is called again with the same folder. The numbers, runtimes
    apart, do not depend on `workers` or `cluster`.

    Parameters
    ----------
    kind : {"figures", "tables"}
    out : path
        Folder for the results.
    quick : bool
        Fewer replicates and calibration runs, and a smaller search budget: minutes, not hours.
    workers : int
        Processes on this machine.
    cluster : str, optional
        Address of a Dask scheduler to work on instead.
    progress : function of (done, total), optional
        Called whenever a task finishes; by default a bar on the terminal.
    methods : tuple of str
        Methods to compare, on the same data.
    force : bool
        Overwrite files in `out` that no earlier run has written.
    """
    if not methods:
        raise InputError("no method is given", f"Choose from {', '.join(METHODS)}.")
    for method in methods:
        choose(method, METHODS, "method")
    plan = plan_of(kind, quick=quick, methods=tuple(methods))
    folder = Path(out) / plan.kind
    if not force and folder.exists() and not (folder / REPLICATES).is_dir():
        raise InputError(
            f"it exists and has no folder {REPLICATES} of an earlier run",
            "Choose another folder, or pass --force to overwrite files in it.",
            path=folder,
        )
    return run_plan(plan, Path(out), workers=workers, cluster=cluster, progress=progress)


def run_plan(
    plan: Plan,
    out: Path,
    *,
    workers: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Reproduction:
    """Run the missing tasks of a plan, then write its pages."""
    if progress is None:
        with progress_bar(f"reproduce {plan.kind}") as bar:
            return run_plan(plan, out, workers=workers, cluster=cluster, progress=bar)
    store = Store(out / plan.kind / REPLICATES, plan.fingerprint)
    with sole_writer(store.folder):
        calibrations, evaluations = plan.calibrations(), plan.evaluations()
        total = len(calibrations) + len(evaluations)
        place: dict[str, Any] = {"workers": workers, "cluster": cluster}

        def count(done: int) -> None:
            progress(done, total)

        calibrated = _finish(plan, store, calibrations, {}, count, **place)
        taus = {task.key: chosen_tau(plan, task, calibrated) for task in evaluations}
        done = len(calibrations)
        evaluated = _finish(plan, store, evaluations, taus, lambda d: count(done + d), **place)
        rows = [row for task in evaluations for row in evaluated[task.key]["rows"]]
        used = {
            (task.scenario.key, task.n): tau
            for task in evaluations
            if task.n is not None and (tau := taus[task.key]) is not None
        }
        return _write(plan, out / plan.kind, rows, used)


def _finish(
    plan: Plan,
    store: Store,
    tasks: list[Task],
    taus: dict[str, float | None],
    progress: Callable[[int], None],
    **place: Any,
) -> dict[str, dict[str, Any]]:
    """Records of all tasks; those that are not on disk are run and written."""
    finished = {task.key: record for task in tasks if (record := store.get(task.key)) is not None}
    progress(len(finished))
    calls: list[Call] = [
        (run_task, (plan, task, taus.get(task.key))) for task in tasks if task.key not in finished
    ]
    for record in results_of(calls, **place):
        store.put(record)
        finished[record["task"]] = record
        progress(len(finished))
    return finished


def _write(
    plan: Plan, out: Path, rows: list[dict[str, Any]], taus: dict[tuple[str, int], float]
) -> Reproduction:
    done = pages.Run(plan, summarise(rows), taus)
    write_csv(rows, out / "replicates.csv")
    pictures: dict[str, Path] = {}
    if plan.kind == "figures":
        for scenario in plan.scenarios:
            pictures[scenario.key] = out / f"{scenario.key}.png"
            plot_scenario(scenario, plan.sizes, plan.methods, done.cells, pictures[scenario.key])
        sections = pages.figure_sections(done, pictures)
        title = "E1, E2 and E3 against the sample size, settings A, B and C"
    else:
        sections = pages.table_sections(done)
        title = "Tables 1 to 3: sensitivity to p, K and q"
    markdown, html = out / f"{plan.kind}.md", out / f"{plan.kind}.html"
    write_text(markdown, pages.markdown_page(title, done, sections))
    write_text(html, pages.html_page(title, done, sections))
    return Reproduction(out / "replicates.csv", markdown, html, tuple(pictures.values()))
