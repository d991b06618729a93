"""One round at the coordinator, without a network."""

from __future__ import annotations

import json
import shutil
import time

import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.answer import make_answer
from jigsaw_crl.federated.keys import read_private_key
from jigsaw_crl.federated.round import Gathering
from jigsaw_crl.federated.settings import STATUS, RoundRecord
from jigsaw_crl.federated.signing import sign_fragment

from .conftest import SITES, STUDY


def answers(sites, round_name="first"):
    return {site: make_answer(own, site, round_name) for site, own in sites.items()}


def gather(settings, texts, round_name="first", min_sites=1, **options):
    gathering = Gathering.open(settings, round_name, **options)
    for site, text in texts.items():
        gathering.receive(site, text)
    return gathering, gathering.finish(min_sites)


def status(settings, round_name="first"):
    return json.loads((settings.results / round_name / STATUS).read_text())["sites"]


def test_three_answers_give_the_order_of_their_fragments(settings, sites, fragments):
    gathering, result = gather(settings, answers(sites))
    assert result.order.pairs() == jc.assemble(fragments, witnesses="fifth").pairs()
    assert jc.load_result(gathering.folder).order.pairs() == result.order.pairs()
    assert status(settings) == {site: {"state": "received", "why": ""} for site in SITES}
    assert not [f for f in result.diagnostics if f.severity != "info"]


def test_a_refused_answer_is_named_and_the_others_are_assembled(settings, sites):
    _, result = gather(settings, {**answers(sites), "client-2": "not an answer"})
    assert set(result.fragments) == {"client-1", "client-3"}
    assert status(settings)["client-2"]["state"] == "refused"
    assert list(result.provenance["refused"]) == ["client-2"]
    (finding,) = (f for f in result.diagnostics if f.severity != "info")
    assert (finding.check, finding.client) == ("refused-site", "client-2")
    said = status(settings)["client-2"]["why"], result.provenance["refused"]["client-2"]
    assert all("garbage" in why for why in (*said, finding.message))


def test_an_answer_that_utf_8_cannot_hold_does_not_end_the_round(
    settings, sites, fragments, key_folder, tmp_path
):
    """The reason of a refusal is written to a file, so it must not quote a lone surrogate."""
    # The record of used fragments is written beside the keys.
    own = shutil.copytree(key_folder, tmp_path / "keys")
    settings = settings.model_copy(update={"keys": own / "site-keys.toml"})
    texts = {}
    for piece in fragments:
        key = read_private_key(key_folder / f"{piece.client}.key")
        envelope = sign_fragment(piece, key, study=STUDY, round_name="first")
        if piece.client == "client-2":
            envelope = json.dumps({**json.loads(envelope), "\ud800": 1})
        answer = json.loads(answers(sites)[piece.client])
        texts[piece.client] = json.dumps({**answer, "fragment": envelope})
    _, result = gather(settings, texts)
    assert list(result.provenance["refused"]) == ["client-2"]


def test_too_few_fragments_give_no_result_but_the_state_of_each_site(settings, sites):
    texts = {"client-1": answers(sites)["client-1"]}
    with pytest.raises(InputError, match=r"1 fragment accepted .* 2 are needed .* client-2 miss"):
        gather(settings, texts, min_sites=2)
    assert not (settings.results / "first" / "result.json").exists()
    assert status(settings)["client-3"] == {"state": "missing", "why": ""}


def test_an_interrupted_round_continues_with_the_answers_that_were_kept(settings, sites, fragments):
    texts = answers(sites)
    killed = Gathering.open(settings, "first")
    killed.receive("client-1", texts["client-1"])
    killed.receive("client-2", texts["client-2"])
    # The process dies here. Only the third site answers when the round is run again.
    _, result = gather(settings, {"client-3": texts["client-3"]})
    assert result.order.pairs() == jc.assemble(fragments, witnesses="fifth").pairs()
    assert {site: s["state"] for site, s in status(settings).items()} == {
        "client-1": "kept", "client-2": "kept", "client-3": "received",
    }  # fmt: skip


