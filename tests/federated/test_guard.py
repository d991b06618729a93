"""The guard of the coordinator, with the parts of NVFlare that it touches."""

from __future__ import annotations

import json
from importlib import import_module
from types import SimpleNamespace

import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.round import begin_round, end_round
from jigsaw_crl.federated.settings import RoundRecord

from .conftest import SITES

pytestmark = pytest.mark.usefixtures("nvflare")


@pytest.fixture(scope="module")
def guard():
    """The module, which imports NVFlare."""
    return import_module("jigsaw_crl.federated.components")


class Engine:
    """What the guard needs of NVFlare's engine; it notes what happens to the job."""

    def __init__(self, pending=("client-1",)):
        self.pending, self.lost, self.passed_on = set(pending), [], []
        self.run_processes = {"job": {}}
        clients = {"token-1": SimpleNamespace(name="client-1")}
        self.server = SimpleNamespace(
            client_manager=SimpleNamespace(clients=clients),
            process_job_failure=self.passed_on.append,
        )
        self.job_runner = SimpleNamespace(
            is_client_outcome_pending=lambda _, site: site in self.pending,
            resolve_client_outcome=lambda _, site: self.pending.discard(site),
        )

    def notify_dead_job(self, job, site, _):
        self.lost.append((job, site))


def message(body, token="token-1"):
    from nvflare.fuel.f3.message import Message
    from nvflare.private.defs import CellMessageHeaderKeys

    return Message({CellMessageHeaderKeys.TOKEN: token}, body)


def report(code, token="token-1"):
    from nvflare.private.defs import JobFailureMsgKey

    return message({JobFailureMsgKey.JOB_ID: "job", JobFailureMsgKey.CODE: code}, token)


@pytest.fixture(scope="module")
def failures():
    """The codes that a site's client reports."""
    from nvflare.private.fed.client.client_executor import REPORTABLE_JOB_FAILURES

    return list(REPORTABLE_JOB_FAILURES)


def test_the_failure_of_a_site_is_told_to_the_round_and_does_not_end_it(guard, failures):
    for code in failures:
        engine = Engine()
        guard.Guard().site_failed(report(code), engine)
        assert engine.lost == [("job", "client-1")]
        assert engine.passed_on == []
        assert engine.pending == set()


def test_a_round_that_was_not_ready_to_hear_of_a_lost_site_is_told_again(guard, failures):
    """Else it would wait for the site until its deadline."""
    from nvflare.apis.event_type import EventType

    engine, own = Engine(), guard.Guard()
    own.site_failed(report(failures[0]), engine)
    context = SimpleNamespace(get_engine=lambda: engine)
    own.handle_event(EventType.CLIENT_HEARTBEAT_PROCESSED, context)
    assert engine.lost == [("job", "client-1")] * 2
    engine.run_processes.clear()
    own.handle_event(EventType.CLIENT_HEARTBEAT_PROCESSED, context)
    assert len(engine.lost) == 2


def test_other_reports_are_left_to_nvflare(guard, failures):
    for other in (report(0), report(failures[0], token="unknown"), message("no report")):
        engine = Engine()
        guard.Guard().site_failed(other, engine)
        assert engine.passed_on == [other]
        assert engine.lost == []


def test_in_a_round_no_return_code_and_no_event_of_a_site_is_fatal(guard):
    from nvflare.apis.shareable import ReturnCode
    from nvflare.widgets.fed_event import FED_EVENT_TOPIC

    runner = SimpleNamespace(ABORT_RETURN_CODES=["x"], handle_dead_job=None)
    table = {FED_EVENT_TOPIC: "nvflare's handler"}
    engine = SimpleNamespace(
        get_component=lambda _: runner,
        run_manager=SimpleNamespace(aux_runner=SimpleNamespace(topic_table=table)),
    )
    lost = []
    guard.guard_job(engine, lost.append)
    assert runner.ABORT_RETURN_CODES == []
    runner.handle_dead_job("client-2", None)
    assert lost == ["client-2"]
    reply = table[FED_EVENT_TOPIC](topic=FED_EVENT_TOPIC, request=None, fl_ctx=None)
    assert reply.get_return_code() == ReturnCode.OK


def test_a_job_goes_to_listed_sites_only_and_to_none_if_the_list_is_broken(guard, tmp_path):
    file = tmp_path / "local" / "jigsaw-coordinator.json"
    file.parent.mkdir()
    for text, left in ((json.dumps({"sites": SITES, "results": "r"}), set(SITES)), ('{"si', set())):
        file.write_text(text)
        wanted = dict.fromkeys([*SITES, "client-9"])
        guard.keep_listed(wanted, file.parent)
        assert set(wanted) == left


def test_a_round_whose_process_was_killed_is_ended_with_the_reason_and_a_whole_one_is_kept(
    settings,
):
    """What the guard writes before and after the process of a round."""
    begin_round(settings, "first")
    record = RoundRecord.read(settings.results / "first")
    assert record.ended_at is None
    assert {site: s.state for site, s in record.sites.items()} == dict.fromkeys(SITES, "missing")
    ended = end_round(settings, "first", "FINISHED:ABNORMAL")
    assert "ABNORMAL" in ended.failure
    assert ended == RoundRecord.read(settings.results / "first")
    # It can be run again. Once it has ended with a result, nothing changes it.
    begin_round(settings, "first")
    done = record.model_copy(update={"ended_at": "2026-01-02"})
    done.save(settings.results / "first")
    assert end_round(settings, "first", "FINISHED:ABNORMAL") == done
    with pytest.raises(InputError, match="has ended on 2026-01-02"):
        begin_round(settings, "first")
    begin_round(settings, "first", again=True)
