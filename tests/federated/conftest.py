"""Three sites with a fragment each and their coordinator, and the kits of a federation."""

import json
from types import SimpleNamespace

import pytest

import jigsaw_crl as jc
from jigsaw_crl.federated.keys import generate_key, read_key_list
from jigsaw_crl.federated.kits import init_federation
from jigsaw_crl.federated.settings import CoordinatorSettings, SiteSettings

SITES = ("client-1", "client-2", "client-3")
LABS = ("lab-1", "lab-2")
STUDY = "reactor"


@pytest.fixture(scope="session")
def fragments():
    """The sites' fragments, without what does not leave a site."""
    world = jc.simulate.setting("A", 0)
    return [jc.recover_fragment(world.client(k)).without_basis() for k in range(3)]


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


@pytest.fixture(scope="session")
def public_keys(key_folder):
    return read_key_list(key_folder / "site-keys.toml")


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
