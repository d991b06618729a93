"""One round without a network: what a site answers, what counts, and what a result says."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta

import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.answer import WHY_NOT, answer
from jigsaw_crl.federated.disclosure import size_bound
from jigsaw_crl.federated.gathering import STATUS, Gathering
from jigsaw_crl.federated.job import RoundOptions, write_job
from jigsaw_crl.federated.settings import (
    COORDINATOR_FILE,
    SITE_FILE,
    CoordinatorSettings,
    SiteSettings,
    coordinator_settings,
    site_settings,
)
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.fragment.signing import generate_key, read_private_key, sign_fragment

SITES = ("client-1", "client-2", "client-3")


@pytest.fixture(scope="module")
def fragments():
    world = jc.simulate.setting("A", 0)
    return [jc.recover_fragment(world.client(k)).without_basis() for k in range(3)]


@pytest.fixture
def sites(tmp_path, fragments):
    found = {}
    for piece in fragments:
        path = tmp_path / f"{piece.client}.json"
        path.write_text(piece.to_json())
        found[piece.client] = SiteSettings(path)
    return found


@pytest.fixture
def settings(tmp_path):
    return CoordinatorSettings(SITES, tmp_path / "results", most_bytes=100_000)


def answers(sites, round_name="first"):
    return {site: answer(own, site, round_name) for site, own in sites.items()}


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


def test_an_answer_holds_the_fragment_its_time_and_nothing_else(sites, fragments):
    document = json.loads(answers(sites)["client-1"])
    assert set(document) == {"format", "version", "round", "written_at", "fragment"}
    assert document["fragment"] == fragments[0].to_json()
    assert document["written_at"] == sites["client-1"].fragment.stat().st_mtime_ns


def spoil(path, kind, fragments):
    if kind == "none":
        path.unlink()
    elif kind == "invalid":
        path.write_text(fragments[0].to_json()[:-1] + ',"rows":[[1.0]]}')
    elif kind == "other-client":
        path.write_text(fragments[1].to_json())
    elif kind == "too-large":
        path.write_text(" " * 100_001)


@pytest.mark.parametrize("kind", WHY_NOT)
def test_a_site_that_has_no_good_fragment_says_so_in_one_known_word(
    kind, settings, sites, fragments, tmp_path
):
    path = sites["client-1"].fragment
    spoil(path, kind, fragments)
    text = answer(SiteSettings(path, most_bytes=100_000), "client-1", "first")
    assert json.loads(text) == {
        "format": "jigsaw-crl/answer", "version": 1, "round": "first", "why_not": kind,
    }  # fmt: skip
    _, result = gather(settings, {**answers(sites), "client-1": text})
    assert set(result.fragments) == {"client-2", "client-3"}
    assert WHY_NOT[kind] in status(settings)["client-1"]["why"]


def test_nothing_can_be_hidden_in_the_blanks_of_a_fragment(settings, sites, fragments):
    """A file that reads as a fragment but is far longer than one is not sent, nor accepted."""
    path = sites["client-1"].fragment
    honest = json.loads(answers(sites)["client-1"])
    padded = fragments[0].to_json() + " \t" * size_bound(fragments[0].labels)
    assert Fragment.from_json(padded).labels == fragments[0].labels
    path.write_text(padded)
    assert json.loads(answer(SiteSettings(path), "client-1", "first"))["why_not"] == "too-large"
    wide = CoordinatorSettings(SITES, settings.results)
    forged = json.dumps({**honest, "fragment": padded})
    _, result = gather(wide, {**answers(sites), "client-1": forged})
    assert "oversized: larger than its labels" in result.provenance["refused"]["client-1"]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_site_reads_a_regular_file_or_nothing(make, tmp_path):
    make(tmp_path / "thing")
    text = answer(SiteSettings(tmp_path / "thing"), "client-1", "first")
    assert json.loads(text)["why_not"] == "none"


BAD = {
    "garbage": ("\x00\x7f not json", "garbage"),
    "no text": (b"bytes", "garbage"),
    "nothing": (None, "garbage"),
    "deep": ("[" * 50_000, "garbage"),
    "a list": ("[1]", "garbage"),
    "oversized": ('{"x":"' + "y" * 200_000 + '"}', "oversized"),
    "wide characters": ("\U0001f9e9" * 40_000, "oversized"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_answer_is_refused_by_name_and_the_rest_assembled(kind, settings, sites):
    text, says = BAD[kind]
    _, result = gather(settings, {**answers(sites), "client-2": text})
    assert set(result.fragments) == {"client-1", "client-3"}
    assert status(settings)["client-2"]["state"] == "refused"
    assert says in result.provenance["refused"]["client-2"]
    (finding,) = (f for f in result.diagnostics if f.check == "refused-site")
    assert finding.client == "client-2"
    assert says in finding.message


@pytest.mark.parametrize("field", ["rows", "written_at", "fragment", "version", "why_not"])
def test_an_answer_with_a_wrong_field_is_refused(field, settings, sites):
    texts = answers(sites)
    document = json.loads(texts["client-2"])
    document[field] = {"written_at": "soon", "fragment": "{}"}.get(field, 7)
    _, result = gather(settings, {**texts, "client-2": json.dumps(document)})
    assert list(result.provenance["refused"]) == ["client-2"]


def test_a_site_cannot_speak_for_another(settings, sites):
    texts = answers(sites)
    _, result = gather(settings, {**texts, "client-2": texts["client-3"]})
    assert "another client, 'client-3'" in result.provenance["refused"]["client-2"]


def test_a_stranger_is_not_counted(settings, sites):
    gathering = Gathering.open(settings, "first")
    standing = gathering.receive("client-9", answers(sites)["client-1"])
    assert standing.state == "refused"
    assert not list((gathering.folder / "answers").iterdir())


def test_an_answer_of_another_round_is_stale(settings, sites):
    old = answers(sites, "earlier")
    _, result = gather(settings, {**answers(sites), "client-2": old["client-2"]})
    assert "another round: it is stale" in result.provenance["refused"]["client-2"]


def test_a_fragment_older_than_one_already_used_is_stale(settings, sites):
    gather(settings, answers(sites))
    path = sites["client-2"].fragment
    os.utime(path, ns=(1, path.stat().st_mtime_ns - 10**9))
    _, result = gather(settings, answers(sites, "second"), "second")
    assert "stale: a newer one has been used" in result.provenance["refused"]["client-2"]
    assert set(result.fragments) == {"client-1", "client-3"}


def test_a_fragment_older_than_allowed_is_stale(settings, sites):
    path = sites["client-3"].fragment
    os.utime(path, (time.time() - 7200,) * 2)
    _, result = gather(settings, answers(sites), max_age=3600)
    assert "stale: 2 hours old, 1 are allowed" in result.provenance["refused"]["client-3"]


def test_a_fragment_from_the_future_is_refused(settings, sites):
    """Otherwise it would make every later one of its site stale."""
    path = sites["client-3"].fragment
    os.utime(path, (time.time() + 7200,) * 2)
    _, result = gather(settings, answers(sites))
    assert "in the future" in result.provenance["refused"]["client-3"]


def test_who_does_not_answer_is_named(settings, sites):
    texts = answers(sites)
    del texts["client-2"]
    _, result = gather(settings, texts)
    assert result.provenance["missing"] == ["client-2"]
    assert [(f.check, f.client) for f in result.diagnostics] == [("missing-site", "client-2")]
    assert status(settings)["client-2"] == {"state": "missing"}


def test_too_few_sites_give_no_result_but_a_status(settings, sites):
    texts = {"client-1": answers(sites)["client-1"]}
    with pytest.raises(InputError, match=r"1 of at least 2 sites .* client-2 missing"):
        gather(settings, texts, min_sites=2)
    assert not (settings.results / "first" / "result.json").exists()
    assert status(settings)["client-3"] == {"state": "missing"}


def test_an_interrupted_round_is_taken_up_with_what_was_kept(settings, sites, fragments):
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


def test_a_kept_answer_that_was_damaged_on_disk_does_not_count(settings, sites):
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


def test_with_keys_only_signed_fragments_count(tmp_path, settings, sites, fragments):
    lines = [generate_key(site, tmp_path / f"{site}.key") for site in SITES]
    (tmp_path / "keys.toml").write_text("\n".join(["[sites]", *lines]))
    settings = CoordinatorSettings(SITES, settings.results, tmp_path / "keys.toml")
    for piece in fragments[:2]:
        key = read_private_key(tmp_path / f"{piece.client}.key")
        sites[piece.client].fragment.write_text(sign_fragment(piece, key))
    _, result = gather(settings, answers(sites))
    assert set(result.fragments) == {"client-1", "client-2"}
    assert "not a signed fragment" in result.provenance["refused"]["client-3"]
    # A signature's own time counts, whatever the file's.
    old = datetime.now(UTC) - timedelta(hours=3)
    key = read_private_key(tmp_path / "client-3.key")
    sites["client-3"].fragment.write_text(sign_fragment(fragments[2], key, issued_at=old))
    _, result = gather(settings, answers(sites, "second"), "second", max_age=3600)
    assert "stale: 3 hours old" in result.provenance["refused"]["client-3"]


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", "x" * 64, "a b", None, 3])
def test_a_round_cannot_be_named_out_of_its_folder(name, settings):
    with pytest.raises(InputError, match="round's name"):
        Gathering.open(settings, name)


def test_settings_are_the_participant_s_own_and_closed(tmp_path):
    local = tmp_path / "local"
    local.mkdir()
    (local / SITE_FILE).write_text('{"fragment": "out/{site}.json"}')
    assert site_settings(local, "lab").fragment == tmp_path / "out" / "lab.json"
    (local / SITE_FILE).write_text('{"fragment": "f", "table": "rows.csv"}')
    with pytest.raises(InputError, match=SITE_FILE):
        site_settings(local, "lab")
    (local / COORDINATOR_FILE).write_text('{"sites": ["a", "a"], "results": "r"}')
    with pytest.raises(InputError, match="not a list of names"):
        coordinator_settings(local)
    (local / COORDINATOR_FILE).write_text('{"sites": ["a", "../b"], "results": "r"}')
    with pytest.raises(InputError, match="site's name"):
        coordinator_settings(local)
    with pytest.raises(InputError, match="no such file"):
        site_settings(tmp_path, "lab")


def test_the_job_carries_no_code_and_no_path(tmp_path):
    job = write_job(tmp_path / "job", RoundOptions("first"))
    files = sorted(str(p.relative_to(job)) for p in job.rglob("*") if p.is_file())
    assert files == [
        "app/config/config_fed_client.json", "app/config/config_fed_server.json", "meta.json",
    ]  # fmt: skip
    client = json.loads((job / "app/config/config_fed_client.json").read_text())
    (executor,) = client["executors"]
    assert executor["executor"]["args"] == {}
