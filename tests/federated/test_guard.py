"""Who the coordinator listens to, who may start rounds, and what a site answers to whom."""

import errno
import json
import threading
import time
from importlib import import_module
from types import SimpleNamespace

import pytest

from jigsaw_crl.base import files
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.answer import check_answer
from jigsaw_crl.federated.ledger import Ledger, now
from jigsaw_crl.federated.round import Gathering, end_round
from jigsaw_crl.federated.settings import (
    COORDINATOR_FILE,
    SITE_FILE,
    RoundOptions,
    RoundRecord,
    coordinator_settings,
)

from .conftest import SITES
from .deployment import self_signed

pytestmark = pytest.mark.usefixtures("nvflare")

ADMIN = "coordinator@jigsaw.local"


def nv():
    """The module of the components, with NVFlare's names, which takes a second to load."""
    return import_module("jigsaw_crl.federated.components")


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """A certificate of each participant, with its digest."""
    found = {}
    for name in (*SITES, ADMIN):
        path, _ = self_signed(tmp_path_factory.mktemp("certificates"), name)
        found[name] = path.read_bytes(), nv().certificate_digest(path.read_bytes())
    return found


@pytest.fixture
def guard(shown, tmp_path):
    """A coordinator's guard, whose settings list three sites and the admin."""
    made = nv().Guard()
    made.cell = SimpleNamespace(requests_dict={})
    made.local = tmp_path / "local"
    made.local.mkdir()
    listed = {"admin": ADMIN, "sites": SITES, "results": "results"}
    certificates = {name: digest for name, (_, digest) in shown.items()}
    write_settings(made, **listed, certificates=certificates)
    return made


def write_settings(guard, **given):
    (guard.local / COORDINATOR_FILE).write_text(json.dumps(given))


def change_settings(guard, **changes):
    path = guard.local / COORDINATOR_FILE
    write_settings(guard, **{**json.loads(path.read_text()), **changes})


def message(headers=(), body=None):
    return nv().Message(dict(headers), body)


def log_in(guard, name, shown, token=None):
    """The code of the coordinator's reply to somebody who shows a certificate."""
    h, certificate = nv(), shown[name][0]
    request = message(
        {h.CellMessageHeaderKeys.CLIENT_NAME: name}, {h.IdentityChallengeKey.CERT: certificate}
    )
    granted = {h.CellMessageHeaderKeys.TOKEN: token or f"token of {name}"}
    done = message({h.MessageHeaderKey.RETURN_CODE: h.ReturnCode.OK}, granted)
    return guard.register(request, lambda _: done).get_header(h.MessageHeaderKey.RETURN_CODE)


def request_from(who, **changes):
    """A heartbeat of this participant; the changes say what is forged in it."""
    h = nv()
    said = {"origin": who, "name": who, "token": f"token of {who}", "to": "server", "type": "req"}
    said |= {"connection": who, "certificate": who, "place": ("task", "heart_beat"), **changes}
    headers = {
        h.MessageHeaderKey.MSG_TYPE: said["type"],
        h.MessageHeaderKey.ORIGIN: said["origin"],
        h.MessageHeaderKey.DESTINATION: said["to"],
        h.MessageHeaderKey.CHANNEL: said["place"][0],
        h.MessageHeaderKey.TOPIC: said["place"][1],
        h.CellMessageHeaderKeys.CLIENT_NAME: said["name"],
        h.CellMessageHeaderKeys.TOKEN: said["token"],
    }
    if len(said["place"]) == 4:
        _, _, headers[h.StreamHeaderKey.CHANNEL], headers[h.StreamHeaderKey.TOPIC] = said["place"]
        headers[h.StreamHeaderKey.STREAM_REQ_ID] = said.get("request")
        headers[h.StreamHeaderKey.STREAM_ID] = said.get("stream", 7)
        headers[h.StreamHeaderKey.PAYLOAD_ENCODING] = said.get("encoding", "bytes")
    one = message(headers)
    one.set_prop(h.MessagePropKey.ENDPOINT, SimpleNamespace(name=said["connection"]))
    one.set_prop(h.MessagePropKey.COMMON_NAME, said["certificate"])
    return one


def passes(guard, who, **changes):
    return guard.check(request_from(who, **changes)) is None


