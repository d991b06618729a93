"""How participants and rounds are started, and how a round is waited for."""

from __future__ import annotations

import json
import shutil

import pytest

from jigsaw_crl.cli import app as cli

pytest.importorskip("nvflare", reason="NVFlare is an optional extra")

from nvflare.fuel.flare_api.flare_api import Session

from jigsaw_crl.federated.running import RoundEnd, start_command, wait_for_job

from .conftest import read_local


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


class Hanging:
    """A session whose job does not end unless it is aborted, and a deaf one not even then."""

    monitor_job_and_return_job_meta = Session.monitor_job_and_return_job_meta

    def __init__(self, deaf):
        self.deaf, self.aborted = deaf, 0

    def get_job_meta(self, _):
        ended = self.aborted and not self.deaf
        return {"status": "FINISHED:ABORTED" if ended else "RUNNING"}

    def abort_job(self, _):
        self.aborted += 1


@pytest.mark.parametrize(
    ("deaf", "status"), [(False, "FINISHED:ABORTED"), (True, "ABORTED AT THE DEADLINE")]
)
def test_a_job_that_hangs_is_aborted_once_at_the_deadline(deaf, status):
    session = Hanging(deaf)
    assert wait_for_job(session, "job", 0.1, poll=0.01, grace=0.2) == status
    assert session.aborted == 1
    assert not RoundEnd("job", status, 1.0).ok
