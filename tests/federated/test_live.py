"""A live federation of separate processes with TLS on loopback, and what can go wrong in it.

The tests share one deployment and run in the order they are written, in one worker
(`tests/conftest.py`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import psutil
import pytest

import jigsaw_crl as jc
from jigsaw_crl.federated.running import _session, wait_for_job, write_job
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
def study(tmp_path_factory) -> Path:
    """Three clients of setting A, each with rows of its own."""
    root = tmp_path_factory.mktemp("live") / "study"
    done = jigsaw("simulate", "--setting", "A", "--samples", 2000, "--out", root)
    assert done.returncode == 0, done.stderr
    for more in ("client-4", "client-5"):
        (root / f"{more}.parquet").unlink()
    return root


@pytest.fixture(scope="module")
def fragments(study) -> dict[str, str]:
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


def pairs(folder: Path) -> set[tuple[str, str]]:
    return jc.load_result(folder).order.pairs()


# -- who may connect ----------------------------------------------------------------------------


def first_words(live, certificate: Path | None, key: Path | None) -> bytes:
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
    assert (code, "has ended on" in said) == (2, True)
    assert (live.results / "first" / "result.json").read_bytes() == before


@pytest.mark.parametrize("kind", ["self-signed", "site", "site-by-name"])
def test_a_round_cannot_be_started_without_the_certificate_of_the_admin(kind, live, impostors):
    out, err = impostors[kind].communicate(timeout=HANG)
    assert impostors[kind].returncode == 2, out + err
    assert re.search("refuses this kit|is not authorized for 'submit_job'", err)
    assert len(err.splitlines()) == 1
    assert not (live.results / f"impostor-{kind}").exists()


# -- sites that misbehave -----------------------------------------------------------------------


def test_garbage_is_refused_by_name_and_what_is_far_above_the_limit_is_not_decoded(live):
    """client-1 answers garbage, client-2 more than the coordinator takes in, client-3 as it should.

    An answer that is only too large is refused by name, too (test_answer.py).
    """
    live.rogue("client-1").write_text("\x00 this is no answer")
    live.rogue("client-2").write_text("x" * (40 << 20))
    process = live.submit("misbehaving", min_sites=1)
    try:
        wait_until(lambda: "exceeds" in live.said(COORDINATOR), "the answer to be dropped")
        wait_until(lambda: live.answers("misbehaving") == {"client-3"}, "the honest answer")
        wait_until(
            lambda: live.standings("misbehaving")["client-1"]["state"] == "refused", "the garbage"
        )
        live.kill_jobs_of("client-2")
        out, err = process.communicate(timeout=HANG)
    finally:
        live.rogue("client-1").unlink()
        live.rogue("client-2").unlink()
    assert process.returncode == 3, out + err
    standings = live.standings("misbehaving")
    assert {site: s["state"] for site, s in standings.items()} == {
        "client-1": "refused", "client-2": "missing", "client-3": "received",
    }  # fmt: skip
    assert "garbage" in standings["client-1"]["why"]
    assert "oversized" not in standings["client-2"]["why"]
    result = jc.load_result(live.results / "misbehaving")
    assert list(result.fragments) == ["client-3"]
    assert set(result.provenance["refused"]) == {"client-1"}


def test_no_site_can_veto_a_round(live):
    """The process of client-1 dies, client-2 refuses our class, and client-4 is not listed."""
    allowed = {site: live.refuse_all(site) for site in ("client-2", OUTSIDER)}
    live.hold("client-1").touch()
    began = time.monotonic()
    process = live.submit("vetoed")
    live.wait_for_hold("client-1")
    wait_until(lambda: "client-3" in live.answers("vetoed"), "the answer of client-3")
    live.kill_jobs_of("client-1")
    live.hold("client-1").unlink()
    out, err = process.communicate(timeout=HANG)
    for site, resources in allowed.items():
        live.allow(site, resources)
    assert process.returncode == 3, out + err
    # The round did not wait for sites that could no longer answer.
    assert time.monotonic() - began < HANG / 2
    standings = live.standings("vetoed")
    for site in ("client-1", "client-2"):
        assert standings[site] == {
            "state": "missing", "why": "its process ended before it answered",
        }  # fmt: skip
    assert standings["client-3"]["state"] == "received"
    assert list(jc.load_result(live.results / "vetoed").fragments) == ["client-3"]
    # A site that is not on the list was connected and was not asked.
    assert f"New client {OUTSIDER}@" in live.said(COORDINATOR)
    assert "SendFragment" not in live.said(OUTSIDER)
    assert not list((live.kits / OUTSIDER).glob("*-*-*-*-*"))


def test_status_shows_who_is_connected(live):
    done = jigsaw("federate", "status", live.kits.parent, "--patience", HANG, "--json")
    assert done.returncode == 0, done.stderr
    members = {one["name"]: one for one in json.loads(done.stdout)["members"]}
    assert {name for name, one in members.items() if one["connected"]} == {*SITES, OUTSIDER}
    assert members[OUTSIDER]["state"] == "not listed"
    assert members["client-1"]["state"] == "listed"


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


@pytest.fixture(scope="module")
def faults():
    """The benchmark of faults as a module."""
    sys.path.append(str(HERE.parents[1] / "benchmarks"))
    return import_module("round_faults")


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


def test_a_round_whose_process_is_killed_ends_and_can_be_run_again(live, faults):
    found = faults.fault(live, "killed", "coordinator's round", "asked")
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
    assert result.provenance["missing"] == ["client-2"]
    assert list(result.fragments) == ["client-3"]
    os.utime(stale, ns=(before, before))
    since = len(live.said(COORDINATOR))
    live.start("client-2")
    wait_until(lambda: "New client client-2@" in live.said(COORDINATOR)[since:], "its return")


# -- a coordinator that dies, and one that turns hostile ----------------------------------------


def test_a_killed_coordinator_loses_no_fragment_and_the_round_can_be_run_again(live, study):
    live.hold("client-3").touch()
    process = live.submit("broken", min_sites=3)
    live.wait_for_hold("client-3")
    two = {"client-1", "client-2"}
    wait_until(lambda: live.answers("broken") == two, "two answers")
    live.kill(COORDINATOR)
    process.kill()
    process.communicate()
    live.kill_jobs_of("client-3")
    live.hold("client-3").unlink()
    assert live.answers("broken") == two
    assert not (live.results / "broken" / "result.json").exists()
    # From here on the coordinator is hostile: it lets everything pass.
    local = live.kits / COORDINATOR / "local"
    (local / "authorization.json").unlink()
    resources = json.loads((local / "resources.json").read_text())
    (local / "resources.json").write_text(json.dumps({**resources, "class_allow_list": ["*"]}))
    since = len(live.said(COORDINATOR))
    assert "not hardened" in jigsaw("federate", "start", live.kits / COORDINATOR).stderr
    live.start(COORDINATOR, hostile=True)
    live.wait_for_sites(since)
    code, said = live.run("broken", min_sites=3)
    assert code == 0, said
    assert pairs(live.results / "broken") == pairs(live.results / "first")
    ours, before = (jc.load_result(live.results / name).fragments for name in ("broken", "first"))
    assert {f.to_json() for f in ours.values()} == {f.to_json() for f in before.values()}


SPY = """
from nvflare.apis.executor import Executor
from nvflare.apis.shareable import Shareable

