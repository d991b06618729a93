"""Three sites with a fragment each and their coordinator, and the kits of a federation."""

import json
from types import SimpleNamespace

import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.keys import KeyList, generate_key, read_private_key
from jigsaw_crl.federated.kits import init_federation
from jigsaw_crl.federated.settings import CoordinatorSettings, SiteSettings
from jigsaw_crl.federated.signing import sign_fragment

SITES = ("client-1", "client-2", "client-3")
LABS = ("lab-1", "lab-2")
STUDY = "reactor"


@pytest.fixture(scope="session")
def fragments():
    """The sites' fragments, without what does not leave a site."""
    world = jc.simulate.setting("A", 0)
    sent = [jc.recover_fragment(world.client(k)).to_json() for k in range(3)]
    return [jc.Fragment.from_json(text) for text in sent]


@pytest.fixture
def sites(tmp_path, fragments):
    """Settings of the sites, whose fragments are in files."""
    found = {}
    for piece in fragments:
        path = tmp_path / f"{piece.client}.json"
        path.write_text(piece.to_json())
        found[piece.client] = SiteSettings(fragment=path)
    return found


@pytest.fixture
def settings(tmp_path):
    """Settings of the coordinator."""
    return CoordinatorSettings(sites=SITES, results=tmp_path / "results", most_bytes=100_000)


@pytest.fixture(scope="session")
def key_folder(tmp_path_factory):
    """The sites' private keys, and the list of their public ones, `site-keys.toml`."""
    folder = tmp_path_factory.mktemp("keys")
    lines = [generate_key(site, folder / f"{site}.key") for site in SITES]
    (folder / "site-keys.toml").write_text("\n".join([f'study = "{STUDY}"', "[sites]", *lines]))
    return folder


def sign(folder, piece, key=None, **options):
    """A signed file of a fragment beside the keys, for the round `first` if no other is named."""
    private = read_private_key(folder / f"{key or piece.client}.key")
    path = folder / f"{piece.client}.signed.json"
    options = {"study": STUDY, "round_name": "first"} | options
    path.write_text(sign_fragment(piece, private, **options))
    return path


def with_coordinator(folder, fragments):
    """A signed file of each fragment, and a key of the coordinator on the list."""
    keys = folder / "site-keys.toml"
    line = generate_key("coordinator", folder / "coordinator.key")
    keys.write_text(f"coordinator = {line.split(' = ')[1]}\n" + keys.read_text())
    for piece in fragments:
        sign(folder, piece)
    return folder


def unwritten(action):
    """Do it; errors, be they of NVFlare's or ours, say that something cannot be written."""
    try:
        action()
    except InputError as error:
        raise InputError(f"it cannot be written: {error}", "") from None


@pytest.fixture(scope="session")
def public_keys(key_folder):
    return KeyList.from_toml(key_folder / "site-keys.toml")


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Kits of two sites; no test changes them."""
    folder = tmp_path_factory.mktemp("kits") / "federation"
    kits = init_federation(folder, LABS, server="hub.example.org", port=9123)
    return SimpleNamespace(
        project=folder / "project.yml",
        coordinator=kits / "hub.example.org",
        admin=kits / "coordinator@jigsaw.local",
        sites={name: kits / name for name in LABS},
    )


def read_local(kit, name):
    """A file of a kit's `local` folder."""
    return json.loads((kit / "local" / name).read_text())
