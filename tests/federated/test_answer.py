"""What a site answers, and which answers the coordinator accepts."""

import hashlib
import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.answer import WHY_NOT, check_answer, make_answer
from jigsaw_crl.federated.keys import read_private_key
from jigsaw_crl.federated.ledger import Ledger
from jigsaw_crl.federated.settings import CoordinatorSettings, SiteSettings
from jigsaw_crl.federated.signing import Received, open_unverified, sign_fragment
from jigsaw_crl.fragment.fragment import Fragment

from ..fragment.examples import assert_one_line, fragment, fragments, mutations
from .conftest import STUDY

SITE = "client-1"
PIECE = Fragment.from_json(fragment(client=SITE).to_json())


WHEN = time.time_ns() - 60 * 10**9


def sign(piece, key, **options):
    return sign_fragment(piece, key, **{"study": STUDY, "round_name": "first"} | options)


HUB = CoordinatorSettings(sites=(SITE,), results=Path("results"), most_bytes=100_000)


NOTHING_USED = Ledger(Path("log.jsonl"))


def check(text, site=SITE, log=NOTHING_USED, keys=None):
    return check_answer(text, site, "first", HUB, log, keys)


def make(file, text, site=SITE, **settings):
    """The answer of a site whose file holds this text."""
    file.write_text(text, encoding="utf-8")
    return make_answer(SiteSettings(fragment=file, **settings), site, "first")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The file of a site's fragment."""
    return tmp_path_factory.mktemp("site") / "fragment.json"


@pytest.fixture(scope="module")
def honest(file):
    return make(file, PIECE.to_json())


@pytest.fixture(scope="module")
def key(key_folder):
    return read_private_key(key_folder / f"{SITE}.key")


def refusal(text, **changes):
    with pytest.raises(InputError) as caught:
        check(text, **changes)
    assert_one_line(caught.value, client=SITE)
    return str(caught.value)


# -- at the site ----------------------------------------------------------------------------------
def test_an_answer_holds_the_fragment_its_time_and_nothing_else(file):
    answer = make(file, PIECE.to_json())
    assert json.loads(answer) == [PIECE.to_json(), file.stat().st_mtime_ns, None]


UNUSABLE = {
    "none": None,
    "invalid": PIECE.to_json()[:-1] + ',"rows":[[1.0]]}',
    "other-client": fragment(client="client-2").to_json(),
    "too-few-rows": fragment(client=SITE, n_samples={"control": 29}).to_json(),
}


@pytest.mark.parametrize("why", UNUSABLE)
def test_a_site_without_a_usable_fragment_says_why_in_one_word(why, tmp_path):
    path = tmp_path / "fragment.json"
    if UNUSABLE[why] is not None:
        path.write_text(UNUSABLE[why])
    text = make_answer(SiteSettings(fragment=path, min_rows=30), SITE, "first")
    assert json.loads(text) == [None, None, why]
    assert WHY_NOT[why] in refusal(text)


# -- what a site has sent --------------------------------------------------------------------------
def send(path, piece, round_name="first", **settings):
    """The answer of a site, or the word with which it refuses."""
    path.write_text(piece.to_json())
    answer = make_answer(SiteSettings(fragment=path, **settings), SITE, round_name)
    return json.loads(answer)[2] or "sent"


def versions(count):
    """Fragments of one site that differ."""
    return [fragment(client=SITE, n_samples={"control": 100 + i}) for i in range(count)]


def test_what_is_sent_is_logged_at_the_site_before_it_is_sent(tmp_path):
    path = tmp_path / "fragment.json"
    one, other = versions(2)
    send(path, one)
    send(path, other, "second")
    lines = Ledger.read(tmp_path / "fragment.sent.jsonl").lines
    assert [(x.round, x.digest) for x in lines] == [
        ("first", hashlib.sha256(one.to_json().encode()).hexdigest()),
        ("second", hashlib.sha256(other.to_json().encode()).hexdigest()),
    ]


def test_without_a_log_nothing_is_sent(tmp_path):
    path = tmp_path / "fragment.json"
    assert send(path, versions(1)[0]) == "sent"
    log = tmp_path / "fragment.sent.jsonl"
    log.write_text(log.read_text().replace("first", "other") * 2)
    assert send(path, versions(1)[0]) == "not-logged"
    log.unlink()
    log.mkdir()
    assert send(path, versions(1)[0]) == "not-logged"


@pytest.mark.parametrize("make_node", [os.mkfifo, os.mkdir])
def test_a_site_reads_only_a_regular_file(make_node, tmp_path):
    make_node(tmp_path / "node")
    text = make_answer(SiteSettings(fragment=tmp_path / "node"), SITE, "first")
    assert json.loads(text)[2] == "none"


