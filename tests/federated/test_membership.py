"""The kits of a federation: what they allow, who joins and leaves, and certificates that expire."""

from __future__ import annotations

import errno
import json
import shutil
import stat
from types import SimpleNamespace

import pytest
from cryptography import x509

from jigsaw_crl.base import files
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.cli import app as cli
from jigsaw_crl.federated.kits import (
    CONTROLLER,
    EXECUTOR,
    add_site,
    check_hardened,
    init_federation,
    members,
    renew,
    revoke,
)
from jigsaw_crl.federated.running import check_certificates, run_participant
from jigsaw_crl.federated.settings import coordinator_settings

from .conftest import LABS, read_local
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


def is_issued_by_the_authority(folder, kit):
    root = certificate(folder / "kits" / "lab-1" / "startup" / "rootCA.pem")
    certificate(kit / "startup" / "client.crt").verify_directly_issued_by(root)
    return (kit / "startup" / "rootCA.pem").read_bytes() == (
        folder / "kits" / "lab-1" / "startup" / "rootCA.pem"
    ).read_bytes()


def modes(folder):
    return {p: stat.S_IMODE(p.stat().st_mode) & 0o077 for p in folder.rglob("*")}


# -- what kits allow ------------------------------------------------------------------------------


def test_kits_accept_our_class_and_no_code_no_shell_no_log_streaming(made):
    for kit, allowed in ((made.sites["lab-1"], EXECUTOR), (made.coordinator, CONTROLLER)):
        resources = read_local(kit, "resources.json")
        assert resources["class_allow_list"] == [allowed]
        assert resources["class_list_enforcement_mode"] == "enforce"
        assert not [c for c in resources["components"] if "log" in c["path"].lower()]
        roles = read_local(kit, "authorization.json")["permissions"]
        for right in ("byoc", "shell_commands", "operate"):
            assert roles["project_admin"][right] == "none"
        assert {roles[r] for r in ("org_admin", "lead", "member")} == {"none"}
    assert read_local(made.sites["lab-1"], "resources.json")["allow_log_streaming"] is False
    # Jobs stay in the coordinator's kit.
    assert "/tmp/nvflare" not in json.dumps(resources)
    assert hub(made.project.parent).sites == LABS


def test_the_path_of_the_fragment_is_not_where_nvflare_would_announce_it(made):
    """Further entries of resources.json are sent to the server when a site registers."""
    kit = made.sites["lab-1"]
    assert "fragment" not in (kit / "local" / "resources.json").read_text().replace(EXECUTOR, "")
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
    assert {one.name for one in members(folder)} >= {*LABS, "lab-9"}


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
    root = certificate(folder / "kits" / "lab-2" / "startup" / "rootCA.pem")
    certificate(kit / "startup" / f"{base}.crt").verify_directly_issued_by(root)


def test_a_kit_that_was_handed_over_and_deleted_is_made_anew(folder):
    shutil.rmtree(folder / "kits" / "lab-1")
    renew(folder, "lab-1")
    check_hardened(folder / "kits" / "lab-1")


def test_a_revoked_site_is_neither_listed_nor_admitted_and_cannot_come_back(folder):
    from nvflare.apis.fl_exception import NotAuthenticated

    revoke(folder, "lab-1")
    assert hub(folder).sites == ("lab-2",)
    with pytest.raises(NotAuthenticated, match="was revoked"):
        joins(folder, "lab-1")
    assert joins(folder, "lab-2") == "admitted"
    for action in (revoke, renew):
        with pytest.raises(InputError, match="was revoked"):
            action(folder, "lab-1")
    with pytest.raises(InputError, match="has a participant 'lab-1' already"):
        add_site(folder, "lab-1")
    with pytest.raises(InputError, match="last site"):
        revoke(folder, "lab-2")


def joins(folder, site, kit=None):
    """What a running coordinator says to a site that connects with the certificate of a kit."""
    from nvflare.fuel.f3.cellnet.defs import IdentityChallengeKey
    from nvflare.fuel.f3.message import Message
    from nvflare.private.defs import CellMessageHeaderKeys

    from jigsaw_crl.federated.components import watch

    manager = SimpleNamespace(authenticate=lambda *_: "admitted")
    watch(manager, folder / "kits" / "hub.example.org" / "local")
    shown = ((kit or folder / "kits" / site) / "startup" / "client.crt").read_bytes()
    head = {CellMessageHeaderKeys.CLIENT_NAME: site}
    return manager.authenticate(Message(head, {IdentityChallengeKey.CERT: shown}), None)


def test_a_stolen_kit_does_not_join_after_its_certificate_was_renewed(folder, tmp_path):
    from nvflare.apis.fl_exception import NotAuthenticated

    stolen = shutil.copytree(folder / "kits" / "lab-1", tmp_path / "stolen")
    assert joins(folder, "lab-1", stolen) == "admitted"
    renew(folder, "lab-1")
    assert joins(folder, "lab-1") == "admitted"
    with pytest.raises(NotAuthenticated, match="newest"):
        joins(folder, "lab-1", stolen)
    with pytest.raises(NotAuthenticated, match="newest"):
        joins(folder, "lab-2", folder / "kits" / "lab-1")