def test_a_kept_answer_that_was_damaged_on_disk_is_not_used(settings, sites):
    texts = answers(sites)
    gathering = Gathering.open(settings, "first")
    gathering.receive("client-1", texts["client-1"])
    (gathering.folder / "answers" / "client-1.json").write_text("{")
    _, result = gather(settings, {"client-3": texts["client-3"]})
    assert result.provenance["missing"] == ["client-1", "client-2"]


def test_a_round_that_has_a_result_is_closed_unless_it_is_asked_for_again(settings, sites):
    gathering, _ = gather(settings, answers(sites))
    before = {p: p.read_bytes() for p in gathering.folder.rglob("*") if p.is_file()}
    with pytest.raises(InputError, match=r"'first' has ended on 20.* pass --again"):
        Gathering.open(settings, "first")
    assert {p: p.read_bytes() for p in gathering.folder.rglob("*") if p.is_file()} == before


def test_two_rounds_cannot_differ_by_case_alone(settings, sites):
    """On some machines they would share a folder."""
    Gathering.open(settings, "First")
    with pytest.raises(InputError, match="differs from 'First' only by case"):
        Gathering.open(settings, "first")


# -- no site can end or hold up a round -----------------------------------------------------------


def with_labels(site, labels):
    """An answer with a fragment of these labels, without evidence."""
    blocks = tuple(frozenset([x]) for x in labels)
    order = jc.PartialOrder.from_pairs(blocks, [])
    piece = jc.Fragment(site, "null-cone", tuple(labels), blocks, order, blocks)
    head = {"format": "jigsaw-crl/answer", "version": 1, "round": "first"}
    return json.dumps({**head, "written_at": time.time_ns(), "fragment": piece.to_json()})


@pytest.mark.slow
def test_a_fragment_with_too_many_labels_is_refused_before_assembly(settings, sites):
    """A file of 77 kB with 3,000 labels would keep the assembly busy for minutes."""
    large = with_labels("client-2", [f"q{i}" for i in range(3000)])
    assert len(large) < settings.most_bytes
    _, result = gather(settings, {**answers(sites), "client-2": large})
    assert set(result.fragments) == {"client-1", "client-3"}
    assert "3000 labels, 200 are allowed" in result.provenance["refused"]["client-2"]


def test_the_site_that_brings_too_many_labels_of_its_own_is_refused_and_no_other(settings, sites):
    settings = settings.model_copy(update={"most_pairs": 7 * 6})
    _, result = gather(settings, {**answers(sites), "client-1": with_labels("client-1", "abcdef")})
    assert set(result.fragments) == {"client-2", "client-3"}
    assert "6 labels that no other site has" in result.provenance["refused"]["client-1"]


def test_labels_that_two_sites_invented_cost_these_sites(settings, sites):
    """Honest sites have labels of their own; the others share theirs, so that none is alone."""
    settings = settings.model_copy(update={"most_pairs": 13 * 12})
    junk = {site: with_labels(site, "abcdefghijkl") for site in ("client-1", "client-2")}
    _, result = gather(settings, {**answers(sites), **junk})
    assert "client-3" in result.fragments
    assert set(result.provenance["refused"]) <= set(junk)


def test_labels_that_differ_in_spelling_alone_are_named_and_the_round_goes_on(settings, sites):
    _, result = gather(settings, {**answers(sites), "client-3": with_labels("client-3", ["Z1"])})
    assert set(result.fragments) == set(SITES)
    (finding,) = (f for f in result.diagnostics if f.check == "label-spelling")
    assert finding.client == "client-3"
    assert "'Z1' differs from client-1's 'z1'" in finding.message


@pytest.mark.parametrize("own", [["zl"], ["\N{GREEK SMALL LETTER ZETA}1"], ["z1", "zl"]])
def test_labels_that_look_like_those_of_another_site_are_named(own, settings, sites):
    _, result = gather(settings, {**answers(sites), "client-3": with_labels("client-3", own)})
    found = [f.message for f in result.diagnostics if f.check == "label-spelling"]
    # A site that has both tells them apart.
    wanted = [] if "z1" in own else [f"the label {own[0]!a} of client-3 looks like client-1's 'z1'"]
    assert found == wanted