# -- who is listened to ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "forged",
    [
        {"origin": "client-2"},
        {"origin": "server"},
        {"name": "client-2"},
        {"name": "client-2", "token": "token of client-2"},
        {"name": "server", "token": "server"},
        {"token": "token of client-2"},
        {"token": None},
        {"to": "client-2"},
        {"to": "server.job"},
        {"connection": "client-2"},
        {"certificate": "client-2"},
        {"certificate": None},
        {"token": None, "place": ("jigsaw", "register")},
        {"token": None, "type": "reply"},
    ],
)
def test_a_message_passes_only_from_the_one_whose_certificate_the_connection_has(
    forged, guard, shown
):
    """NVFlare itself takes the sender, and a message to another site, from the message."""
    for name in SITES[:2]:
        assert log_in(guard, name, shown) == "ok"
        assert passes(guard, name)
    assert not passes(guard, "client-1", **forged)
    # What comes before the log-in is NVFlare's to check.
    assert passes(guard, "client-3", token=None, place=("task", "register"))


# A part of something larger; what it is a part of follows.
PART = ("sm__STREAM", "sm__DATA")


@pytest.mark.parametrize(
    ("place", "at_coordinator", "at_site"),
    [
        (("task", "heart_beat"), True, False),
        (("cellnet.channel", "bye"), True, True),
        (("sm__STREAM", "sm__ACK"), True, True),
        ((*PART, "return_only", "jigsaw:fragment"), False, False),
        ((*PART, "jigsaw", "state"), False, False),
        ((*PART, "hci_channel", "command"), False, False),
        # What is open before a log-in is not open in parts, nor the other way round.
        ((*PART, "task", "register"), False, False),
        ((*PART, "task", "heart_beat"), False, False),
        (("jigsaw", "fragment"), False, False),
        (("jigsaw", "state"), False, False),
        ((*PART, "jigsaw", "fragment"), False, True),
        # NVFlare's own, of which a round needs none.
        (("admin", "sys.shell"), False, False),
        (("admin", "train.deploy"), False, False),
        (("_net_manager", "stop_cell"), False, False),
        (("cellnet.channel", "bulk"), False, False),
        (("server_parent_listener", "heartbeat"), False, False),
        ((*PART, "aux_communication", "fed.event"), False, False),
        ((*PART, "server_command", "submit_update"), False, False),
        (PART, False, False),
    ],
)
def test_each_side_lets_pass_what_a_round_needs_and_no_other_request(
    place, at_coordinator, at_site, guard, shown
):
    log_in(guard, "client-1", shown)
    assert passes(guard, "client-1", place=place) == at_coordinator
    asked = request_from("server", place=place)
    assert (nv().Site().check(asked) is None) == at_site
    # The admin may start rounds, and ask who is connected.
    log_in(guard, ADMIN, shown)
    own = {(*PART, "jigsaw", "state"), (*PART, "hci_channel", "command")}
    assert passes(guard, ADMIN, place=place) == (at_coordinator or place in own)
    # A reply is for who waits for it.
    assert nv().Site().check(request_from("server", place=place, type="reply")) is None


def test_a_site_sends_one_text_for_each_request_and_nothing_else(guard, shown):
    """Each stream holds a thread of the coordinator; objects are decoded before they are seen."""
    log_in(guard, "client-1", shown)
    place = (*PART, "return_only", "jigsaw:fragment")
    assert not passes(guard, "client-1", place=place, request="r")
    guard.cell.requests_dict["r"] = None
    assert not passes(guard, "client-1", place=place, request="r", encoding="fobs")
    assert not passes(guard, "client-1", place=place)
    for _ in range(3):
        assert passes(guard, "client-1", place=place, request="r", stream=1)
        assert not passes(guard, "client-1", place=place, request="r", stream=2)


def test_a_renewed_or_revoked_certificate_ends_what_runs_at_once(guard, shown):
    for name in (*SITES, ADMIN):
        log_in(guard, name, shown)
        assert passes(guard, name)
    listed = coordinator_settings(guard.local).certificates
    change_settings(guard, certificates={**listed, "client-1": "0" * 64})
    assert not passes(guard, "client-1")
    assert log_in(guard, "client-1", shown) == "unauthenticated"
    del listed["client-2"]
    change_settings(guard, sites=["client-1", "client-3"], certificates=listed)
    assert not passes(guard, "client-2")
    assert log_in(guard, "client-2", shown) == "unauthenticated"
    assert passes(guard, "client-3")


def test_with_broken_settings_nobody_is_listened_to(guard, shown):
    log_in(guard, "client-1", shown)
    path = guard.local / COORDINATOR_FILE
    for text in (path.read_text()[:40], "", "{}"):
        path.write_text(text)
        assert not passes(guard, "client-1")
        assert log_in(guard, "client-1", shown) == "unauthenticated"
    path.unlink()
    assert not passes(guard, "client-1")