def test_a_running_coordinator_with_broken_settings_admits_nobody(folder):
    from nvflare.apis.fl_exception import NotAuthenticated

    file = folder / "kits" / "hub.example.org" / "local" / "jigsaw-coordinator.json"
    for broken in (file.read_text()[:40], "", "{}"):
        file.write_text(broken)
        with pytest.raises(NotAuthenticated, match="not admitted"):
            joins(folder, "lab-1")


@pytest.mark.parametrize(
    "change", [revoke, *(pytest.param(f, marks=pytest.mark.slow) for f in (renew, add_site))]
)
def test_a_full_disk_at_any_write_leaves_the_old_members_or_the_new(
    change, folder, tmp_path, monkeypatch
):
    """Nobody who was admitted before is admitted in error, and the change can be made again."""
    site = "lab-9" if change is add_site else "lab-1"
    for fault in range(1, 99):
        one = shutil.copytree(folder, tmp_path / str(fault))
        before, count = hub(one), 0

        def write(path, *_, _real=files.os.replace, _fault=fault, **__):
            nonlocal count
            count += 1
            if count >= _fault:
                raise OSError(errno.ENOSPC, "No space left on device")
            return _real(path, *_, **__)

        with monkeypatch.context() as patch:
            patch.setattr(files.os, "replace", write)
            try:
                change(one, site)
                break
            except InputError as error:
                said = str(error)
        assert "No space left" in said
        # The settings are whole: as before, or with the change.
        assert set(hub(one).sites) - {site} == set(before.sites) - {site}
        assert set(before.certificates) - {site} <= set(hub(one).certificates)
        if hub(one) == before:
            change(one, site)
    assert fault > 1


def test_the_authority_keeps_its_own_key_alone_and_only_the_owner_can_read(folder, made):
    state = json.loads((folder / "authority" / "jigsaw" / "state" / "cert.json").read_text())
    assert set(state) == {"root_cert", "root_pri_key"}
    root = made.project.parent
    for part in (root / "authority", *made.sites.values(), made.admin, made.coordinator):
        assert set(modes(part).values()) == {0}
    assert len(list(root.rglob("*.key"))) == len(LABS) + 2
    assert stat.S_IMODE(root.stat().st_mode) == 0o700


def test_status_lists_days_and_states(folder, capsys):
    revoke(folder, "lab-2")
    admin = folder / "kits" / "coordinator@jigsaw.local"
    (admin / "startup" / "fed_admin.json").unlink()
    assert cli.run(["federate", "status", str(folder)]) == 0
    said = capsys.readouterr()
    assert "lab-1\tsite\tlisted\t\t35" in said.out
    assert "lab-2\tsite\trevoked" in said.out
    assert "authority\tauthority" in said.out
    assert "connections are unknown" in said.err


def test_another_folder_is_refused_in_one_line(tmp_path, capsys):
    for words in (["status"], ["add-site"], ["renew"], ["revoke"]):
        name = [] if words == ["status"] else ["lab-1"]
        assert cli.run(["federate", *words, str(tmp_path), *name]) == 2
        err = capsys.readouterr().err
        assert "Name the folder that `jigsaw federate init` wrote" in err
        assert len(err.splitlines()) == 1


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


def drop_guard(kit):
    parts = read_local(kit, "resources.json")["components"]
    change(kit, "resources.json", components=[p for p in parts if "Guard" not in p["path"]])


@pytest.mark.parametrize(
    ("who", "spoil"),
    [
        ("lab-1", allow_code),
        ("lab-1", lambda kit: (kit / "local" / "authorization.json").unlink()),
        ("lab-1", lambda kit: (kit / "local" / "resources.json").write_text("[")),
        ("lab-1", lambda kit: change(kit, "resources.json", class_allow_list=["*"])),
        ("lab-1", lambda kit: change(kit, "resources.json", class_list_enforcement_mode="warn")),
        ("lab-1", lambda kit: change(kit, "resources.json", allow_log_streaming=True)),
        ("hub.example.org", drop_guard),
        ("hub.example.org", allow_code),
    ],
)
def test_a_kit_that_is_not_hardened_is_not_started(who, spoil, folder, capsys):
    kit = folder / "kits" / who
    spoil(kit)
    assert cli.run(["federate", "start", str(kit)]) == 2
    err = capsys.readouterr().err
    assert "the kit is not hardened" in err
    assert len(err.splitlines()) == 1


def test_a_site_may_be_stricter_than_its_kit(folder):
    kit = folder / "kits" / "lab-1"
    change(kit, "resources.json", class_allow_list=[])
    permissions = read_local(kit, "authorization.json")["permissions"]
    permissions["project_admin"] = dict.fromkeys(permissions["project_admin"], "none")
    change(kit, "authorization.json", permissions=permissions)
    check_hardened(kit)


def test_a_participant_that_fails_is_reported(folder, monkeypatch):
    kit = folder / "kits" / "lab-1"
    failing = ["/bin/sh", "-c", "exit 7"]
    monkeypatch.setattr("jigsaw_crl.federated.running.start_command", lambda _: failing)
    assert run_participant(kit, print) == 7
    assert cli.run(["federate", "start", str(kit)]) == 2
