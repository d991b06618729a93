"""One round at the coordinator, without a network."""

from __future__ import annotations

import json

import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.answer import make_answer
from jigsaw_crl.federated.gathering import STATUS, Gathering
from jigsaw_crl.fragment.signing import read_private_key, sign_fragment

from .conftest import SITES


def answers(sites, round_name="first"):
    return {site: make_answer(own, site, round_name) for site, own in sites.items()}


def gather(settings, texts, round_name="first", min_sites=1, **options):
    gathering = Gathering.open(settings, round_name, **options)
    for site, text in texts.items():
        gathering.receive(site, text)
    return gathering, gathering.finish(min_sites, method="null-cone", seed=0)


def status(settings, round_name="first"):
    return json.loads((settings.results / round_name / STATUS).read_text())["sites"]


def test_three_answers_give_the_order_of_their_fragments(settings, sites, fragments):
    gathering, result = gather(settings, answers(sites))
    assert result.order.pairs() == jc.assemble(fragments).pairs()
    assert jc.load_result(gathering.folder).order.pairs() == result.order.pairs()
    assert status(settings) == {site: {"state": "received"} for site in SITES}
    assert result.diagnostics == ()


def test_a_refused_answer_is_named_and_the_others_are_assembled(settings, sites):
    _, result = gather(settings, {**answers(sites), "client-2": "not an answer"})
    assert set(result.fragments) == {"client-1", "client-3"}
    assert status(settings)["client-2"]["state"] == "refused"
    assert list(result.provenance["refused"]) == ["client-2"]
    (finding,) = result.diagnostics
    assert (finding.check, finding.client) == ("refused-site", "client-2")
    for why in (
        status(settings)["client-2"]["why"],
        result.provenance["refused"]["client-2"],
        finding.message,
    ):
        assert "garbage" in why


def test_a_site_that_does_not_answer_is_named(settings, sites):
    texts = answers(sites)
    del texts["client-2"]
    _, result = gather(settings, texts)
    assert result.provenance["missing"] == ["client-2"]
    assert [(f.check, f.client) for f in result.diagnostics] == [("missing-site", "client-2")]
    assert status(settings)["client-2"] == {"state": "missing"}


def test_an_answer_from_outside_the_federation_is_refused(settings, sites):
    gathering = Gathering.open(settings, "first")
    standing = gathering.receive("client-9", answers(sites)["client-1"])
    assert standing.state == "refused"
    assert not list((gathering.folder / "answers").iterdir())


def test_an_answer_that_utf_8_cannot_hold_does_not_end_the_round(
    settings, sites, fragments, key_folder
):
    """The reason of a refusal is written to a file, so it must not quote a lone surrogate."""
    settings = settings.model_copy(update={"keys": key_folder / "site-keys.toml"})
    texts = {}
    for piece in fragments:
        key = read_private_key(key_folder / f"{piece.client}.key")
        envelope = sign_fragment(piece, key)
        if piece.client == "client-2":
            envelope = json.dumps({**json.loads(envelope), "\ud800": 1})
        answer = json.loads(answers(sites)[piece.client])
        texts[piece.client] = json.dumps({**answer, "fragment": envelope})
    _, result = gather(settings, texts)
    assert list(result.provenance["refused"]) == ["client-2"]


def test_a_fragment_older_than_one_used_in_an_earlier_round_is_stale(settings, sites):
    gather(settings, answers(sites))
    older = json.loads(answers(sites, "second")["client-2"])
    older["written_at"] -= 10**9
    texts = {**answers(sites, "second"), "client-2": json.dumps(older)}
    _, result = gather(settings, texts, "second")
    assert "a newer one has been used" in result.provenance["refused"]["client-2"]
    assert set(result.fragments) == {"client-1", "client-3"}


def test_too_few_fragments_give_no_result_but_the_state_of_each_site(settings, sites):
    texts = {"client-1": answers(sites)["client-1"]}
    with pytest.raises(InputError, match=r"1 fragment accepted .* 2 are needed .* client-2 miss"):
        gather(settings, texts, min_sites=2)
    assert not (settings.results / "first" / "result.json").exists()
    assert status(settings)["client-3"] == {"state": "missing"}


def test_an_interrupted_round_continues_with_the_answers_that_were_kept(settings, sites, fragments):
    texts = answers(sites)
    killed = Gathering.open(settings, "first")
    killed.receive("client-1", texts["client-1"])
    killed.receive("client-2", texts["client-2"])
    # The process dies here. Only the third site answers when the round is run again.
    _, result = gather(settings, {"client-3": texts["client-3"]})
    assert result.order.pairs() == jc.assemble(fragments).pairs()
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


def test_a_second_submission_gives_the_same_result(settings, sites):
    gathering, _ = gather(settings, answers(sites))
    first = (gathering.folder / "result.json").read_bytes()
    gather(settings, answers(sites))
    assert (gathering.folder / "result.json").read_bytes() == first


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", "x" * 64, "a b", None, 3])
def test_the_name_of_a_round_cannot_lead_out_of_its_folder(name, settings):
    with pytest.raises(InputError, match="round's name"):
        Gathering.open(settings, name)
