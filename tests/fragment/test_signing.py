"""Signed fragments: verified, or refused by the name of the site."""

from __future__ import annotations

import base64
import json
import stat
from datetime import UTC, datetime

import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.cli import app as cli
from jigsaw_crl.federated.seen import Seen
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.fragment.signing import (
    generate_key,
    open_signed,
    read_private_key,
    read_site_keys,
    sign_fragment,
)

SITES = ("client-1", "client-2", "client-3")


@pytest.fixture(scope="module")
def fragments() -> list[Fragment]:
    world = jc.simulate.setting("A", 0)
    return [jc.recover_fragment(world.client(k)).without_basis() for k in range(3)]


@pytest.fixture
def federation(tmp_path, fragments):
    """Keys of three sites, the coordinator's list of them, and a signed file of each."""
    lines = [generate_key(site, tmp_path / f"{site}.key") for site in SITES]
    (tmp_path / "site-keys.toml").write_text("\n".join(["[sites]", *lines]))
    for piece in fragments:
        sign(tmp_path, piece)
    return tmp_path


def sign(folder, piece, key=None, name=None, **options):
    text = sign_fragment(piece, read_private_key(folder / f"{key or piece.client}.key"), **options)
    path = folder / f"{name or piece.client}.signed.json"
    path.write_text(text)
    return path


def files(folder):
    return [str(folder / f"{site}.signed.json") for site in SITES]


def assemble(folder, *options):
    keys = ["--keys", str(folder / "site-keys.toml")]
    return cli.run(["assemble", *files(folder), *keys, *options])


def refusal(capsys, code):
    captured = capsys.readouterr()
    assert code == 2
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    return captured.err


def test_signed_fragments_assemble_to_the_order_of_unsigned_ones(federation, fragments):
    assert assemble(federation, "--out", str(federation / "result")) == 0
    result = jc.load_result(federation / "result")
    assert result.order.pairs() == jc.assemble(fragments).pairs()
    assert set(result.provenance["signatures"]) == set(SITES)
    assert set(result.provenance["signatures"]["client-1"]) == {
        "key", "issued_at", "serial", "digest",
    }  # fmt: skip


def test_an_opened_fragment_is_the_one_that_was_signed(federation, fragments):
    when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    path = sign(federation, fragments[0], issued_at=when, serial=7)
    signed = open_signed(path.read_bytes(), read_site_keys(federation / "site-keys.toml"))
    assert signed.fragment.to_json() == fragments[0].to_json()
    assert (signed.site, signed.issued_at, signed.serial) == ("client-1", when, 7)


@pytest.mark.parametrize("field", ["site", "key", "issued_at", "serial", "fragment", "signature"])
def test_no_field_can_be_altered(field, federation, fragments):
    envelope = json.loads((federation / "client-2.signed.json").read_text())
    changed = {
        "site": "client-3",
        "key": "0" * 16,
        "issued_at": "2020-01-01T00:00:00Z",
        "serial": envelope["serial"] + 1,
        "fragment": envelope["fragment"].replace("z1", "z9"),
        "signature": base64.b64encode(bytes(64)).decode(),
    }
    assert changed[field] != envelope[field]
    text = json.dumps(envelope | {field: changed[field]})
    named = "client-3" if field == "site" else "client-2"
    with pytest.raises(InputError, match=rf"client '{named}': it (was altered|is signed with)"):
        open_signed(text, read_site_keys(federation / "site-keys.toml"))


def test_an_altered_fragment_is_refused_by_name(federation, capsys):
    path = federation / "client-2.signed.json"
    text = path.read_text()
    path.write_text(text.replace('\\"z1\\"', '\\"z9\\"'))
    assert path.read_text() != text
    message = refusal(capsys, assemble(federation))
    assert "client 'client-2': it was altered after the site signed it" in message


def test_a_fragment_signed_with_another_site_s_key_is_refused_by_name(
    federation, fragments, capsys
):
    sign(federation, fragments[1], key="client-3")
    message = refusal(capsys, assemble(federation))
    assert "client 'client-2': it is signed with the key" in message
    assert "which is not the site's" in message


def test_a_forger_who_names_the_right_key_is_refused(federation, fragments, tmp_path, capsys):
    right = json.loads((federation / "client-2.signed.json").read_text())["key"]
    path = sign(federation, fragments[1], key="client-3")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"key": right}))
    assert "client 'client-2': it was altered" in refusal(capsys, assemble(federation))


def test_an_unknown_site_is_refused_by_name(federation, capsys):
    keys = federation / "site-keys.toml"
    lines = keys.read_text().splitlines()
    keys.write_text("\n".join(line for line in lines if "client-3" not in line))
    message = refusal(capsys, assemble(federation))
    assert "client 'client-3': the site is not on the list of keys" in message


def test_a_site_speaks_for_itself_only(federation, fragments):
    """A site's valid signature around another client's fragment counts for neither."""
    key = read_private_key(federation / "client-3.key")
    stolen = Fragment.from_document(json.loads(fragments[2].to_json()) | {"client": "client-3"})
    envelope = json.loads(sign_fragment(stolen, key))
    from jigsaw_crl.fragment.signing import _signed_bytes

    envelope["fragment"] = fragments[1].to_json()
    envelope["signature"] = base64.b64encode(key.sign(_signed_bytes(envelope))).decode()
    with pytest.raises(InputError, match=r"client 'client-3': the site signed .* 'client-2'"):
        open_signed(json.dumps(envelope), read_site_keys(federation / "site-keys.toml"))