class Spy(Executor):
    def execute(self, task_name, shareable, fl_ctx, abort_signal):
        open({marker!r} + fl_ctx.get_identity_name(), "w").close()
        return Shareable()
"""


def hostile_job(live, folder: Path, executor: str, code: str | None = None) -> Path:
    job = write_job(folder / "job", RoundOptions("hostile", timeout=live.enough))
    path = job / "app" / "config" / "config_fed_client.json"
    config = json.loads(path.read_text())
    config["executors"][0]["executor"] = {"path": executor, "args": {}}
    path.write_text(json.dumps(config))
    if code is not None:
        custom = job / "app" / "custom"
        custom.mkdir()
        (custom / "spy.py").write_text(code)
    return job


def submit_any(live, job: Path) -> dict:
    """How a job ended that was submitted without `jigsaw federate submit`."""
    with _session(live.kits / ADMIN, HANG) as session:
        name = session.submit_job(str(job))
        wait_for_job(session, name, HANG)
        # The server writes the status first, and what each site said a moment later.
        wait_until(lambda: "job_deploy_detail" in session.get_job_meta(name), "the sites' word")
        return session.get_job_meta(name)


def test_a_job_that_ships_its_own_code_is_refused_by_every_site(live, tmp_path):
    marker = str(tmp_path / "spied-")
    meta = submit_any(live, hostile_job(live, tmp_path, "spy.Spy", SPY.format(marker=marker)))
    assert meta["byoc"] is True
    assert meta["status"] == "FINISHED:FAILED_TO_RUN"
    # The hostile coordinator accepts it; the sites do not.
    detail = dict(line.split(": ", 1) for line in meta["job_deploy_detail"] if ": " in line)
    assert detail["server"] == "OK"
    for site in SITES:
        assert "BYOC not permitted" in detail[site]
    assert not list(tmp_path.glob("spied-*"))


def test_a_class_that_is_not_ours_is_refused_by_every_site(live, tmp_path):
    name = "nvflare.app_common.np.np_trainer.NPTrainer"
    meta = submit_any(live, hostile_job(live, tmp_path, name))
    assert meta["status"] != "FINISHED:COMPLETED"
    for site in SITES:
        assert f"'{name}' at config path" in live.said(site)
        assert "is not in allow_list" in live.said(site)
    assert not live.answers("hostile")
