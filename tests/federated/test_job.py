"""The job of a round."""

from __future__ import annotations

import json
from importlib import import_module

import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.kits import CONTROLLER, EXECUTOR, GUARD
from jigsaw_crl.federated.running import TASK, write_job
from jigsaw_crl.federated.settings import RoundOptions


def test_the_job_carries_no_code_and_no_path(tmp_path):
    job = write_job(tmp_path / "job", RoundOptions("first"))
    files = sorted(str(p.relative_to(job)) for p in job.rglob("*") if p.is_file())
    assert files == [
        "app/config/config_fed_client.json", "app/config/config_fed_server.json", "meta.json",
    ]  # fmt: skip
    client = json.loads((job / "app/config/config_fed_client.json").read_text())
    assert client["executors"] == [
        {"tasks": [TASK], "executor": {"path": EXECUTOR, "args": {}}},
    ]


@pytest.mark.parametrize("path", [CONTROLLER, EXECUTOR, GUARD])
def test_the_classes_that_jobs_and_kits_name_are_where_they_say(path):
    pytest.importorskip("nvflare", reason="NVFlare is an optional extra")
    module, _, name = path.rpartition(".")
    assert getattr(import_module(module), name).__module__ == module


def test_the_controller_gets_the_options_that_the_job_carries(tmp_path):
    pytest.importorskip("nvflare", reason="NVFlare is an optional extra")
    from jigsaw_crl.federated.components import GatherFragments

    options = RoundOptions("first", min_sites=2, timeout=9)
    job = write_job(tmp_path / "job", options)
    server = json.loads((job / "app/config/config_fed_server.json").read_text())
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