def started_again(guard):
    """The guard of a coordinator that was started again, with the same settings."""
    again = nv().Guard()
    registered = {}
    cell = SimpleNamespace(
        core_cell=SimpleNamespace(add_incoming_filter=lambda *_: None),
        register_request_cb=lambda *, topic, **given: registered.update({topic: given}),
    )
    server = SimpleNamespace(register_client=None)
    workspace = SimpleNamespace(get_site_config_dir=lambda: str(guard.local))
    context = SimpleNamespace(
        get_engine=lambda: SimpleNamespace(get_cell=lambda: cell, server=server),
        get_prop=lambda _: workspace,
    )
    again.handle_event(nv().EventType.SYSTEM_START, context)
    assert set(registered) == {"register", "start", "state"}
    return again


def test_after_a_restart_sites_need_not_log_in_and_old_log_ins_do_not_count(guard, shown):
    """NVFlare takes a log-in of any age; the coordinator forgets those of older certificates."""
    for name in (*SITES, ADMIN):
        log_in(guard, name, shown)
    log_in(guard, "client-3", shown, token="a later one")
    listed = coordinator_settings(guard.local).certificates
    change_settings(guard, certificates={**listed, "client-2": "0" * 64})
    again = started_again(guard)
    assert passes(again, "client-1")
    assert not passes(again, "client-2")
    # NVFlare has one log-in of a site, the last.
    assert not passes(again, "client-3")
    assert passes(again, "client-3", token="a later one")
    assert not passes(again, ADMIN)
    # Of the tokens, only digests are kept.
    assert "token of" not in (guard.local / nv().TOKENS_FILE).read_text()
    (guard.local / nv().TOKENS_FILE).write_text("[")
    assert not passes(started_again(guard), "client-1")


# -- who may start rounds -------------------------------------------------------------------------
def asks(guard, what, sender, **options):
    """The error with which the coordinator refuses a round; "" if it begins, or tells its state."""
    text = RoundOptions(**{"round_name": "first", **options}).model_dump_json()
    request = message({nv().CellMessageHeaderKeys.CLIENT_NAME: sender}, text.encode())
    reply = guard.reply(request, getattr(guard, what))
    return reply.get_header(nv().MessageHeaderKey.ERROR) or ""


def test_only_the_admin_starts_rounds_one_at_a_time_and_none_twice(guard, monkeypatch):
    begun = threading.Event()
    monkeypatch.setattr(guard, "_run", lambda *_: begun.set())
    for sender in (*SITES, "other@jigsaw.local", "", None):
        for what in ("start", "state"):
            assert "somebody else asks" in asks(guard, what, sender)
    assert not (guard.local.parent / "results").exists()
    assert asks(guard, "start", ADMIN) == ""
    assert begun.wait(60)
    assert "the round 'first' is running" in asks(guard, "start", ADMIN, round_name="second")
    guard.running = None
    folder = coordinator_settings(guard.local).results / "first"
    record = RoundRecord.read(folder)
    assert record.ended_at is None
    record.model_copy(update={"ended_at": now()}).save(folder)
    assert "'first' has a result" in asks(guard, "start", ADMIN)
    assert asks(guard, "start", ADMIN, again=True) == ""


def test_a_request_that_is_no_request_is_refused(guard):
    for body in (None, b"", b"\xff", b'{"round_name": "../up"}', b'{"round_name": "a", "x": 1}', 7):
        request = message({nv().CellMessageHeaderKeys.CLIENT_NAME: ADMIN}, body)
        for do in (guard.start, guard.state):
            assert guard.reply(request, do).get_header(nv().MessageHeaderKey.ERROR)
    assert guard.running is None


def test_a_round_whose_process_was_killed_is_ended_with_the_reason_and_a_whole_one_is_kept(
    settings,
):
    Gathering.open(settings, "first")
    record = RoundRecord.read(settings.results / "first")
    assert record.ended_at is None
    assert {site: s.state for site, s in record.sites.items()} == dict.fromkeys(SITES, "missing")
    assert end_round(settings, "first", running=True) == record
    ended = end_round(settings, "first")
    assert "ended before the round did" in ended.failure
    assert ended == RoundRecord.read(settings.results / "first")
    # It can be run again. Once it has ended with a result, nothing changes it.
    Gathering.open(settings, "first")
    done = record.model_copy(update={"ended_at": "2026-01-02"})
    done.save(settings.results / "first")
    assert end_round(settings, "first") == done
    with pytest.raises(InputError, match="has a result"):
        Gathering.open(settings, "first")
    Gathering.open(settings, "first", again=True)