def test_a_log_that_was_lost_or_cut_off_is_noticed_by_the_next_round(settings, sites):
    gather(settings, answers(sites))
    gather(settings, answers(sites, "second"), "second")
    whole = settings.log.read_bytes()
    lines = whole.splitlines(keepends=True)
    for left in (None, b"".join(lines[:-1])):
        settings.log.unlink(missing_ok=True)
        if left is not None:
            settings.log.write_bytes(left)
        with pytest.raises(InputError, match="it was cut off or written anew"):
            Gathering.open(settings, "third")
    settings.log.write_bytes(whole)
    _, result = gather(settings, answers(sites, "third"), "third")
    assert len(result.fragments) == len(SITES)


def test_a_site_whose_process_ends_is_missing_and_the_round_goes_on(settings, sites):
    texts = answers(sites)
    gathering = Gathering.open(settings, "first")
    gathering.receive("client-1", texts["client-1"])
    assert gathering.waits_for(SITES)
    # A site that has answered stays in, even if its process ends before the round does.
    for site in ("client-1", "client-2", "client-3"):
        gathering.lose(site, "its process ended")
    assert not gathering.waits_for(SITES)
    # A late answer counts.
    gathering.receive("client-3", texts["client-3"])
    result = gathering.finish(1)
    assert set(result.fragments) == {"client-1", "client-3"}
    assert result.provenance["missing"] == ["client-2"]
    assert status(settings)["client-2"] == {"state": "missing", "why": "its process ended"}
    (finding,) = (f for f in result.diagnostics if f.severity != "info")
    assert (finding.check, finding.client) == ("missing-site", "client-2")
    assert "its process ended" in finding.message


def test_round_json_says_how_the_round_stands_from_its_first_moment(settings, sites):
    gathering = Gathering.open(settings, "first")
    record = RoundRecord.read(gathering.folder)
    assert (record.ended_at, record.failure) == (None, None)
    assert {s.state for s in record.sites.values()} == {"missing"}
    gathering.receive("client-1", answers(sites)["client-1"])
    # The process may be killed here.
    assert RoundRecord.read(gathering.folder).sites["client-1"].state == "received"


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt(), OSError("disk")])
def test_whatever_ends_a_round_is_in_round_json(error, settings, sites, monkeypatch):
    def broken(*_, **__):
        raise error

    monkeypatch.setattr("jigsaw_crl.federated.round.conclude", broken)
    with pytest.raises(type(error)):
        gather(settings, answers(sites))
    record = RoundRecord.read(settings.results / "first")
    assert record.failure == type(error).__name__
    assert record.ended_at is not None
    assert not record.closed


def test_an_answer_that_cannot_be_kept_is_refused_by_name(settings, sites, monkeypatch):
    def full(path, _):
        raise InputError("it cannot be written (No space left on device)", "Make room.", path=path)

    gathering = Gathering.open(settings, "first")
    for module in ("round", "settings"):
        monkeypatch.setattr(f"jigsaw_crl.federated.{module}.write_text", full)
    standing = gathering.receive("client-1", answers(sites)["client-1"])
    assert standing.state == "refused"
    assert "No space left" in standing.why


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", "x" * 64, "a b", None, 3])
def test_the_name_of_a_round_cannot_lead_out_of_its_folder(name, settings):
    with pytest.raises(InputError, match="round's name"):
        Gathering.open(settings, name)


@pytest.mark.parametrize(
    "name", ["seen.json", "log.jsonl", "seen.json.lock", "NUL", "com1.x", "a."]
)
def test_names_of_the_coordinator_s_own_files_and_of_devices_are_reserved(name, settings):
    with pytest.raises(InputError, match="is reserved"):
        Gathering.open(settings, name)