# -- at the coordinator ---------------------------------------------------------------------------
@given(fragments(), st.booleans())
def test_a_fragment_arrives_as_it_was_written(file, key, public_keys, piece, signed):
    text = sign(piece, key) if signed else piece.to_json()
    own = {piece.client: public_keys.sites[SITE]}
    keys = public_keys.model_copy(update={"sites": own}) if signed else None
    accepted = check(make(file, text, piece.client), piece.client, keys=keys)
    assert accepted.fragment.to_json() == piece.to_json()
    assert accepted.site == piece.client
    assert accepted.digest == hashlib.sha256(piece.to_json().encode()).hexdigest()
    if signed:
        assert (accepted.envelope.study, accepted.envelope.round) == (STUDY, "first")
        assert open_unverified(text).to_json() == piece.to_json()


@given(st.data())
def test_a_changed_signed_answer_is_refused_in_one_line_or_means_the_same(
    file, key, public_keys, data
):
    envelope = sign(PIECE, key, serial=WHEN)
    answer = make(file, envelope)
    parts = json.loads(answer)
    if data.draw(st.booleans()):
        parts[0] = data.draw(mutations(envelope))
    else:
        anything = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text())
        parts[data.draw(st.integers(0, 2))] = data.draw(anything)
    changed, cut = json.dumps(parts), data.draw(st.none() | st.integers(0, len(answer)))
    changed = changed[:cut]
    try:
        accepted = check(changed, keys=public_keys)
    except InputError as error:
        assert_one_line(error, client=SITE)
        return
    assert accepted.fragment.to_json() == PIECE.to_json()
    assert (accepted.site, accepted.serial) == (SITE, WHEN)


MALFORMED = {
    "nothing": ("", "garbage"),
    "deep": ("[" * 50_000, "garbage"),
    "oversized": ('{"x":"' + "y" * 200_000 + '"}', "oversized"),
    "wide characters": ("\U0001f9e9" * 40_000, "oversized"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_text_that_is_not_an_answer_is_refused(case):
    text, says = MALFORMED[case]
    assert says in refusal(text)


NOW = time.time_ns()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([PIECE.to_json(), NOW], "garbage"),
        ([PIECE.to_json(), NOW, None, [[1.0]]], "garbage"),
        ([PIECE.to_json(), "soon", None], "garbage"),
        ([PIECE.to_json(), True, None], "garbage"),
        ([PIECE.to_json(), -1, None], "garbage"),
        ([PIECE.to_json(), 10**400, None], "garbage"),
        ([PIECE.to_json(), None, None], "garbage"),
        ([PIECE.to_json(), 5, None], "before 2025"),
        ([PIECE.to_json(), NOW + 10**13, None], "in the future"),
        ([None, NOW, None], "garbage"),
        ([["{}"], NOW, None], "garbage"),
        (["{}", NOW, None], "not a jigsaw-crl fragment"),
        ([PIECE.to_json(), NOW, "none"], "it has no finished fragment"),
        ([None, None, "busy\nly"], "it sends none"),
        ([None, None, ["none"]], "it sends none"),
        ({"a": 1, "b": 2, "c": 3}, "it sends none"),
        ("abc", "it sends none"),
        (7, "garbage"),
    ],
)
def test_an_answer_with_a_wrong_part_is_refused(answer, says):
    assert says in refusal(json.dumps(answer))


def test_a_site_cannot_send_the_fragment_of_another_client(file):
    text = make(file, fragment(client="client-3").to_json(), "client-3")
    assert "another client, 'client-3'" in refusal(text)


def test_nothing_can_be_hidden_in_the_spaces_of_a_fragment(file, honest):
    """A text that reads as a fragment but is not as it is written is not sent, nor accepted."""
    padded = PIECE.to_json() + " \t"
    assert Fragment.from_json(padded).labels == PIECE.labels
    assert json.loads(make(file, padded))[2] == "invalid"
    forged = json.dumps([padded, *json.loads(honest)[1:]])
    assert "its text is not as this program writes it" in refusal(forged)


@pytest.mark.parametrize("signed", [False, True])
def test_a_fragment_older_than_the_last_one_used_is_stale(signed, file, honest, key, public_keys):
    """A signed fragment is as old as its signature, another one as its file."""
    when, keys = json.loads(honest)[1], public_keys if signed else None
    if signed:
        when = WHEN
        honest = make(file, sign(PIECE, key, serial=when))

    def used(serial, piece=PIECE):
        return Ledger(Path("log.jsonl")).having([Received(piece, serial)], "earlier")

    for newer in (when + 1, 10**30):
        assert "stale: a newer one" in refusal(honest, log=used(newer), keys=keys)
    for log in (used(when), used(when + 1, fragment(client="client-2"))):
        assert check(honest, log=log, keys=keys).serial == when


@pytest.mark.parametrize("changed", ["study", "round_name"])
def test_a_fragment_signed_for_another_study_or_round_is_refused(changed, file, key, public_keys):
    text = make(file, sign(PIECE, key, **{changed: "another"}))
    what = changed.removesuffix("_name")
    assert f"it was signed for the {what} 'another', not for" in refusal(text, keys=public_keys)
