"""Signed fragments: verified, or refused by the name of the site."""

import base64
import json
import stat

import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.keys import KeyList, read_private_key
from jigsaw_crl.federated.signing import Envelope, open_signed, sign_fragment

from ..fragment.examples import assert_one_line, fragment
from .conftest import SITES, STUDY

ONE, OTHER = SITES[:2]
NAMED = f'study = "{STUDY}"\n'
FOR = {"study": STUDY, "round_name": "first"}


@pytest.fixture(scope="module")
def private(key_folder):
    return {site: read_private_key(key_folder / f"{site}.key") for site in SITES}


@pytest.fixture(scope="module")
def text(private):
    return sign_fragment(fragment(client=ONE), private[ONE], **FOR)


@pytest.mark.parametrize(
    "field",
    ["site", "key", "study", "round", "serial", "fragment", "signature"],
)
def test_no_field_can_be_altered(field, text, public_keys):
    envelope = json.loads(text)
    changed = {
        "site": OTHER,
        "key": "0" * 16,
        "study": "another",
        "round": "another",
        "serial": envelope["serial"] + 1,
        "fragment": fragment(method="paper").to_json(),
        "signature": base64.b64encode(bytes(64)).decode(),
    }
    assert changed[field] != envelope[field]
    named = OTHER if field == "site" else ONE
    with pytest.raises(InputError, match=rf"client '{named}': it (was altered|is signed with)"):
        open_signed(json.dumps(envelope | {field: changed[field]}), public_keys, "first")


def shifted(seconds):
    """A serial ahead of the clock would make every later fragment of the site look old."""
    return lambda envelope: {"serial": envelope.serial + seconds * 10**9}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda _: {"fragment": fragment(client=OTHER).to_json()}, f"the site signed .* '{OTHER}'"),
        (
            lambda x: {"fragment": json.dumps(json.loads(x.fragment), ensure_ascii=False)},
            "not as this program writes it",
        ),
        (shifted(-(10**9)), "it was made before 2025"),
        (shifted(3600), "it was made in the future"),
        (shifted(10**9), "it was made in the future"),
    ],
    ids=["another client", "another spelling", "too early", "too late", "far too late"],
)
def test_what_a_site_may_not_sign_is_refused(change, says, text, private, public_keys):
    envelope = Envelope.from_text(text)
    signed = envelope.model_copy(update=change(envelope)).signed_with(private[ONE])
    with pytest.raises(InputError, match=rf"client '{ONE}': .*{says}"):
        open_signed(signed.model_dump_json(), public_keys, "first")


def test_signing_on_the_command_line_names_study_and_round(
    key_folder, public_keys, tmp_path, told, refused
):
    told("simulate", "--setting", "A", "--out", tmp_path / "study")
    table, out = next((tmp_path / "study").glob("client-1.*")), tmp_path / "f.json"
    words = ["fragment", table, "-o", out, "--sign", key_folder / f"{ONE}.key"]
    refused(words, "--sign, --study and --round belong together")
    told(*words, "--name", ONE, "--study", STUDY, "--round", "first")
    opened = open_signed(out.read_text(), public_keys, "first")
    assert opened.site == ONE
    refused(["fragment", table, "--show", "--round", "first"], "belong together")


def test_a_signed_text_in_another_spelling_is_refused(text, public_keys):
    # The signature holds for each of them: it covers the fields.
    spaced = json.dumps(json.loads(text), ensure_ascii=False)
    for other in (spaced, text + "\n", "\ufeff" + text):
        assert other != text
        with pytest.raises(InputError, match="not as this program writes it") as caught:
            open_signed(other.encode(), public_keys, "first")
        assert_one_line(caught.value)
    assert open_signed(text, public_keys, "first").site == ONE


def test_only_the_owner_can_read_a_private_key_and_it_is_not_overwritten(tmp_path, told, refused):
    words = ["federate", "keygen", "lab", "-o", tmp_path / "lab.key"]
    assert told(*words).startswith('"lab" = "ed25519:')
    assert stat.S_IMODE((tmp_path / "lab.key").stat().st_mode) == 0o600
    refused(words, "lab.key")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[sites", "not valid TOML"),
        (f"study = {'9' * 5000}", "not valid TOML"),
        (NAMED + "[site]", "has no field 'sites'"),
        ('[sites]\nlab = "ed25519:AAAA"', "has no field 'study'"),
        (NAMED + "[sites]", "'sites'"),
        (NAMED + '[sites]\nlab = "ed25519:AAAA"', "'sites.lab.0' .* a public key is"),
        (NAMED + "[sites]\nlab = 3", "'sites.lab.0' .* is not valid"),
        (NAMED + '[sites]\nlab = "ssh-ed25519 AAAA"', "'sites.lab.0' .* a public key is"),
    ],
)
def test_an_invalid_list_of_keys_is_refused_with_the_name_of_the_site(text, says, tmp_path):
    (tmp_path / "k.toml").write_text(text)
    with pytest.raises(InputError, match=says) as caught:
        KeyList.from_toml(tmp_path / "k.toml")
    assert "keygen" in str(caught.value)
    assert_one_line(caught.value)


@pytest.mark.parametrize(
    "text", ["", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"]
)
def test_a_file_that_is_not_a_private_key_is_refused(text, tmp_path):
    (tmp_path / "key").write_text(text)
    with pytest.raises(InputError, match="not an Ed25519 private key"):
        read_private_key(tmp_path / "key")