def test_an_unsigned_fragment_is_refused_where_keys_are_asked_for(federation, fragments, capsys):
    (federation / "client-1.signed.json").write_text(fragments[0].to_json())
    message = refusal(capsys, assemble(federation))
    assert "client 'client-1': this is not a signed fragment" in message


def test_a_signed_fragment_is_not_taken_unverified(federation, capsys):
    message = refusal(capsys, cli.run(["assemble", *files(federation)]))
    assert "the fragment is signed. Pass the list of the sites' keys" in message


def test_a_replayed_fragment_is_refused_by_name(federation, fragments, capsys):
    assert assemble(federation) == 0
    capsys.readouterr()
    assert "client 'client-1': the fragment is replayed" in refusal(capsys, assemble(federation))
    # New ones of the first two sites do not help the third's old one in.
    sign(federation, fragments[0])
    sign(federation, fragments[1])
    assert "client 'client-3': the fragment is replayed" in refusal(capsys, assemble(federation))
    sign(federation, fragments[2])
    assert assemble(federation) == 0


def test_an_older_fragment_is_refused_once_a_newer_was_used(federation, fragments, capsys):
    old = (federation / "client-1.signed.json").read_text()
    sign(federation, fragments[0])
    assert assemble(federation) == 0
    capsys.readouterr()
    (federation / "client-1.signed.json").write_text(old)
    for options in ((), ("--again",)):
        message = refusal(capsys, assemble(federation, *options))
        assert "client 'client-1': the fragment is replayed: serial" in message


def test_the_same_result_can_be_made_once_more_on_request(federation, capsys):
    assert assemble(federation, "--json") == 0
    first = capsys.readouterr().out
    assert assemble(federation, "--json", "--again") == 0
    assert capsys.readouterr().out == first


def test_a_refused_round_uses_nothing_up(federation, fragments, capsys):
    good = (federation / "client-3.signed.json").read_text()
    (federation / "client-3.signed.json").write_text(good[:-40] + "}")
    assert assemble(federation) == 2
    (federation / "client-3.signed.json").write_text(good)
    assert assemble(federation) == 0


def test_a_record_that_cannot_be_read_is_not_taken_for_an_empty_one(federation, capsys):
    (federation / "site-keys.seen.json").write_text("{}")
    assert "record of fragments already used" in refusal(capsys, assemble(federation))


def test_two_files_of_one_site_are_refused(federation, fragments, capsys):
    extra = sign(federation, fragments[0], name="extra")
    keys = ["--keys", str(federation / "site-keys.toml")]
    message = refusal(capsys, cli.run(["assemble", *files(federation), str(extra), *keys]))
    assert "client 'client-1': another file holds a fragment of the same client" in message


def test_a_site_may_change_its_key(federation, fragments, capsys):
    line = generate_key("client-1", federation / "new.key")
    new = line.split(" = ")[1]
    keys = federation / "site-keys.toml"
    old = read_site_keys(keys)["client-1"][0]
    keys.write_text(keys.read_text().replace(f'"{old}"', f'["{old}", {new}]'))
    sign(federation, fragments[0], key="new")
    assert assemble(federation) == 0


def test_the_private_key_is_its_owner_s_and_never_overwritten(tmp_path, capsys):
    path = tmp_path / "lab.key"
    assert cli.run(["federate", "keygen", "lab", "-o", str(path)]) == 0
    line = capsys.readouterr().out.strip()
    assert line.startswith('"lab" = "ed25519:')
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_bytes()
    assert cli.run(["federate", "keygen", "lab", "-o", str(path)]) == 2
    assert path.read_bytes() == before


def test_the_list_of_keys_is_read_from_json_too(federation):
    keys = read_site_keys(federation / "site-keys.toml")
    path = federation / "keys.json"
    path.write_text(json.dumps({"sites": {k: list(v) for k, v in keys.items()}}))
    assert read_site_keys(path) == keys


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("k.toml", "[sites", "not valid TOML"),
        ("k.json", "[", "not valid JSON"),
        ("k.json", "[]", "no table 'sites'"),
        ("k.toml", "[sites]", "no table 'sites'"),
        ("k.toml", '[sites]\nlab = "ed25519:AAAA"', "client 'lab': its public key is not valid"),
        ("k.toml", "[sites]\nlab = 3", "client 'lab': its public key is not valid"),
        ("k.toml", '[sites]\nlab = "ssh-ed25519 AAAA"', "client 'lab': its public key"),
    ],
)
def test_a_list_of_keys_that_is_wrong_is_refused(name, text, says, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=says):
        read_site_keys(tmp_path / name)


NO_KEY = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize("text", ["", NO_KEY])
def test_what_is_no_private_key_is_refused(text, tmp_path):
    (tmp_path / "key").write_text(text)
    with pytest.raises(InputError, match="no Ed25519 private key"):
        read_private_key(tmp_path / "key")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": "jigsaw-crl/signed-fragment"}', "[" * 100_000, b"\xff\xfe"],
)
def test_garbage_is_refused_in_one_line(text, federation):
    with pytest.raises(InputError) as caught:
        open_signed(text, read_site_keys(federation / "site-keys.toml"))
    assert "\n" not in str(caught.value)


def test_the_record_survives_a_round_trip(federation, fragments):
    seen = Seen.beside(federation / "site-keys.toml")
    keys = read_site_keys(federation / "site-keys.toml")
    signed = open_signed((federation / "client-1.signed.json").read_text(), keys)
    seen.noting(signed).save()
    again = Seen.beside(federation / "site-keys.toml")
    assert again.last == {"client-1": (signed.serial, signed.digest)}
