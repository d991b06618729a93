"""A round in which the coordinator's process is killed, or its disk is full, at every write.

Each run is a process of its own. After the fault, the round is run again and must give the result
that it would have given without the fault.
"""

import json
import shutil

import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.cli import app as cli
from jigsaw_crl.federated.answer import make_answer
from jigsaw_crl.federated.ledger import Ledger
from jigsaw_crl.federated.round import Gathering, end_round
from jigsaw_crl.federated.settings import RoundRecord, SiteSettings
from jigsaw_crl.result import result as results

from ..result.test_faults import DONE, KILLED, REFUSED, SURVIVED, fault_at, run_child
from .conftest import SITES, unwritten, with_coordinator
from .test_gathering import answers

pytestmark = pytest.mark.usefixtures("nvflare")

# No round has so many steps.
MOST_STEPS = 400


def run_round(settings, texts, again=False):
    """A round as the coordinator runs it: the guard, then the process of the round."""
    Gathering.open(settings, "first", again=again)
    gathering = Gathering.open(settings, "first", again=again)
    for site, text in texts.items():
        gathering.receive(site, text)
    gathering.finish(1)


def with_results(settings, folder):
    return settings.model_copy(update={"results": folder})


def state(settings):
    """What a reader sees: the result without the times, and who is in it."""
    folder = settings.results / "first"
    document = json.loads((folder / "result.json").read_text())
    del document["provenance"]["log"]  # its lines hold times
    return document, RoundRecord.read(folder).sites


@pytest.fixture
def quick(monkeypatch, quick_page):
    """With one search for the next client: it takes most of the time."""
    search, known = results.next_client, {}

    def next_client(order, *given, **options):
        key = order.labels, order.verdicts.tobytes()
        if key not in known:
            known[key] = search(order, *given, **options)
        return known[key]

    monkeypatch.setattr(results, "next_client", next_client)


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kill", [False, True], ids=["full", "killed"])
def test_a_round_that_fails_at_any_write_can_be_run_again_with_the_same_result(
    kill, settings, sites, tmp_path
):
    texts = answers(sites)
    # Once in this process, so that the others have everything loaded and compiled.
    clean = with_results(settings, tmp_path / "clean")
    run_round(clean, texts)
    expected = state(clean)
    for step in range(0, MOST_STEPS, 1 if kill else 3):
        broken = with_results(settings, tmp_path / str(step))
        fault = fault_at(step, broken.results, kill=kill)
        code = run_child(lambda s=broken: unwritten(lambda: run_round(s, texts)), fault)
        assert code in (DONE, KILLED if kill else REFUSED, SURVIVED), step
        # Whatever happened, there is a record that can be read, unless its first write failed.
        record = RoundRecord.read(broken.results / "first")
        if record is not None:
            record = end_round(broken, "first")
            assert record.ended_at is not None
            # No result is half written: there is none, or a whole one.
            if (broken.results / "first" / "result.json").exists():
                jc.load_result(broken.results / "first")
        if record is None or not record.closed:
            again = run_child(lambda s=broken: run_round(s, texts, again=True), list)
            assert again == DONE, step
            assert [line.site for line in Ledger.read(broken.log).lines] == list(SITES)
        assert state(broken) == expected, step
        if code == DONE:
            break
    assert code == DONE
    assert step > 20


# -- files ----------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("kill", [False, True], ids=["full", "killed"])
def test_a_signed_result_that_fails_at_any_write_can_be_made_again(
    kill, fragments, key_folder, tmp_path, capsys
):
    """`assemble --keys --sign`: result, signature and log."""

    def assemble(place, *more):
        files = [str(place / f"{site}.signed.json") for site in SITES]
        out = ["--out", str(place / "result"), "--sign", str(place / "coordinator.key")]
        keys = ["--keys", str(place / "site-keys.toml"), "--round", "first"]
        if cli.run(["assemble", *files, *keys, *out, *more]):
            raise InputError("it cannot be written", "")

    made = with_coordinator(shutil.copytree(key_folder, tmp_path / "made"), fragments)
    assemble(shutil.copytree(made, tmp_path / "first"))
    for step in range(0, MOST_STEPS, 2 if kill else 5):
        broken = shutil.copytree(made, tmp_path / str(step))
        code = run_child(lambda s=broken: assemble(s), fault_at(step, broken, kill=kill))
        assert code in (DONE, KILLED if kill else REFUSED, SURVIVED), step
        result, log = broken / "result", broken / "site-keys.log.jsonl"
        if (result / "result.json").exists():
            jc.load_result(result)
        # Nothing that is half done is verified, and what is in the log is in a whole result.
        check = ["verify", str(result), "--keys", str(broken / "site-keys.toml")]
        used = len(Ledger.read(log).lines)
        assert used in (0, len(SITES))
        if used:
            assert cli.run([*check, "--log", str(log)]) == 0
        assemble(broken, *["--again"] * bool(used))
        assert cli.run([*check, "--log", str(log)]) == 0
        capsys.readouterr()
        if code == DONE:
            break
    assert code == DONE
    assert step > 12


@pytest.mark.parametrize("kill", [False, True], ids=["full", "killed"])
def test_a_site_that_cannot_log_what_it_sends_sends_nothing(kill, fragments, tmp_path):
    piece = fragments[0]

    def answer(place):
        settings = SiteSettings(fragment=place / "fragment.json")
        (place / "answer").write_text(make_answer(settings, piece.client, "first"))

    for step in range(MOST_STEPS):
        place = tmp_path / str(step)
        place.mkdir()
        (place / "fragment.json").write_text(piece.to_json())
        code = run_child(lambda s=place: answer(s), fault_at(step, place, kill=kill))
        sent = place / "answer"
        logged = Ledger.read(place / "fragment.sent.jsonl").lines
        if sent.exists() and sent.read_text() and json.loads(sent.read_text())[2] is None:
            assert len(logged) == 1
        answer(place)
        assert len(Ledger.read(place / "fragment.sent.jsonl").lines) == 1
        if code == DONE:
            break
    assert code == DONE
    assert step > 1
