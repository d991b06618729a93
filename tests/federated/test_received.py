"""Signed fragment files at the coordinator, by the command `jigsaw assemble --keys`."""

import json
import shutil
import time

import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.keys import KeyList, generate_key
from jigsaw_crl.federated.round import Gathering

from .conftest import SITES, sign, with_coordinator


@pytest.fixture
def federation(tmp_path, fragments, key_folder):
    """Keys of three sites, the coordinator's list of them, and a signed file of each."""
    return with_coordinator(shutil.copytree(key_folder, tmp_path / "federation"), fragments)


def files(folder):
    return [str(folder / f"{site}.signed.json") for site in SITES]


def assembling(folder, *options, round_name="first"):
    keys = ["--keys", folder / "site-keys.toml", "--round", round_name]
    return ["assemble", *files(folder), *keys, *options]


def altered(folder, _):
    path = folder / "client-2.signed.json"
    path.write_text(path.read_text().replace('\\"z1\\"', '\\"z9\\"'))


def unlisted(folder, _):
    keys = folder / "site-keys.toml"
    lines = keys.read_text().splitlines()
    keys.write_text("\n".join(line for line in lines if "client-3" not in line))


REFUSED = {
    "altered": (altered, "client-2': it was altered after the site signed it"),
    "unknown site": (unlisted, "client-3': the site is not on the list of keys"),
    "unsigned": (
        lambda folder, fragments: (folder / "client-1.signed.json").write_text(
            fragments[0].to_json()
        ),
        "client-1': this is not a jigsaw-crl signed fragment",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_is_not_the_sites_own_is_refused_by_name(case, federation, fragments, refused):
    spoil, says = REFUSED[case]
    spoil(federation, fragments)
    # Nothing is written: what was not used can still be.
    refused(assembling(federation), f"client '{says}")


def test_signed_fragments_need_keys_and_a_round(federation, refused):
    keys = ["--keys", federation / "site-keys.toml"]
    for options, says in (
        ([], "the fragment is signed. Pass the list of the sites' keys"),
        (keys, "--keys and --round belong together"),
        (["--round", "first"], "--keys and --round belong together"),
    ):
        refused(["assemble", *files(federation), *options], says)


def test_a_replayed_fragment_is_refused(federation, fragments, told, refused):
    file = federation / "client-2.signed.json"
    old = file.read_text()
    sign(federation, fragments[1])
    told(*assembling(federation))
    refused(assembling(federation), "the round 'first' has a result")
    # Of one round, an older one is refused too.
    new = file.read_text()
    file.write_text(old)
    stale = "client 'client-2': its fragment is stale: a newer one has been used"
    refused(assembling(federation, "--again"), stale)
    file.write_text(new)
    # New ones of the first two sites do not help the third's old one in.
    sign(federation, fragments[0], round_name="second")
    sign(federation, fragments[1], round_name="second")
    other = "client 'client-3': it was signed for the round 'first', not for 'second'"
    refused(assembling(federation, round_name="second"), other)
    sign(federation, fragments[2], round_name="second")
    told(*assembling(federation, round_name="second"))


def test_both_routes_share_one_record(federation, fragments, settings, told, refused):
    """A fragment used in a live round cannot be replayed as a file, nor the other way round."""
    hub = settings.model_copy(update={"keys": federation / "site-keys.toml"})
    told(*assembling(federation))
    with pytest.raises(InputError, match="'first' has a result"):
        Gathering.open(hub, "first")
    late = {p.client: sign(federation, p, round_name="second").read_text() for p in fragments}
    gathering = Gathering.open(hub, "second")
    for site, text in late.items():
        answer = [text, time.time_ns(), None]
        assert gathering.receive(site, json.dumps(answer)).state == "received"
    gathering.finish(3)
    refused(assembling(federation, round_name="second"), "the round 'second' has a result")


def test_a_site_may_change_its_key(federation, fragments, told):
    line = generate_key("client-1", federation / "new.key")
    new = line.split(" = ")[1]
    keys = federation / "site-keys.toml"
    old = KeyList.from_toml(keys).sites["client-1"][0]
    keys.write_text(keys.read_text().replace(f'"{old}"', f'["{old}", {new}]'))
    sign(federation, fragments[0], key="new")
    told(*assembling(federation))