# -- what sites say -------------------------------------------------------------------------------
def answered(guard, replies, process=None, **options):
    """What the coordinator hears of each site, and after how many seconds."""

    def send_request(*, target, abort_signal, **_):
        while replies[target] is None and not abort_signal.triggered:
            time.sleep(0.01)
        if isinstance(replies[target], Exception):
            raise replies[target]
        return replies[target] or message({"cn__return_code": "timeout"})

    guard.cell = SimpleNamespace(send_request=send_request)
    process = process or SimpleNamespace(poll=lambda: None)
    given = RoundOptions(**{"round_name": "first", "timeout": 1, **options})
    began = time.monotonic()
    found = {site: said for site, *said in guard._answers(list(replies), given, process)}
    return found, time.monotonic() - began


def reply(site, body=b"fragment", code="ok"):
    headers = {nv().MessageHeaderKey.RETURN_CODE: code, nv().MessageHeaderKey.ORIGIN: site}
    return message(headers, body)


def test_a_site_that_never_ends_its_answer_is_left_out_when_the_time_is_over(guard):
    found, seconds = answered(guard, {"client-1": None, "client-2": reply("client-2")})
    assert found == {"client-2": ["fragment", ""]}
    assert 1 <= seconds < 30


def test_what_a_site_sends_cannot_end_the_round_nor_count_for_another_site(guard):
    replies = {
        "client-1": reply("client-2"),
        "client-2": reply("client-2", b"\xff"),
        "client-3": reply("client-3", {"a": 1}),
        # As a number of bytes it would be a terabyte.
        "client-7": reply("client-7", 10**12),
        "client-4": reply("client-4", code="process_exception"),
        "client-5": RuntimeError("it cannot be decoded"),
        "client-6": reply("client-6", code="timeout"),
    }
    found, _ = answered(guard, replies, timeout=60)
    assert found.pop("client-2") == ["\ufffd", ""]
    assert {text for text, _ in found.values()} == {None}
    assert "could not answer" in found["client-1"][1]
    assert "cannot be read" in found["client-3"][1]
    assert "cannot be read" in found["client-7"][1]
    assert "process_exception" in found["client-4"][1]
    assert "RuntimeError" in found["client-5"][1]
    assert "sent far too much (timeout)" in found["client-6"][1]


def test_of_an_answer_above_the_limit_no_more_is_decoded_than_is_needed_to_refuse_it(guard):
    """As text, bytes that are none take several times their room."""
    change_settings(guard, most_bytes=1_000)
    hub = coordinator_settings(guard.local)
    for data in (b"\xff" * 1_001, b"\xff" * 10**6, b"x" * 10**6, "\u20ac".encode() * 10**5):
        found, _ = answered(guard, {"client-1": reply("client-1", data)}, timeout=60)
        text, _ = found["client-1"]
        assert len(text) <= 1_001
        with pytest.raises(InputError, match="oversized"):
            check_answer(text, "client-1", "first", hub, Ledger(guard.local / "log.jsonl"))
    found, _ = answered(guard, {"client-1": reply("client-1", b"x" * 1_000)}, timeout=60)
    assert found == {"client-1": ["x" * 1_000, ""]}


def test_a_round_that_cannot_be_noted_does_not_begin(guard, monkeypatch):
    """Else the submitter would be told how an earlier run of it has ended."""
    folder = coordinator_settings(guard.local).results / "first"
    record = Gathering.open(coordinator_settings(guard.local), "first").record
    record.model_copy(update={"ended_at": now()}).save(folder)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "replace", full)
        assert "No space left" in asks(guard, "start", ADMIN, again=True)
    assert guard.running is None
    assert RoundRecord.read(folder).closed


def test_nobody_is_waited_for_when_the_process_of_the_round_was_killed(guard):
    killed = SimpleNamespace(poll=lambda: -9)
    found, seconds = answered(guard, {"client-1": None}, killed, timeout=600)
    assert found == {}
    assert seconds < 60


def test_a_site_answers_the_coordinator_alone(sites, tmp_path):
    """Another site could send it a request through the coordinator."""
    (tmp_path / "local").mkdir()
    own = {"fragment": str(sites["client-1"].fragment)}
    (tmp_path / "local" / SITE_FILE).write_text(json.dumps(own))
    for origin, body, code in (
        ("server", b"first", "ok"),
        ("client-2", b"first", "process_exception"),
        ("server.job", b"first", "process_exception"),
        ("server", b"../up", "process_exception"),
        ("server", b"\xff", "process_exception"),
        ("server", None, "process_exception"),
        ("server", 10**12, "process_exception"),
    ):
        request = message({nv().MessageHeaderKey.ORIGIN: origin}, body)
        said = nv().Site().answer(request, "client-1", tmp_path / "local")
        assert said.get_header(nv().MessageHeaderKey.RETURN_CODE) == code
        assert (said.payload is None) == (code != "ok")
