"""Two cells of the fault matrix of a round: the submitter and the process of the round killed."""

from __future__ import annotations

import importlib

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nvflare")]


@pytest.fixture(scope="module")
def faults():
    """The benchmark as a module."""
    return importlib.import_module("round_faults")


@pytest.fixture(scope="module")
def live(faults, tmp_path_factory):
    deployment = faults.start(tmp_path_factory.mktemp("deployment"))
    yield deployment
    deployment.close()


def test_a_round_goes_on_without_the_person_who_started_it(faults, live):
    found = faults.fault(live, "cut-off", "submitter", "asked")
    assert found["result"]
    assert set(found["states"].values()) == {"received"}
    assert found["again"] == 0


def test_a_round_whose_process_is_killed_ends_and_can_be_run_again(faults, live):
    found = faults.fault(live, "killed", "coordinator's round", "asked")
    assert (found["exit"], found["result"]) == (2, False)
    assert "ended before the round did" in found["said"]
    assert found["again"] == 0
    assert set(found["states_again"].values()) == {"received"}
