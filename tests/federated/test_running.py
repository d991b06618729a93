"""How participants and rounds are started, and how a round is waited for."""

from __future__ import annotations

import json
import shutil

import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.cli import app as cli
from jigsaw_crl.federated.kits import CONTROLLER, EXECUTOR
from jigsaw_crl.federated.running import (
    TASK,
    RoundEnd,
    find_record,
    start_command,
    wait_for_job,
    write_job,
)
from jigsaw_crl.federated.settings import RoundOptions, RoundRecord, Standing

from .conftest import read_local

pytestmark = pytest.mark.usefixtures("nvflare")


def test_a_coordinator_whose_kit_was_moved_keeps_its_jobs_in_the_kit(made, tmp_path):
    moved = shutil.copytree(made.coordinator, tmp_path / "elsewhere")
    command = start_command(moved)
    assert str(moved / "storage" / "jobs") in json.dumps(read_local(moved, "resources.json"))
    assert str(moved) in command
    assert "secure_train=true" in command


def test_a_site_is_started_under_the_name_in_its_certificate(made):
    assert "uid=lab-2" in start_command(made.sites["lab-2"])


@pytest.mark.parametrize("command", ["start", "submit"])
def test_a_folder_that_is_not_a_kit_is_refused_in_one_line(command, tmp_path, capsys):
    more = ["--round", "r"] if command == "submit" else []
    assert cli.run(["federate", command, str(tmp_path), *more]) == 2
    err = capsys.readouterr().err
    assert "is not the kit of" in err
    assert len(err.splitlines()) == 1


# -- the job of a round ---------------------------------------------------------------------------


def test_the_job_carries_the_options_and_no_code_and_no_path(tmp_path):
    from jigsaw_crl.federated.components import GatherFragments

    options = RoundOptions("first", min_sites=2, timeout=9)
    job = write_job(tmp_path / "job", options)
    assert {str(p.relative_to(job)) for p in job.rglob("*") if p.is_file()} == {
        "app/config/config_fed_client.json", "app/config/config_fed_server.json", "meta.json",
    }  # fmt: skip
    config = job / "app" / "config"
    client = json.loads((config / "config_fed_client.json").read_text())
    server = json.loads((config / "config_fed_server.json").read_text())
    assert client["executors"] == [{"tasks": [TASK], "executor": {"path": EXECUTOR, "args": {}}}]
    (workflow,) = server["workflows"]
    assert workflow["path"] == CONTROLLER
    assert GatherFragments(**workflow["args"]).options == options


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"round_name": "../up"}, "round's name"),
        ({"round_name": "r", "min_sites": 0}, "min_sites is 0"),
        ({"round_name": "r", "timeout": 0}, "timeout is 0"),
    ],
)
def test_impossible_options_are_refused(options, says):
    with pytest.raises(InputError, match=says):
        RoundOptions(**options)


class Hanging:
    """A session whose job does not end unless it is aborted, and a deaf one not even then."""

    def __init__(self, deaf):
        self.deaf, self.aborted = deaf, 0

    def monitor_job_and_return_job_meta(self, *arguments, **options):
        from nvflare.fuel.flare_api.flare_api import Session

        return Session.monitor_job_and_return_job_meta(self, *arguments, **options)

    def get_job_meta(self, _):
        ended = self.aborted and not self.deaf
        return {"status": "FINISHED:ABORTED" if ended else "RUNNING"}

    def abort_job(self, _):
        self.aborted += 1


@pytest.mark.parametrize(
    ("deaf", "grace", "status"),
    [(False, 600, "FINISHED:ABORTED"), (True, 0.2, "ABORTED AT THE DEADLINE")],
)
def test_a_job_that_hangs_is_aborted_once_at_the_deadline(deaf, grace, status):
    session = Hanging(deaf)
    assert wait_for_job(session, "job", 0.1, poll=0.01, grace=grace) == status
    assert session.aborted == 1
    assert not RoundEnd("job", status, 1.0).ok


# -- the end of a round, as the submitter sees it -------------------------------------------------


def record(*states, failure=None):
    sites = {f"lab-{i}": Standing(state=state, why="why") for i, state in enumerate(states)}
    times = {"started_at": "2026-01-01", "ended_at": "2026-01-02"}
    return RoundRecord(round="first", failure=failure, sites=sites, **times)


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (record("received", "kept"), 0),
        (record("received", "missing"), 3),
        (record("received", "refused"), 3),
        (record("missing", failure="too few"), 2),
        (None, 2),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_the_exit_code_tells_complete_incomplete_and_failed_rounds_apart(
    made, code, as_json, capsys, monkeypatch
):
    end = RoundEnd("job", "FINISHED:COMPLETED", 1.0, made)
    monkeypatch.setattr("jigsaw_crl.federated.running.submit_round", lambda *_, **__: end)
    options = ["--round", "first", *(["--json"] if as_json else [])]
    assert cli.run(["federate", "submit", "kit", *options]) == code
    said = capsys.readouterr()
    if as_json:
        state = json.loads(said.out)["state"]
        assert (state is None) == (made is None)
    elif made is not None:
        for site, standing in made.sites.items():
            assert f"{site}\t{standing.state}\twhy" in said.out
    if code == 2:
        assert len(said.err.splitlines()) == 1
        assert ("too few" if made else "did not begin it") in said.err


def test_the_record_is_waited_for_a_moment():
    done = record("received")

    class Late:
        asked = 0

        def get_job_meta(self, _):
            self.asked += 1
            return {"jigsaw_state": done.model_dump()} if self.asked > 2 else {}

    assert find_record(Late(), "job", poll=0.01, grace=5) == done
    assert find_record(Late(), "job", poll=0.01, grace=0) is None
