"""One round at the coordinator, without a network."""

import io
import json
import time

import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.answer import make_answer
from jigsaw_crl.federated.round import Gathering, main
from jigsaw_crl.federated.settings import COORDINATOR_FILE, STATUS, RoundRecord

from .conftest import SITES


def answers(sites, round_name="first"):
    return {site: make_answer(own, site, round_name) for site, own in sites.items()}


def gather(settings, texts, round_name="first", min_sites=1, **options):
    gathering = Gathering.open(settings, round_name, **options)
    for site, text in texts.items():
        gathering.receive(site, text)
    return gathering, gathering.finish(min_sites)


def absent(result, state="refused"):
    """What the findings say of the sites in this state."""
    return {f.client: f.message for f in result.diagnostics if f.check == f"{state}-site"}


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
    (finding,) = (f for f in result.diagnostics if f.severity != "info")
    assert (finding.check, finding.client) == ("refused-site", "client-2")
    said = status(settings)["client-2"]["why"], finding.message
    assert all("garbage" in why for why in said)


def test_a_round_that_has_a_result_is_closed_unless_it_is_asked_for_again(settings, sites):
    gathering, _ = gather(settings, answers(sites))
    before = {p: p.read_bytes() for p in gathering.folder.rglob("*") if p.is_file()}
    with pytest.raises(InputError, match=r"'first' has a result.* pass --again"):
        Gathering.open(settings, "first")
    assert {p: p.read_bytes() for p in gathering.folder.rglob("*") if p.is_file()} == before


# -- no site can end or hold up a round -----------------------------------------------------------


def with_labels(site, labels):
    """An answer with a fragment of these labels, without evidence."""
    blocks = tuple(frozenset([x]) for x in labels)
    order = jc.PartialOrder.from_pairs(blocks, [])
    piece = jc.Fragment(site, "null-cone", tuple(labels), blocks, order, blocks)
    return json.dumps([piece.to_json(), time.time_ns(), None])


@pytest.mark.slow
def test_a_fragment_with_too_many_labels_is_refused_before_assembly(settings, sites):
    """A file of 77 kB with 3,000 labels would keep the assembly busy for minutes."""
    large = with_labels("client-2", [f"q{i}" for i in range(3000)])
    assert len(large) < settings.most_bytes
    _, result = gather(settings, {**answers(sites), "client-2": large})
    assert set(result.fragments) == {"client-1", "client-3"}
    assert "3000 labels, 200 are allowed" in absent(result)["client-2"]


def test_the_site_that_brings_too_many_labels_of_its_own_is_refused_and_no_other(settings, sites):
    settings = settings.model_copy(update={"most_pairs": 7 * 6})
    _, result = gather(settings, {**answers(sites), "client-1": with_labels("client-1", "abcdef")})
    assert set(result.fragments) == {"client-2", "client-3"}
    assert "this site brings most" in absent(result)["client-1"]


def test_labels_that_two_sites_invented_cost_these_sites(settings, sites):
    """Honest sites have labels of their own; the others share theirs, so that none is alone."""
    settings = settings.model_copy(update={"most_pairs": 13 * 12})
    junk = {site: with_labels(site, "abcdefghijkl") for site in ("client-1", "client-2")}
    _, result = gather(settings, {**answers(sites), **junk})
    assert "client-3" in result.fragments
    assert set(absent(result)) <= set(junk)


@pytest.mark.parametrize("own", [["Z1"], ["zl"], ["\N{GREEK SMALL LETTER ZETA}1"], ["z1", "zl"]])
def test_labels_that_look_like_those_of_another_site_are_named(own, settings, sites):
    _, result = gather(settings, {**answers(sites), "client-3": with_labels("client-3", own)})
    assert set(result.fragments) == set(SITES)
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


def test_a_site_that_cannot_answer_is_missing_and_the_round_goes_on(settings, sites):
    texts = answers(sites)
    gathering = Gathering.open(settings, "first")
    gathering.receive("client-1", texts["client-1"])
    gathering.stands("client-2", "missing", "it cannot be reached")
    result = gathering.finish(1)
    assert set(result.fragments) == {"client-1"}
    assert status(settings)["client-2"] == {"state": "missing", "why": "it cannot be reached"}
    said = absent(result, "missing")
    assert list(said) == ["client-2", "client-3"]
    assert "it cannot be reached" in said["client-2"]
    assert "did not answer in time" in said["client-3"]


def process(local, lines, monkeypatch):
    """Run the process of a round on these lines of its input."""
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{json.dumps(x)}\n" for x in lines)))
    main(local)


def test_the_process_of_a_round_assembles_what_it_is_told(settings, sites, tmp_path, monkeypatch):
    local = tmp_path / "local"
    local.mkdir()
    (local / COORDINATOR_FILE).write_text(settings.model_dump_json(exclude_none=True))
    texts = answers(sites)
    said = [{"round_name": "first"}, ["client-1", texts["client-1"], ""]]
    said += [["client-2", None, "it cannot be reached"], ["client-9", texts["client-1"], ""]]
    # The coordinator ends before it has told everything.
    process(local, said, monkeypatch)
    record = RoundRecord.read(settings.results / "first")
    assert "the coordinator was stopped" in record.failure
    assert not (settings.results / "first" / "result.json").exists()
    process(local, [*said, None], monkeypatch)
    assert RoundRecord.read(settings.results / "first").closed
    result = jc.load_result(settings.results / "first")
    assert set(result.fragments) == {"client-1"}
    assert set(status(settings)) == set(SITES)


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt(), OSError("disk")])
def test_whatever_ends_a_round_is_in_round_json(error, settings, sites, monkeypatch):
    def broken(*_, **__):
        raise error

    monkeypatch.setattr("jigsaw_crl.federated.round.assembled", broken)
    with pytest.raises(type(error)):
        gather(settings, answers(sites))
    record = RoundRecord.read(settings.results / "first")
    assert record.failure == type(error).__name__
    assert record.ended_at is not None
    assert not record.closed


@pytest.mark.parametrize(
    "name", ["../up", "a/b", "", ".hidden", "x" * 64, "a b", "log.jsonl", "a.", None, 3]
)
def test_the_name_of_a_round_cannot_lead_out_of_its_folder(name, settings):
    with pytest.raises(InputError, match="round's name"):
        Gathering.open(settings, name)


def test_too_few_fragments_give_no_result_but_the_state_of_each_site(settings, sites):
    texts = {"client-1": answers(sites)["client-1"]}
    with pytest.raises(InputError, match=r"1 fragment accepted .* 2 are needed .* client-2 miss"):
        gather(settings, texts, min_sites=2)
    assert not (settings.results / "first" / "result.json").exists()
    assert status(settings)["client-3"] == {"state": "missing", "why": ""}
