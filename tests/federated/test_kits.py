"""Kits trust little: what is written in them, and how a round is followed."""

from __future__ import annotations

import json
import stat
import time

import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.cli import app as cli

pytest.importorskip("nvflare", reason="NVFlare is an optional extra")

from jigsaw_crl.federated import running
from jigsaw_crl.federated.job import CONTROLLER, EXECUTOR
from jigsaw_crl.federated.kits import init_federation
from jigsaw_crl.federated.running import start_command

SITES = ("lab-1", "lab-2")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kits") / "federation"
    return init_federation(folder, SITES, server="hub.example.org", port=9123)


def read(kit, name):
    return json.loads((kit / "local" / name).read_text())


def test_a_site_accepts_our_class_and_no_code_no_shell_no_log_streaming(made):
    for kit in made.sites.values():
        resources = read(kit, "resources.json")
        assert resources["class_allow_list"] == [EXECUTOR]
        assert resources["class_list_enforcement_mode"] == "enforce"
        assert resources["allow_log_streaming"] is False
        assert not [c for c in resources["components"] if "log" in c["path"].lower()]
        roles = read(kit, "authorization.json")["permissions"]
        assert roles["project_admin"]["byoc"] == "none"
        assert roles["project_admin"]["shell_commands"] == "none"
        assert roles["project_admin"]["operate"] == "none"
        assert {roles[r] for r in ("org_admin", "lead", "member")} == {"none"}


def test_the_path_of_the_fragment_is_not_where_nvflare_would_announce_it(made):
    """Further entries of resources.json are sent to the server when a site registers."""
    kit = made.sites["lab-1"]
    assert "fragment" not in (kit / "local" / "resources.json").read_text().replace(EXECUTOR, "")
    assert read(kit, "jigsaw-site.json") == {"fragment": "fragment.json"}


def test_the_coordinator_accepts_our_class_and_keeps_its_jobs_in_its_kit(made):
    resources = read(made.coordinator, "resources.json")
    assert resources["class_allow_list"] == [CONTROLLER]
    assert "/tmp/nvflare" not in json.dumps(resources)
    assert read(made.coordinator, "authorization.json")["permissions"]["project_admin"]["byoc"] == (
        "none"
    )
    assert read(made.coordinator, "jigsaw-coordinator.json")["sites"] == list(SITES)


def test_a_site_on_a_busy_machine_has_time_to_accept_a_round(made):
    """NVFlare's own limit would leave it out after ten seconds, whatever the round's timeout."""
    config = json.loads((made.coordinator / "startup" / "fed_server.json").read_text())
    assert config["servers"][0]["admin_timeout"] >= 60


def test_private_keys_are_their_owner_s(made):
    keys = list(made.project.parent.rglob("*.key"))
    assert len(keys) == len(SITES) + 2
    assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}
    assert stat.S_IMODE(made.project.parent.stat().st_mode) == 0o700


def test_the_project_says_where_the_coordinator_is(made):
    project = json.loads(made.project.read_text())
    assert [p["name"] for p in project["participants"] if p["type"] == "client"] == list(SITES)
    client = json.loads((made.sites["lab-1"] / "startup" / "fed_client.json").read_text())
    assert client["servers"][0]["service"]["target"] == "hub.example.org:9123"
    assert client["client"]["connection_security"] == "mtls"


def test_a_kit_that_was_moved_still_keeps_its_jobs_in_itself(made, tmp_path):
    import shutil

    moved = shutil.copytree(made.coordinator, tmp_path / "elsewhere")
    command = start_command(moved)
    assert str(moved / "storage" / "jobs") in json.dumps(read(moved, "resources.json"))
    assert str(moved) in command
    assert "secure_train=true" in command


def test_a_site_is_started_under_the_name_in_its_certificate(made):
    assert "uid=lab-2" in start_command(made.sites["lab-2"])


@pytest.mark.parametrize(
    ("sites", "says"),
    [
        ([], "not distinct"),
        (["a", "a"], "not distinct"),
        (["localhost"], "not distinct"),
        (["../up"], "site's name"),
        (["a b"], "site's name"),
    ],
)
def test_names_that_cannot_be_are_refused(sites, says, tmp_path):
    with pytest.raises(InputError, match=says):
        init_federation(tmp_path / "new", sites)
    assert not (tmp_path / "new").exists()


def test_nothing_is_overwritten(made):
    with pytest.raises(InputError, match="something already"):
        init_federation(made.project.parent, SITES)


@pytest.mark.parametrize("command", ["start", "submit"])
def test_a_folder_that_is_no_kit_is_refused_in_one_line(command, tmp_path, capsys):
    more = ["--round", "r"] if command == "submit" else []
    assert cli.run(["federate", command, str(tmp_path), *more]) == 2
    err = capsys.readouterr().err
    assert "is no kit of" in err
    assert len(err.splitlines()) == 1


def test_without_nvflare_the_remedy_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert cli.run(["federate", "init", str(tmp_path / "x"), "--site", "a"]) == 2
    assert "pip install 'jigsaw-crl[federated]'" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["keygen", "init", "start", "submit", "simulate"])
def test_every_command_has_help_with_an_example(command, capsys):
    assert cli.run(["federate", command, "--help"]) == 0
    assert f"Example: jigsaw federate {command}" in capsys.readouterr().out


class Hanging:
    """A session whose job never ends, unless it is aborted."""

    def __init__(self, deaf):
        self.deaf, self.aborted = deaf, 0

    def get_job_meta(self, _):
        ended = self.aborted and not self.deaf
        return {"status": "FINISHED:ABORTED" if ended else "RUNNING"}

    def abort_job(self, _):
        self.aborted += 1


@pytest.mark.parametrize("deaf", [False, True])
def test_at_the_deadline_a_round_is_stopped_whatever_it_hangs_on(deaf, monkeypatch):
    monkeypatch.setattr(running, "_POLL", 0.01)
    monkeypatch.setattr(running, "_STOPPING", 0.2)
    session = Hanging(deaf)
    end = running._followed(session, "job", time.monotonic(), 0.1)
    assert session.aborted == 1
    assert not end.ok
