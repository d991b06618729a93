"""The kits of a federation: what they allow, who joins and leaves, and certificates that expire."""

import json
import shutil
import stat
from contextlib import suppress

import pytest
from cryptography import x509

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.cli import app as cli
from jigsaw_crl.federated.kits import (
    GUARD,
    SITE,
    add_site,
    certificate_digest,
    check_hardened,
    init_federation,
    renew,
    revoke,
)
from jigsaw_crl.federated.running import check_certificates, run_participant
from jigsaw_crl.federated.settings import coordinator_settings

from ..result.test_faults import DONE, KILLED, REFUSED, SURVIVED, fault_at, run_child
from .conftest import LABS, read_local, unwritten
from .deployment import self_signed

pytestmark = pytest.mark.usefixtures("nvflare")


@pytest.fixture
def folder(made, tmp_path):
    """A copy of the federation that a test may change."""
    return shutil.copytree(made.project.parent, tmp_path / "federation")


def hub(folder):
    return coordinator_settings(folder / "kits" / "hub.example.org" / "local")


def certificate(path):
    return x509.load_pem_x509_certificate(path.read_bytes())


def is_issued_by_the_authority(folder, kit, base="client"):
    root = folder / "kits" / "lab-2" / "startup" / "rootCA.pem"
    certificate(kit / "startup" / f"{base}.crt").verify_directly_issued_by(certificate(root))
    return (kit / "startup" / "rootCA.pem").read_bytes() == root.read_bytes()


def modes(folder):
    return {p: stat.S_IMODE(p.stat().st_mode) & 0o077 for p in folder.rglob("*")}


# -- what kits allow ------------------------------------------------------------------------------
def test_kits_load_our_class_alone_and_nothing_that_runs_a_job(made):
    for kit, component in ((made.sites["lab-1"], SITE), (made.coordinator, GUARD)):
        resources = read_local(kit, "resources.json")
        assert [part["path"] for part in resources["components"]] == [component]
        # Nothing of the coordinator is where others can write.
        assert "/tmp" not in json.dumps(resources)
        roles = read_local(kit, "authorization.json")["permissions"]
        assert roles == {"project_admin": {"view": "any"}}
    assert read_local(made.sites["lab-1"], "resources.json")["allow_log_streaming"] is False
    assert hub(made.project.parent).sites == LABS
    assert hub(made.project.parent).admin == "coordinator@jigsaw.local"


def test_the_path_of_the_fragment_is_not_where_nvflare_would_announce_it(made):
    """Further entries of resources.json are sent to the server when a site registers."""
    kit = made.sites["lab-1"]
    assert "fragment" not in (kit / "local" / "resources.json").read_text()
    assert read_local(kit, "jigsaw-site.json") == {"fragment": "fragment.json", "min_rows": 30}


@pytest.mark.parametrize(
    ("sites", "says"),
    [
        ([], "not distinct"),
        (["a", "a"], "not distinct"),
        (["localhost"], "not distinct"),
        (["../up"], "site's name"),
        (["a b"], "site's name"),
    ],
)
def test_sites_without_distinct_plain_names_are_refused(sites, says, tmp_path, made):
    with pytest.raises(InputError, match=says):
        init_federation(tmp_path / "new", sites)
    assert not (tmp_path / "new").exists()
    with pytest.raises(InputError, match="not empty"):
        init_federation(made.project.parent, LABS)


# -- members --------------------------------------------------------------------------------------
def test_a_new_site_gets_a_hardened_kit_and_is_listed(folder):
    before = {p: p.read_bytes() for p in (folder / "kits" / "lab-1").rglob("*") if p.is_file()}
    kit = add_site(folder, "lab-9")
    check_hardened(kit)
    assert is_issued_by_the_authority(folder, kit)
    assert hub(folder).sites == (*LABS, "lab-9")
    assert read_local(kit, "jigsaw-site.json") == read_local(
        folder / "kits" / "lab-1", "jigsaw-site.json"
    )
    # The kits of the others stay as they are, and nothing else is left.
    assert {p: p.read_bytes() for p in before} == before
    assert {p.name for p in (folder / "authority").rglob("*")} == {"jigsaw", "state", "cert.json"}


