"""The paper's experiments: resumable, the same on any number of workers, and their pages."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.truth.experiments import reproduce
from jigsaw_crl.truth.experiments.plan import plan_of

from .tiny_plan import numbers, tiny


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    return out, reproduce.run_plan(tiny(), out)


@pytest.fixture
def fresh(monkeypatch):
    """The tasks that are not taken from an earlier run: each computes the errors once per τ."""
    tasks, error = [], reproduce.subspace_error

    def counted(*arguments):
        tasks.append(arguments)
        return error(*arguments)

    monkeypatch.setattr(reproduce, "subspace_error", counted)
    return tasks


@pytest.mark.slow
def test_the_numbers_do_not_depend_on_the_number_of_workers(finished, tmp_path):
    _, alone = finished
    together = reproduce.run_plan(tiny(), tmp_path, workers=2)
    assert numbers(together) == numbers(alone)


@pytest.mark.slow
def test_a_finished_run_is_not_repeated_and_grows_by_what_is_new(finished, fresh, tmp_path):
    # In a copy: other tests compare theirs with the run as it was.
    out, before = tmp_path / "again", numbers(finished[1])
    shutil.copytree(finished[0], out)
    assert numbers(reproduce.run_plan(tiny(), out)) == before
    assert fresh == []
    more = reproduce.run_plan(tiny(methods=("paper", "null-cone")), out)
    assert len(fresh) == len(tiny().tasks("evaluation"))
    assert [row for row in numbers(more) if row["method"] == "paper"] == before


def test_results_of_other_code_are_not_used(tmp_path, fresh, monkeypatch):
    plan = tiny(replicates=1, calibration_runs=0, sizes=(1000,))
    reproduce.run_plan(plan, tmp_path)
    monkeypatch.setattr(reproduce, "code_hash", lambda: "another")
    reproduce.run_plan(plan, tmp_path)
    assert len(fresh) == 2 * len(plan.tasks("evaluation"))


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tiny_plan import tiny
from jigsaw_crl.truth.experiments.reproduce import run_plan
run_plan(tiny(replicates=200), Path(sys.argv[1]))
"""


@pytest.mark.slow
def test_a_killed_run_resumes(tmp_path, finished):
    here = str(Path(__file__).parent)
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path), here])
    folder = tmp_path / "replicates"
    while process.poll() is None and len(list(folder.rglob("output.pkl"))) < 12:
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL, "it ended before it was killed"
    assert numbers(reproduce.run_plan(tiny(), tmp_path)) == numbers(finished[1])


def _end_process(*_):
    os._exit(1)


@pytest.mark.slow
def test_a_killed_worker_raises_an_input_error():
    with pytest.raises(InputError, match="a worker process was killed"):
        reproduce._results(_end_process, [(1,), (2,)], 2, "test")


# -- pages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda _: plan_of("pictures", quick=True), "no experiment 'pictures'"),
        (lambda out: reproduce.run_plan(tiny(methods=("guess",)), out), "no method 'guess'"),
        (lambda _: plan_of("tables", quick=True, only=["A"]), "no part of the tables 'A'"),
    ],
)
def test_an_unknown_experiment_or_method_is_refused(call, says, tmp_path):
    with pytest.raises(InputError, match=says):
        call(tmp_path)
