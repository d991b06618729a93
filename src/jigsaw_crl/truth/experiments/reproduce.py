"""Run the paper's experiments and compare the results with its printed numbers."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jigsaw_crl.base.errors import InputError, choose
from jigsaw_crl.base.files import locked, writable, write_text
from jigsaw_crl.truth.experiments import pages
from jigsaw_crl.truth.experiments.execution import Call, progress_bar, results_of
from jigsaw_crl.truth.experiments.plots import plot_scenario, plot_table
from jigsaw_crl.truth.experiments.replicate import METHODS, Record, chosen_tau, run_task
from jigsaw_crl.truth.experiments.results import Results, read_results, summarise, write_results
from jigsaw_crl.truth.experiments.scenarios import Plan, Task, plan_of

__all__ = ["Reproduction", "run", "run_plan", "write_pages"]

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
    results : Path
        The cells, from which the page is made; see `jigsaw_crl.truth.experiments.results`.
    page : Path
        In Markdown.
    pictures : tuple of Path
        One PNG per scenario of the figures, or per table.
    """

    csv: Path
    results: Path
    page: Path
    pictures: tuple[Path, ...]


def run(
    kind: str,
    out: str | Path = "reproduce",
    quick: bool = False,
    workers: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
    methods: tuple[str, ...] = ("paper", "null-cone"),
    only: Sequence[str] = (),
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
        Methods to compare, on the same data. Each keeps its own results, so a method can be added
        later, or run alone.
    only : sequence of str
        Parts to run; see `plan_of`.
    force : bool
        Overwrite files in `out` that no earlier run has written.
    """
    if not methods:
        raise InputError("no method is given", f"Choose from {', '.join(METHODS)}.")
    for method in methods:
        choose(method, METHODS, "method")
    plan = plan_of(kind, quick=quick, methods=tuple(methods), only=only)
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
    store = out / plan.kind / REPLICATES
    with writable(store, "the folder"):
        store.mkdir(parents=True, exist_ok=True)
    with locked(store):
        calibrations, evaluations = plan.calibrations(), plan.evaluations()
        total = len(calibrations) + len(evaluations)
        place: dict[str, Any] = {"workers": workers, "cluster": cluster}

        def count(done: int) -> None:
            progress(done, total)

        calibrated = _finish(plan, store, calibrations, {}, count, **place)
        taus = {task.key: chosen_tau(plan, task, calibrated) for task in evaluations}
        done = len(calibrations)
        evaluated = _finish(plan, store, evaluations, taus, lambda d: count(done + d), **place)
        rows = [evaluated[task.key]["row"] for task in evaluations]
        days = {
            method: max(evaluated[t.key]["date"] for t in evaluations if t.method == method)
            for method in plan.methods
        }
        _write_csv(rows, out / plan.kind / "replicates.csv")
        return write_pages(Results(plan, days, summarise(rows)), out / plan.kind)


def _finish(
    plan: Plan,
    store: Path,
    tasks: list[Task],
    taus: dict[str, float | None],
    progress: Callable[[int], None],
    **place: Any,
) -> dict[str, Record]:
    """Records of all tasks; those that are not on disk are run and written, one file each."""
    finished = {
        task.key: record
        for task in tasks
        if (record := _stored(store, task, plan.fingerprint(task.method))) is not None
    }
    progress(len(finished))
    calls: list[Call] = [
        (run_task, (plan, task, taus.get(task.key))) for task in tasks if task.key not in finished
    ]
    for record in results_of(calls, **place):
        write_text(store / f"{record['task']}.json", json.dumps(record, indent=1))
        finished[record["task"]] = record
        progress(len(finished))
    return finished


def _stored(store: Path, task: Task, fingerprint: str) -> Record | None:
    """The record of a finished task; None if there is none of this code and plan."""
    try:
        record: Record = json.loads((store / f"{task.key}.json").read_text(encoding="utf-8"))
        same = (record["task"], record["fingerprint"]) == (task.key, fingerprint)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return record if same else None


def _write_csv(rows: Sequence[Record], path: Path) -> None:
    """Every replicate, one line per method; n is `inf` in the population."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(row | {"n": "inf" if row["n"] is None else row["n"]} for row in rows)
    write_text(path, text.getvalue())


def write_pages(results: Results, out: Path) -> Reproduction:
    """Write the results file, and from it the pictures and the page."""
    kind = results.plan.kind
    # Read back, so that the page shows the rounded numbers of the file.
    kept = read_results(write_results(results, out / "results.jsonl"))
    pictures: dict[str, Path] = {}
    if kind == "figures":
        for scenario in kept.plan.scenarios:
            pictures[scenario.key] = out / f"{scenario.key}.png"
            plot_scenario(scenario, kept, pictures[scenario.key])
        sections = pages.figure_sections(kept, pictures)
    else:
        for table in pages.shown_tables(kept):
            pictures[table.varies] = out / f"table-{table.number}.png"
            plot_table(table, kept, pictures[table.varies])
        sections = pages.table_sections(kept, pictures)
    page = out / f"{kind}.md"
    write_text(page, pages.markdown_page(pages.title_of(kind), kept, sections))
    return Reproduction(
        out / "replicates.csv", out / "results.jsonl", page, tuple(pictures.values())
    )
