"""How participants and rounds are started, and what the submitter hears."""

import json
import shutil

import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.cli import app as cli
from jigsaw_crl.federated.running import start_command
from jigsaw_crl.federated.settings import RoundOptions, RoundRecord, Standing

pytestmark = pytest.mark.usefixtures("nvflare")


def test_a_kit_that_was_moved_is_started_from_where_it_is(made, tmp_path):
    command = start_command(shutil.copytree(made.coordinator, tmp_path / "elsewhere"))
    assert str(tmp_path / "elsewhere") in command
    assert "secure_train=true" in command


@pytest.mark.parametrize(
    "wrong",
    [{"round_name": "../up"}, {"timeout": 0}, {"timeout": 10**5000}, {"deadline": -1.0}, {"x": 1}],
)
def test_options_that_are_none_are_refused(wrong):
    with pytest.raises(InputError, match="request for a round"):
        RoundOptions.from_document({"round_name": "first", **wrong})


def record(*states, failure=None):
    sites = {f"lab-{i}": Standing(state=state, why="why") for i, state in enumerate(states)}
    times = {"started_at": "2026-01-01", "ended_at": "2026-01-02"}
    return RoundRecord(round="first", failure=failure, sites=sites, **times)


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (record("received", "received"), 0),
        (record("received", "missing"), 3),
        (record("received", "refused"), 3),
        (record("missing", failure="too few"), 2),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_the_exit_code_tells_complete_incomplete_and_failed_rounds_apart(
    made, code, as_json, capsys, monkeypatch
):
    monkeypatch.setattr("jigsaw_crl.federated.running.submit_round", lambda *_, **__: made)
    options = ["--round", "first", *(["--json"] if as_json else [])]
    assert cli.run(["federate", "submit", "kit", *options]) == code
    said = capsys.readouterr()
    if as_json:
        assert set(json.loads(said.out)["state"]["sites"]) == set(made.sites)
    else:
        for site, standing in made.sites.items():
            assert f"{site}\t{standing.state}\twhy" in said.out
    if code == 2:
        assert len(said.err.splitlines()) == 1
        assert "too few" in said.err


@pytest.mark.parametrize("command", ["start", "submit"])
def test_a_folder_that_is_not_a_kit_is_refused_in_one_line(command, tmp_path, refused):
    more = ["--round", "r"] if command == "submit" else []
    refused(["federate", command, tmp_path, *more], "is not the kit of")