@pytest.mark.parametrize("name", ["lab-1", "hub.example.org", "coordinator@jigsaw.local"])
def test_a_renewed_participant_has_a_new_key_and_its_old_settings(name, folder):
    kit = folder / "kits" / name
    base = "server" if name == "hub.example.org" else "client"
    before = (kit / "startup" / f"{base}.key").read_bytes()
    local = {p: p.read_bytes() for p in (kit / "local").rglob("*")}
    config = sorted(p.name for p in (kit / "startup").iterdir())
    renew(folder, name)
    assert (kit / "startup" / f"{base}.key").read_bytes() != before
    assert {p: p.read_bytes() for p in local} == local
    assert sorted(p.name for p in (kit / "startup").iterdir()) == config
    assert is_issued_by_the_authority(folder, kit, base)


def test_a_revoked_site_is_neither_listed_nor_admitted_and_cannot_come_back(folder):
    revoke(folder, "lab-1")
    assert hub(folder).sites == ("lab-2",)
    assert not joins(folder, "lab-1")
    assert joins(folder, "lab-2")
    for action in (revoke, renew):
        with pytest.raises(InputError, match="was revoked"):
            action(folder, "lab-1")
    with pytest.raises(InputError, match="has a participant 'lab-1' already"):
        add_site(folder, "lab-1")
    with pytest.raises(InputError, match="last site"):
        revoke(folder, "lab-2")


def certificate_of(folder, site):
    """The digest of the certificate in a kit; "" if there is none."""
    path = folder / "kits" / site / "startup" / "client.crt"
    return certificate_digest(path.read_bytes()) if path.exists() else ""


def joins(folder, site, kit=None):
    """Does a running coordinator admit a site that shows the certificate of a kit?"""
    from nvflare.fuel.f3.cellnet.defs import IdentityChallengeKey
    from nvflare.fuel.f3.message import Message
    from nvflare.private.defs import CellMessageHeaderKeys

    from jigsaw_crl.federated.components import Guard

    guard = Guard()
    guard.local = folder / "kits" / "hub.example.org" / "local"
    shown = ((kit or folder / "kits" / site) / "startup" / "client.crt").read_bytes()
    request = Message({CellMessageHeaderKeys.CLIENT_NAME: site}, {IdentityChallengeKey.CERT: shown})
    asked = []
    guard.register(request, lambda _: asked.append(site) or Message({}, {}))
    return bool(asked)


def test_a_stolen_kit_does_not_join_after_its_certificate_was_renewed(folder, tmp_path):
    stolen = shutil.copytree(folder / "kits" / "lab-1", tmp_path / "stolen")
    assert joins(folder, "lab-1", stolen)
    renew(folder, "lab-1")
    assert joins(folder, "lab-1")
    assert not joins(folder, "lab-1", stolen)
    assert not joins(folder, "lab-2", folder / "kits" / "lab-1")


CHANGES = {
    "init": lambda folder: init_federation(folder / "new", LABS, server="hub.example.org"),
    "add-site": lambda folder: add_site(folder, "lab-9"),
    "renew": lambda folder: renew(folder, "lab-1"),
    "revoke": lambda folder: revoke(folder, "lab-1"),
}


def who_joins(folder):
    """The sites whose kits the coordinator admits; kits that are not whole join nothing."""
    kits = [p.name for p in (folder / "kits").iterdir() if (p / "startup" / "client.crt").exists()]
    return {name for name in kits if name in hub(folder).sites and joins(folder, name)}


