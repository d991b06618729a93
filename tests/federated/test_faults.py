"""A round in which the coordinator's process is killed, or its disk is full, at every write.

Each run is a process of its own. After the fault, the round is run again and must give the result
that it would have given without the fault.
"""

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.cli import app as cli
from jigsaw_crl.federated.answer import make_answer
from jigsaw_crl.federated.keys import generate_key, read_private_key
from jigsaw_crl.federated.ledger import Ledger
from jigsaw_crl.federated.round import Gathering, end_round
from jigsaw_crl.federated.settings import RoundRecord, SiteSettings
from jigsaw_crl.federated.signing import sign_fragment
from jigsaw_crl.result import result as results

from .conftest import SITES, STUDY

pytestmark = pytest.mark.usefixtures("nvflare")

# Calls of the system that change files for good.
CALLS = ("replace", "rename", "fsync", "rmdir", "truncate")
KILLED = 9


def run_round(settings, texts, again=False):
    """A round as the coordinator runs it: the guard, then the process of the round."""
    Gathering.open(settings, "first", again=again)
    gathering = Gathering.open(settings, "first", again=again)
    for site, text in texts.items():
        gathering.receive(site, text)
    gathering.finish(1)


def in_a_process(action, fault=None, kind="kill"):
    """Run in a process of its own; at call number `fault` it is killed or its disk is full.

    Returns the exit code and the number of calls.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        count = 0

        def counted(original):
            def call(*args, **kwargs):
                nonlocal count
                count += 1
                if fault is not None and (count == fault or (kind == "full" and count > fault)):
                    if kind == "kill":
                        os._exit(KILLED)
                    raise OSError(errno.ENOSPC, "No space left on device")
                return original(*args, **kwargs)

            return call

        for name in CALLS:
            setattr(os, name, counted(getattr(os, name)))
        code = 1
        try:
            action()
            code = 0
        except InputError:
            code = 2
        finally:
            os.write(write, str(count).encode())
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), int(said or 0)


@pytest.fixture(scope="module")
def texts(tmp_path_factory, fragments):
    folder = tmp_path_factory.mktemp("sites")
    found = {}
    for piece in fragments:
        path = folder / f"{piece.client}.json"
        path.write_text(piece.to_json())
        found[piece.client] = make_answer(SiteSettings(fragment=path), piece.client, "first")
    return found


def with_results(settings, folder: Path):
    return settings.model_copy(update={"results": folder})


def state(settings):
    """What a reader sees: the result without the times, and who is in it."""
    folder = settings.results / "first"
    document = json.loads((folder / "result.json").read_text())
    del document["provenance"]["log"]  # its lines hold times
    return document, RoundRecord.read(folder).sites


@pytest.fixture
def quick(monkeypatch):
    """Without the page, and with one search for the next client: they take most of the time."""
    page = '<meta name="generator" content="jigsaw-crl test"><p>'
    monkeypatch.setattr("jigsaw_crl.report.writing.render_report", lambda _: page)
    search, known = results.next_client, {}

    def next_client(order, *given, **options):
        key = order.labels, order.verdicts.tobytes()
        if key not in known:
            known[key] = search(order, *given, **options)
        return known[key]

    monkeypatch.setattr(results, "next_client", next_client)


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", ["kill", "full"])
def test_a_round_that_fails_at_any_write_can_be_run_again_with_the_same_result(
    kind, settings, texts, tmp_path
):
    # Once in this process, so that the others have everything loaded and compiled.
    run_round(with_results(settings, tmp_path / "first"), texts)
    clean = with_results(settings, tmp_path / "clean")
    code, calls = in_a_process(lambda: run_round(clean, texts))
    assert code == 0
    assert calls > 20
    expected = state(clean)
    # A full disk fails every later write too, so fewer places are enough.
    for fault in range(1, calls + 1, 1 if kind == "kill" else 4):
        broken = with_results(settings, tmp_path / str(fault))
        code, _ = in_a_process(lambda s=broken: run_round(s, texts), fault, kind)
        assert code in ((KILLED,) if kind == "kill" else (0, 2)), fault
        # Whatever happened, there is a record that can be read, unless its first write failed.
        record = RoundRecord.read(broken.results / "first")
        if record is not None:
            ended = end_round(broken, "first")
            assert ended.ended_at is not None
            # No result is half written: there is none, or a whole one.
            if (broken.results / "first" / "result.json").exists():
                jc.load_result(broken.results / "first")
            closed = ended.closed
        else:
            closed = False
        if closed:
            assert state(broken) == expected
            continue
        code, _ = in_a_process(lambda s=broken: run_round(s, texts, again=True))
        assert code == 0, fault
        assert state(broken) == expected, fault
        assert [line.site for line in Ledger.read(broken.log).lines] == list(SITES)


# -- files ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["kill", "full"])
def test_a_signed_result_that_fails_at_any_write_can_be_made_again(
    kind, fragments, key_folder, tmp_path, capsys
):
    """`assemble --keys --sign`: result, signature and log."""

    def words(place):
        files = [str(place / f"{site}.signed.json") for site in SITES]
        out = ["--out", str(place / "result"), "--sign", str(place / "coordinator.key")]
        return ["assemble", *files, "--keys", str(place / "site-keys.toml"), "--round", "r", *out]

    def assemble(place, *more):
        if cli.run([*words(place), *more]):
            raise InputError("it failed", "")

    made = shutil.copytree(key_folder, tmp_path / "made")
    line = generate_key("coordinator", made / "coordinator.key")
    keys = made / "site-keys.toml"
    keys.write_text(f"coordinator = {line.split(' = ')[1]}\n" + keys.read_text())
    for piece in fragments:
        private = read_private_key(made / f"{piece.client}.key")
        text = sign_fragment(piece, private, study=STUDY, round_name="r")
        (made / f"{piece.client}.signed.json").write_text(text)
    clean = shutil.copytree(made, tmp_path / "clean")
    assemble(shutil.copytree(made, tmp_path / "first"))
    code, calls = in_a_process(lambda: assemble(clean))
    assert code == 0
    assert calls > 12
    # Every write of signature and log; those of the result have a test of their own.
    last = range(calls - 7, calls + 1) if kind == "kill" else ()
    for fault in (*range(1, calls - 7, 5), *last):
        broken = shutil.copytree(made, tmp_path / str(fault))
        in_a_process(lambda s=broken: assemble(s), fault, kind)
        result, log = broken / "result", broken / "site-keys.log.jsonl"
        if (result / "result.json").exists():
            jc.load_result(result)
        # Nothing that is half done is verified, and what is in the log is in a whole result.
        check = ["verify", str(result), "--keys", str(broken / "site-keys.toml")]
        used = len(Ledger.read(log).lines)
        assert used in (0, len(SITES))
        if used:
            assert cli.run([*check, "--log", str(log)]) == 0
        assert in_a_process(lambda s=broken, u=used: assemble(s, *["--again"] * bool(u)))[0] == 0
        assert cli.run([*check, "--log", str(log)]) == 0
        capsys.readouterr()


@pytest.mark.parametrize("kind", ["kill", "full"])
def test_a_site_that_cannot_log_what_it_sends_sends_nothing(kind, fragments, tmp_path):
    piece = fragments[0]

    def answered(place):
        settings = SiteSettings(fragment=place / "fragment.json")
        (place / "answer").write_text(make_answer(settings, piece.client, "first"))

    def new(name):
        place = tmp_path / name
        place.mkdir()
        (place / "fragment.json").write_text(piece.to_json())
        return place

    code, calls = in_a_process(lambda: answered(new("clean")))
    assert (code, calls > 1) == (0, True)
    for fault in range(1, calls + 1):
        place = new(str(fault))
        in_a_process(lambda s=place: answered(s), fault, kind)
        sent = place / "answer"
        logged = Ledger.read(place / "fragment.sent.jsonl").lines
        if sent.exists() and json.loads(sent.read_text())[2] is None:
            assert len(logged) == 1
        answered(place)
        assert len(Ledger.read(place / "fragment.sent.jsonl").lines) == 1
