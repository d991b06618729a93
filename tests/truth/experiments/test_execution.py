"""Calls on several processes and on a cluster, and runs that are killed."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time

import pytest

from jigsaw_crl.base import cluster as dask
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.truth.experiments import reproduce
from jigsaw_crl.truth.experiments.execution import progress_bar, results_of

from .tiny_plan import numbers, silent, tiny

pytestmark = pytest.mark.slow

# By default Dask takes a fixed port, which another test may be using.
ANY_PORT = ":0"


def double(x):
    return 2 * x


@pytest.mark.parametrize("workers", [1, 2])
def test_every_call_gives_one_result(workers):
    calls = [(double, (x,)) for x in range(20)]
    assert sorted(results_of(calls, workers=workers)) == [2 * x for x in range(20)]
    assert list(results_of([], workers=workers)) == []


def test_a_cluster_gives_the_same_numbers(tmp_path, distributed):
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=ANY_PORT
    ) as cluster:
        plan = tiny(replicates=1, calibration_runs=1)
        there = reproduce.run_plan(
            plan, tmp_path / "there", cluster=cluster.scheduler_address, progress=silent
        )
    here = reproduce.run_plan(plan, tmp_path / "here", progress=silent)
    assert numbers(there) == numbers(here)


@pytest.fixture
def two_workers(monkeypatch, distributed):
    """A Dask cluster of two worker processes that are started again when they die."""
    # A busy machine may take longer than a minute to start them again.
    monkeypatch.setattr(dask, "PATIENCE", 120)
    cloudpickle = pytest.importorskip("cloudpickle")
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=ANY_PORT,
        silence_logs="CRITICAL",
    ) as cluster:  # fmt: skip
        yield cluster
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def pids_of(cluster):
    import distributed

    with distributed.Client(cluster.scheduler_address) as client:
        return list(client.run(os.getpid).values())


def test_a_worker_killed_during_a_sweep_loses_no_replicate(two_workers, tmp_path):
    plan, killed = tiny(replicates=3, calibration_runs=2), []
    (victim, _) = pids_of(two_workers)

    def kill_one(done, total):
        if done >= 3 and not killed:
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    address = two_workers.scheduler_address
    there = reproduce.run_plan(plan, tmp_path / "there", cluster=address, progress=kill_one)
    assert killed
    here = reproduce.run_plan(plan, tmp_path / "here", progress=silent)
    assert numbers(there) == numbers(here)
    kept = {path.stem for path in (tmp_path / "there" / "figures" / "replicates").iterdir()}
    assert kept == {task.key for task in [*plan.calibrations(), *plan.evaluations()]}


def dies_on_one(plan, task, tau):
    if task.key == "A-gaussian-n1000-paper-e0001":
        os.kill(os.getpid(), signal.SIGKILL)
    return reproduce_run_task(plan, task, tau)


reproduce_run_task = reproduce.run_task


def test_a_run_whose_task_always_dies_is_refused_and_resumes_when_it_is_repaired(
    two_workers, tmp_path, monkeypatch
):
    monkeypatch.setattr(reproduce, "run_task", dies_on_one)
    # Dask tries a task again on a second worker, and not on a third and a fourth.
    two_workers.scheduler.allowed_failures = 1
    plan = tiny(replicates=2, calibration_runs=1)
    with pytest.raises(InputError, match="a task ended every worker"):
        reproduce.run_plan(plan, tmp_path, cluster=two_workers.scheduler_address, progress=silent)
    # Once repaired, the same command runs the missing tasks only.
    monkeypatch.setattr(reproduce, "run_task", reproduce_run_task)
    done = reproduce.run_plan(plan, tmp_path, progress=silent)
    assert len(numbers(done)) == len(plan.evaluations())


def test_a_cluster_without_workers_is_refused(monkeypatch, distributed):
    monkeypatch.setattr(dask, "PATIENCE", 3)
    with (
        distributed.LocalCluster(
            n_workers=0, processes=False, dashboard_address=ANY_PORT
        ) as cluster,
        pytest.raises(InputError, match="no worker for 3 s"),
    ):
        list(results_of([(double, (1,))], cluster=cluster.scheduler_address))


def end_process(code):
    os._exit(code)


def test_a_killed_process_of_this_machine_raises_an_input_error():
    with pytest.raises(InputError, match="a worker process was killed"):
        list(results_of([(end_process, (1,)), (double, (1,))], workers=2))


def test_an_address_without_a_scheduler_is_named(monkeypatch, distributed):
    monkeypatch.setattr(dask, "PATIENCE", 1)
    with pytest.raises(InputError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        list(results_of([(double, (1,))], cluster="tcp://127.0.0.1:9"))


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tiny_plan import tiny
from jigsaw_crl.truth.experiments.reproduce import run_plan
run_plan(tiny(replicates=200), Path(sys.argv[1]), workers=1, progress=lambda d, t: None)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a kill that cannot be caught")
def test_a_killed_run_leaves_complete_files_only(tmp_path):
    here = os.path.dirname(__file__)
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path), here])
    folder = tmp_path / "figures" / "replicates"
    while process.poll() is None and len(list(folder.glob("*.json"))) < 12:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert len(list(folder.glob("*.json"))) >= 12
    resumed = reproduce.run_plan(tiny(), tmp_path, progress=silent)
    fresh = reproduce.run_plan(tiny(), tmp_path / "fresh", progress=silent)
    assert numbers(resumed) == numbers(fresh)
    with resumed.csv.open(newline="") as file:
        assert len(list(csv.reader(file))) == 1 + len(tiny().evaluations())


def test_progress_without_a_terminal_is_a_few_lines_on_stderr(capsys):
    with progress_bar("work") as advance:
        for done in range(101):
            advance(done, 100)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1] == "work: 100 of 100"
    assert len(err.splitlines()) == 11