@pytest.mark.parametrize("kill", [False, True], ids=["full", "killed"])
@pytest.mark.parametrize(
    "name",
    ["revoke", *(pytest.param(x, marks=pytest.mark.slow) for x in ("init", "add-site", "renew"))],
)
def test_a_change_that_fails_at_any_write_leaves_the_old_members_or_the_new(
    name, kill, folder, tmp_path
):
    """Nobody is admitted in error, keys stay private, and the change can be made again."""
    old = hub(folder)
    changed = {"init": set(), "add-site": {"lab-9"}}.get(name, {"lab-1"})
    # A new federation has no old state to lose: a third of its steps.
    for step in range(0, 200, 3 if name == "init" else 1):
        one = shutil.copytree(folder, tmp_path / str(step))
        fault = fault_at(step, one, kill=kill)
        code = run_child(lambda p=one: unwritten(lambda: CHANGES[name](p)), fault)
        assert code in (DONE, SURVIVED, KILLED if kill else REFUSED), step
        # The settings are whole: as before, or with the change.
        listed = hub(one)
        assert set(listed.sites) - changed == set(old.sites) - changed
        assert listed.certificates.items() - old.certificates.items() <= {
            (x, certificate_of(one, x)) for x in changed
        }
        assert {LABS[1]} <= who_joins(one) <= {*LABS, "lab-9"}
        for made in (one, one / "new"):
            if list(made.rglob("*.key")):
                assert stat.S_IMODE(made.stat().st_mode) == 0o700
            # A kit that is not whole is refused as one.
            for kit in made.glob("kits/lab-*"):
                with suppress(InputError):
                    check_hardened(kit)
        if code == DONE:
            break
        if name == "init":
            shutil.rmtree(one / "new", ignore_errors=True)
        if listed.certificates == old.certificates:
            CHANGES[name](one)
        assert ("lab-1" in who_joins(one)) == (name != "revoke")
        assert ("lab-9" in who_joins(one)) == (name == "add-site")
    assert code == DONE
    assert step > 1


def test_the_authority_keeps_its_own_key_alone_and_only_the_owner_can_read(folder, made):
    state = json.loads((folder / "authority" / "jigsaw" / "state" / "cert.json").read_text())
    assert set(state) == {"root_cert", "root_pri_key"}
    root = made.project.parent
    for part in (root / "authority", *made.sites.values(), made.admin, made.coordinator):
        assert set(modes(part).values()) == {0}
    assert len(list(root.rglob("*.key"))) == len(LABS) + 2
    assert stat.S_IMODE(root.stat().st_mode) == 0o700


def test_another_folder_is_refused_in_one_line(tmp_path, refused):
    for command in ("add-site", "renew", "revoke"):
        words = ["federate", command, tmp_path, "lab-1"]
        refused(words, "Name the folder that `jigsaw federate init` wrote")


# -- certificates that expire, and kits that were changed -----------------------------------------
@pytest.mark.parametrize(("file", "whose"), [("client.crt", "its"), ("rootCA.pem", "authority's")])
def test_a_certificate_is_warned_of_for_60_days_and_then_refused(file, whose, folder):
    kit = folder / "kits" / "lab-1"

    def replace_by(days):
        self_signed(folder, "lab-1", days)[0].replace(kit / "startup" / file)

    for days, said in ((60.1, []), (59.1, [f"{whose} certificate expires in 59 days"])):
        replace_by(days)
        warnings = []
        check_certificates(kit, warnings.append)
        assert len(warnings) == len(said)
        assert all(text in line for text, line in zip(said, warnings, strict=True))
    replace_by(-2)
    with pytest.raises(InputError, match=f"{whose} certificate has expired"):
        check_certificates(kit, print)


def change(kit, name, **entries):
    path = kit / "local" / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))


def allow_code(kit):
    permissions = read_local(kit, "authorization.json")["permissions"]
    permissions["project_admin"]["byoc"] = "any"
    change(kit, "authorization.json", permissions=permissions)


def add_component(kit):
    parts = read_local(kit, "resources.json")["components"]
    change(kit, "resources.json", components=[*parts, {"id": "x", "path": "y", "args": {}}])


@pytest.mark.parametrize(
    ("who", "spoil"),
    [
        ("lab-1", allow_code),
        ("lab-1", lambda kit: (kit / "local" / "authorization.json").unlink()),
        ("lab-1", lambda kit: (kit / "local" / "resources.json").write_text("[")),
        ("lab-1", add_component),
        ("hub.example.org", lambda kit: change(kit, "resources.json", components=[])),
        ("hub.example.org", allow_code),
    ],
)
def test_a_kit_that_is_not_hardened_is_not_started(who, spoil, folder, refused):
    spoil(folder / "kits" / who)
    refused(["federate", "start", folder / "kits" / who], "the kit is not hardened")


def test_a_participant_that_fails_is_reported(folder, monkeypatch):
    kit = folder / "kits" / "lab-1"
    failing = ["/bin/sh", "-c", "exit 7"]
    monkeypatch.setattr("jigsaw_crl.federated.running.start_command", lambda _: failing)
    assert run_participant(kit, print) == 7
    assert cli.run(["federate", "start", str(kit)]) == 2
