"""A live federation of separate processes with TLS on loopback, and what can go wrong in it.

The tests share one deployment and run in the order they are written, in one worker
(`tests/conftest.py`).
"""

import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys

import psutil
import pytest
import round_faults

import jigsaw_crl as jc
from jigsaw_crl.federated.settings import RoundOptions

from .deployment import (
    ADMIN,
    COORDINATOR,
    HANG,
    HERE,
    JIGSAW,
    OUTSIDER,
    SITES,
    Deployment,
    jigsaw,
    self_signed,
    wait_until,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nvflare")]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Three clients of setting A, each with rows of its own."""
    root = tmp_path_factory.mktemp("live") / "study"
    done = jigsaw("simulate", "--setting", "A", "--samples", 2000, "--out", root)
    assert done.returncode == 0, done.stderr
    for more in ("client-4", "client-5"):
        (root / f"{more}.parquet").unlink()
    return root


@pytest.fixture(scope="module")
def fragments(study):
    """Made by each site's own command, apart from the federation."""
    found = {}
    for site in SITES:
        path = study.parent / f"{site}.json"
        done = jigsaw("fragment", study / f"{site}.parquet", "-o", path)
        assert done.returncode == 0, done.stderr
        found[site] = path.read_text()
    return found


@pytest.fixture(scope="module")
def live(tmp_path_factory, fragments):
    deployment = Deployment(tmp_path_factory.mktemp("deployment"))
    try:
        for site, text in fragments.items():
            (deployment.kits / site / "fragment.json").write_text(text)
        deployment.start(COORDINATOR, *SITES, OUTSIDER)
        deployment.wait_for_sites()
        yield deployment
    finally:
        deployment.close()


def pairs(folder):
    return jc.load_result(folder).order.pairs()


# -- who may connect ----------------------------------------------------------------------------
def first_words(live, certificate, key):
    """What the coordinator sends to a client with this certificate; empty if it hangs up."""
    context = ssl.create_default_context(cafile=live.kits / ADMIN / "startup" / "rootCA.pem")
    context.set_alpn_protocols(["h2"])
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
    with socket.create_connection(("localhost", live.port), timeout=HANG) as plain:
        try:
            with context.wrap_socket(plain, server_hostname="localhost") as secure:
                secure.sendall(hello)
                return secure.recv(9)
        except (ssl.SSLError, ConnectionError):
            return b""


def test_the_coordinator_answers_only_certificates_of_the_federation(live, tmp_path):
    startup = live.kits / OUTSIDER / "startup"
    # A site gets HTTP/2 settings; a client without certificate, or with a self-signed one, nothing.
    assert first_words(live, startup / "client.crt", startup / "client.key")[3] == 4
    assert first_words(live, None, None) == b""
    assert first_words(live, *self_signed(tmp_path, ADMIN)) == b""


@pytest.fixture(scope="module")
def impostors(live, tmp_path_factory):
    """Rounds submitted at once from admin kits with another certificate."""
    started = {}
    for kind in ("self-signed", "site", "site-by-name"):
        kit = tmp_path_factory.mktemp(kind) / "kit"
        shutil.copytree(live.kits / ADMIN, kit)
        if kind == "self-signed":
            self_signed(kit / "startup", ADMIN)
        else:
            for name in ("client.crt", "client.key"):
                shutil.copy(live.kits / OUTSIDER / "startup" / name, kit / "startup" / name)
        if kind == "site-by-name":
            path = kit / "startup" / "fed_admin.json"
            path.write_text(path.read_text().replace(ADMIN, OUTSIDER))
        command = [JIGSAW, "federate", "submit", str(kit), "--round", f"impostor-{kind}"]
        started[kind] = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    yield started
    for process in started.values():
        process.kill()
        process.communicate()


def test_three_sites_give_the_order_of_the_pooled_study(live, impostors, study):
    process = live.submit("first", min_sites=3)
    pooled = study.parent / "pooled"
    assert jigsaw("recover", study, "--witnesses", 2, "--out", pooled).returncode == 0
    out, err = process.communicate(timeout=HANG)
    assert process.returncode == 0, out + err
    assert pairs(live.results / "first") == pairs(pooled)
    assert live.standings("first") == {site: {"state": "received", "why": ""} for site in SITES}
    for site in SITES:
        assert f"{site}\treceived" in out
    before = (live.results / "first" / "result.json").read_bytes()
    code, said = live.run("first")
    assert (code, "has a result" in said) == (2, True)
    assert (live.results / "first" / "result.json").read_bytes() == before


@pytest.mark.parametrize("kind", ["self-signed", "site", "site-by-name"])
def test_a_round_cannot_be_started_without_the_certificate_of_the_admin(kind, live, impostors):
    out, err = impostors[kind].communicate(timeout=HANG)
    assert impostors[kind].returncode == 2, out + err
    assert re.search("refuses this kit|is not authorized for 'submit_job'", err)
    # Besides the error there is at most a warning that the certificate expires soon.
    assert sum(line.startswith("jigsaw: ") for line in err.splitlines()) == 1
    assert not (live.results / f"impostor-{kind}").exists()


# -- sites that misbehave -----------------------------------------------------------------------
def test_no_site_can_veto_a_round_and_what_is_far_above_the_limit_is_not_decoded(live):
    """client-1 never answers, client-2 sends more than is taken in, and client-4 is not listed.

    Answers that are garbage or only too large are refused by name (test_answer.py).
    """
    live.hold("client-1").touch()
    live.rogue("client-2").write_text("x" * (40 << 20))
    try:
        code, said = live.run("vetoed", timeout=live.enough)
    finally:
        live.hold("client-1").unlink()
        live.rogue("client-2").unlink()
    assert code == 3, said
    standings = live.standings("vetoed")
    states = {site: standing["state"] for site, standing in standings.items()}
    assert states == {"client-1": "missing", "client-2": "missing", "client-3": "received"}
    assert "sent far too much" in standings["client-2"]["why"]
    assert "exceeds configured limit" in live.said("client-2")
    assert list(jc.load_result(live.results / "vetoed").fragments) == ["client-3"]
    # A site that is not on the list was connected and was not asked.
    assert f"New client {OUTSIDER}@" in live.said(COORDINATOR)
    assert not (live.kits / OUTSIDER / "fragment.sent.jsonl").exists()


def test_a_kit_runs_once_and_stops_on_one_interrupt(live):
    again = jigsaw("federate", "start", live.kits / OUTSIDER)
    assert again.returncode == 2
    assert "the kit is in use by another run" in again.stderr
    process = live.processes.pop(OUTSIDER)
    family = psutil.Process(process.pid).children(recursive=True)
    assert family
    process.send_signal(signal.SIGINT)
    assert process.wait(HANG) == 130
    assert not [one for one in family if one.is_running() and one.status() != "zombie"]


class Attacker:
    """A process that is connected with the certificate of a site, and sends what it likes."""

    def __init__(self, live, kit):
        command = [sys.executable, str(HERE / "rogue" / "attacker.py"), str(kit), kit.name]
        self.log = (live.root / "attacker.log").open("a")
        self.process = subprocess.Popen(
            [*command, f"localhost:{live.port}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )

    def says(self, what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def heartbeat(self, **forged):
        """The code of the reply to a heartbeat in whose headers something is forged."""
        from nvflare.private.defs import CellChannel, CellChannelTopic

        place = {"channel": CellChannel.SERVER_MAIN, "topic": CellChannelTopic.HEART_BEAT}
        return self.says({**place, "target": "server", "headers": forged})[0]

    def close(self):
        self.process.kill()
        self.process.communicate()
        self.log.close()


@pytest.fixture(scope="module")
def attacker(live):
    """With the kit of a site that has a certificate of the federation."""
    kit = shutil.copytree(live.kits / OUTSIDER, live.root / "stolen" / OUTSIDER)
    made = Attacker(live, kit)
    yield made
    made.close()


def test_a_site_with_a_manipulated_program_reaches_no_other_site_and_starts_no_round(
    live, attacker
):
    """NVFlare passes messages between sites on, and takes the sender from the message."""
    from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey
    from nvflare.private.defs import CellMessageHeaderKeys

    assert attacker.says("login")[0] == "ok"
    assert attacker.heartbeat() == "ok"
    ask = {"channel": "jigsaw", "topic": "fragment", "body": "evil"}
    for headers in ({}, {MessageHeaderKey.ORIGIN: "server"}):
        for site in SITES:
            code, size = attacker.says({**ask, "target": site, "headers": headers, "seconds": 2})
            assert (code, size) == ("timeout", 0)
    for forged in (
        {MessageHeaderKey.ORIGIN: "client-1"},
        {CellMessageHeaderKeys.CLIENT_NAME: "client-1"},
    ):
        assert attacker.heartbeat(**forged) == "timeout"
    for topic in ("start", "state"):
        text = RoundOptions(round_name="evil").model_dump_json()
        start = {"channel": "jigsaw", "topic": topic, "target": "server", "body": text}
        assert attacker.says({**start, "seconds": 2})[0] == "timeout"
    # Requests of NVFlare that stop a participant, or that only the coordinator's own parts have.
    for channel, topic in (("_net_manager", "stop_cell"), ("server_parent_listener", "heartbeat")):
        stop = {"channel": channel, "topic": topic, "target": "server", "body": "x", "plain": True}
        assert attacker.says({**stop, "seconds": 2})[0] == "timeout"
    assert attacker.heartbeat() == "ok"
    assert not (live.results / "evil").exists()
    for site in SITES:
        sent = (live.kits / site / "fragment.sent.jsonl").read_text()
        assert "first" in sent
        assert "evil" not in sent


def test_a_site_that_begins_hundreds_of_answers_leaves_room_for_those_of_others(live, attacker):
    """NVFlare has 128 threads for answers, and waits minutes for one that does not end."""
    assert attacker.says({"flood": 300}) == ["sent", 300]
    code, said = live.run("flooded", timeout=live.enough)
    assert code == 0, said


def test_a_stolen_kit_that_is_connected_is_cut_off_by_renew_and_does_not_come_back(live, attacker):
    done = jigsaw("federate", "renew", live.kits.parent, OUTSIDER)
    assert done.returncode == 0, done.stderr
    assert attacker.heartbeat() == "timeout"
    again = Attacker(live, live.root / "stolen" / OUTSIDER)
    try:
        assert again.says("login")[0] == "refused"
    finally:
        again.close()


def test_a_round_goes_on_without_the_person_who_started_it(live):
    live.hold("client-1").touch()
    submitter = live.submit("cut-off")
    live.wait_for_hold("client-1")
    submitter.kill()
    submitter.communicate()
    live.hold("client-1").unlink()
    wait_until((live.results / "cut-off" / "result.json").exists, "the result")
    wait_until(
        lambda: {s["state"] for s in live.standings("cut-off").values()} == {"received"},
        "the end of the round",
    )


def test_a_round_whose_process_is_killed_ends_and_can_be_run_again(live):
    found = round_faults.fault(live, "killed", "coordinator's round", "asked")
    assert (found["exit"], found["result"]) == (2, False)
    assert "ended before the round did" in found["said"]
    assert found["again"] == 0
    assert set(found["states_again"].values()) == {"received"}


def test_a_site_killed_during_a_round_is_missing_and_a_stale_fragment_is_refused(live, fragments):
    """client-1 sends an old fragment, client-2 is killed, client-3 answers."""
    stale = live.kits / "client-1" / "fragment.json"
    before = stale.stat().st_mtime_ns
    os.utime(stale, ns=(before, before - 10**12))
    live.hold("client-2").touch()
    process = live.submit("wounded", min_sites=1, timeout=live.enough)
    live.wait_for_hold("client-2")
    wait_until(lambda: "client-3" in live.answers("wounded"), "the answer of client-3")
    live.kill("client-2")
    live.hold("client-2").unlink()
    out, err = process.communicate(timeout=HANG)
    assert process.returncode == 3, out + err
    assert "client-2\tmissing" in out
    standings = live.standings("wounded")
    assert standings["client-2"]["state"] == "missing"
    assert standings["client-3"]["state"] == "received"
    assert "stale" in standings["client-1"]["why"]
    result = jc.load_result(live.results / "wounded")
    assert list(result.fragments) == ["client-3"]
    os.utime(stale, ns=(before, before))
    since = len(live.said(COORDINATOR))
    live.start("client-2")
    wait_until(lambda: "New client client-2@" in live.said(COORDINATOR)[since:], "its return")


# -- a coordinator that dies, and one that turns hostile ----------------------------------------
def test_after_a_coordinator_was_killed_the_round_can_be_run_again(live, attacker):
    live.hold("client-3").touch()
    process = live.submit("broken", min_sites=3)
    live.wait_for_hold("client-3")
    two = {"client-1", "client-2"}
    wait_until(lambda: live.answers("broken") == two, "two answers")
    # Of the three processes of the coordinator, the one that the user started.
    own = live.processes.pop(COORDINATOR)
    family = psutil.Process(own.pid).children(recursive=True)
    assert sum("jigsaw_crl.federated.round" in one.cmdline() for one in family) == 1
    own.kill()
    own.wait()
    assert not psutil.wait_procs(family, timeout=HANG)[1]
    process.kill()
    process.communicate()
    live.hold("client-3").unlink()
    assert live.answers("broken") == two
    assert not (live.results / "broken" / "result.json").exists()
    since = len(live.said(COORDINATOR))
    live.start(COORDINATOR)
    live.wait_for_sites(since)
    code, said = live.run("broken", min_sites=3)
    assert code == 0, said
    assert pairs(live.results / "broken") == pairs(live.results / "first")
    ours, before = (jc.load_result(live.results / name).fragments for name in ("broken", "first"))
    assert {f.to_json() for f in ours.values()} == {f.to_json() for f in before.values()}
    # The log-in of the stolen kit, which NVFlare would still accept.
    assert attacker.heartbeat() == "timeout"


@pytest.fixture(scope="module")
def hostile(live):
    """The coordinator lets everything pass that NVFlare does by default."""
    live.kill(COORDINATOR)
    local = live.kits / COORDINATOR / "local"
    (local / "authorization.json").unlink()
    defaults = (local / "resources.json.default").read_text()
    own = str(live.root / "hostile")  # NVFlare's own place is shared by all who use the machine
    (local / "resources.json").write_text(defaults.replace("/tmp/nvflare", own))
    since = len(live.said(COORDINATOR))
    assert "not hardened" in jigsaw("federate", "start", live.kits / COORDINATOR).stderr
    live.start(COORDINATOR, hostile=True)
    live.wait_for_sites(since)
    return live


SPY = """
from nvflare.apis.executor import Executor
from nvflare.apis.shareable import Shareable

class Spy(Executor):
    def execute(self, task_name, shareable, fl_ctx, abort_signal):
        open({marker!r} + fl_ctx.get_identity_name(), "w").close()
        return Shareable()
"""
WORKFLOW = {
    "id": "w",
    "path": "nvflare.app_common.workflows.broadcast_and_process.BroadcastAndProcess",
    "args": {"processor": "p", "task_name": "t", "min_responses_required": 1, "timeout": 5},
}


def job(folder, executor, code=None):
    """A job of NVFlare, as a hostile coordinator would write it."""
    app = folder / "job" / "app"
    client = {"executors": [{"tasks": ["t"], "executor": {"path": executor, "args": {}}}]}
    files = {
        "../meta.json": {"name": "job", "min_clients": 1, "deploy_map": {"app": ["@ALL"]}},
        "config/config_fed_server.json": {"format_version": 2, "workflows": [WORKFLOW]},
        "config/config_fed_client.json": {"format_version": 2, **client},
    }
    (app / "config").mkdir(parents=True)
    for name, content in files.items():
        (app / name).write_text(json.dumps(content))
    if code is not None:
        (app / "custom").mkdir()
        (app / "custom" / "spy.py").write_text(code)
    return folder / "job"


@pytest.mark.parametrize("ships_code", [True, False])
def test_a_hostile_coordinator_runs_no_job_at_a_site_and_reads_no_file(
    ships_code, hostile, tmp_path
):
    """NVFlare's coordinator says itself whether what it asks needs a site's permission."""
    from nvflare.fuel.flare_api.flare_api import new_secure_session

    spy = SPY.format(marker=str(tmp_path / "spied-")) if ships_code else None
    executor = "spy.Spy" if ships_code else "nvflare.app_common.np.np_trainer.NPTrainer"
    session = new_secure_session(ADMIN, str(hostile.kits / ADMIN), timeout=HANG)
    try:
        name = session.submit_job(str(job(tmp_path, executor, spy)))
        wait_until(lambda: "job_deploy_detail" in session.get_job_meta(name), "the sites' word")
        meta = session.get_job_meta(name)
    finally:
        session.close()
    assert meta["status"] == "FINISHED:FAILED_TO_RUN"
    # The hostile coordinator accepts it; the sites do not answer.
    detail = dict(line.split(": ", 1) for line in meta["job_deploy_detail"] if ": " in line)
    assert detail["server"] == "OK"
    said = hostile.said(COORDINATOR)
    for site in SITES:
        assert "no reply" in detail[site]
        assert f"READ AT {site}: \n" in said
        assert "a request for ('admin'," in hostile.said(site)
    assert "min_rows" not in said
    assert not list(tmp_path.glob("spied-*"))
