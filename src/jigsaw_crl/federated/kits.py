"""Certificates and hardened kits of a federation, whose sites join and leave.

With NVFlare's defaults whoever leads a federation can send code to the sites, read their files with
shell commands and receive their logs. The kits written here allow none of this. The files that
forbid it are in each site's own kit, so only the site can change them.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import io
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable, writable, write_text
from jigsaw_crl.federated.settings import COORDINATOR_FILE, SITE_FILE, check_name

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

CONTROLLER = "jigsaw_crl.federated.components.GatherFragments"
EXECUTOR = "jigsaw_crl.federated.components.SendFragment"
GUARD = "jigsaw_crl.federated.components.Guard"
PROJECT, ORGANISATION = "jigsaw", "jigsaw"
ROLE = "project_admin"
# Days that the authority's certificate is valid; those of participants are for 360 days.
AUTHORITY_DAYS = 1800
# From this many days before a certificate expires, users are warned.
WARNING_DAYS = 60
# Seconds that a site has to accept a job; a later one is left out of the round. NVFlare's default
# of 10 is too short for a site whose machine is busy.
ACCEPTANCE = 60.0
# Fewer rows say more about each of them than about their regime.
MIN_ROWS = 30

PERMISSIONS: dict[str, Any] = {
    "format_version": "1.0",
    "permissions": {
        ROLE: {
            **dict.fromkeys(("submit_job", "manage_job", "view"), "any"),
            **dict.fromkeys(("clone_job", "download_job", "operate", "shell_commands"), "none"),
            **dict.fromkeys(("byoc", "server-predeployed-flwr"), "none"),
        },
        **dict.fromkeys(("org_admin", "lead", "member"), "none"),
    },
}
"""Who starts rounds may submit, watch and stop a job: no code, no shell, no remote restart."""


@dataclass(frozen=True)
class Federation:
    """The files of a new federation: NVFlare's project, and the kits of its participants."""

    project: Path
    coordinator: Path
    admin: Path
    sites: dict[str, Path]


@dataclass(frozen=True)
class Member:
    """A participant of a federation, or its authority.

    `kind` is "authority", "coordinator", "admin" or "site"; `days` are those until the certificate
    expires, None if the kit is not in the federation's folder; `state` says of a site whether it is
    "listed", "not listed" or "revoked".
    """

    name: str
    kind: str
    days: int | None
    state: str = ""


def require_nvflare() -> None:
    """Raise an `InputError` that says what to install, unless NVFlare is installed."""
    if importlib.util.find_spec("nvflare") is None:
        raise InputError("NVFlare is not installed", "Run pip install '.[federated]' in a clone.")


def write_json(path: Path, document: dict[str, Any], *, private: bool = False) -> None:
    """Write a file of NVFlare's or our configuration as a whole, and its folder if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(document, indent=1), private=private)


def _read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


# -- a new federation -----------------------------------------------------------------------------


def init_federation(
    folder: Path,
    sites: Sequence[str],
    *,
    server: str = "localhost",
    port: int = 8002,
    admin: str = "coordinator@jigsaw.local",
) -> Federation:
    """Write the provisioning project, the certificates and the hardened kits.
    The new folder holds private keys: the authority's in `authority`, the participants' in their
    kits. Sites are named after their clients, and the admin, who starts rounds, by an e-mail
    address.
    """
    require_nvflare()
    for site in sites:
        check_name(site, "site")
    if not sites or len(set(sites)) != len(sites) or server in sites:
        raise InputError(
            "the sites' names are not distinct", "Name each site once, and none like the server."
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("the folder is not empty", "Name a new folder.", path=folder)
    builders = "nvflare.lighter.impl"
    project = {
        "api_version": 3,
        "name": PROJECT,
        "description": "a coordinator assembles the fragments of sites",
        "participants": [
            {"name": server, "type": "server", "org": ORGANISATION, "fed_learn_port": port},
            *map(_site_entry, sites),
            {"name": admin, "type": "admin", "org": ORGANISATION, "role": ROLE},
        ],
        "builders": [
            {
                "path": f"{builders}.workspace.WorkspaceBuilder",
                "args": {"template_file": ["master_template.yml"]},
            },
            {
                "path": f"{builders}.static_file.StaticFileBuilder",
                "args": {"config_folder": "config", "scheme": "grpc"},
            },
            {"path": f"{builders}.cert.CertBuilder", "args": {"root_valid_days": AUTHORITY_DAYS}},
            {"path": f"{builders}.signature.SignatureBuilder"},
        ],
    }
    kits = folder / "kits"
    with writable(folder, "the kits"):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        write_json(folder / "project.yml", project)  # JSON is also YAML, which NVFlare reads
        shutil.move(_provision(project, folder / "authority"), kits)
    for site in sites:
        _harden_site(kits / site)
    _harden_coordinator(kits / server, sites)
    for name in (server, admin, *sites):
        _restrict(kits / name)
    own = {site: kits / site for site in sites}
    return Federation(folder / "project.yml", kits / server, kits / admin, own)


def _site_entry(site: str) -> dict[str, Any]:
    """A site's entry in NVFlare's provisioning project."""
    return {"name": site, "type": "client", "org": ORGANISATION, "allow_log_streaming": False}


def _provision(project: dict[str, Any], authority: Path) -> Path:
    """Run NVFlare's provisioning, and return the folder with the new kits.

    The authority's key is made if there is none yet. Of the participants' keys the authority keeps
    none: they are in the kits alone.
    """
    # NVFlare is an optional dependency, and takes a second to load.
    from nvflare.lighter.constants import CtxKey
    from nvflare.lighter.provision import prepare_builders, prepare_project
    from nvflare.lighter.provisioner import Provisioner

    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            plan = copy.deepcopy(project)  # NVFlare changes it
            provisioner = Provisioner(str(authority), prepare_builders(plan))
            context = provisioner.provision(prepare_project(plan))
    except (RuntimeError, ValueError) as error:
        raise InputError(f"NVFlare refuses the project: {error}", "Change the names.") from None
    made = context.get(CtxKey.CURRENT_PROD_DIR)
    if context.get(CtxKey.BUILD_ERROR) or not made:
        raise InputError(
            f"NVFlare could not make the kits: {' '.join(said.getvalue().split())[-300:]}",
            "Change the names.",
        )
    state = authority / PROJECT / "state" / "cert.json"
    write_json(state, {name: _read(state)[name] for name in ("root_cert", "root_pri_key")})
    _restrict(authority)
    return Path(made)


def _restrict(folder: Path) -> None:
    """Let only the owner read a folder that holds private keys."""
    for path in (folder, *folder.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(0o700 if path.is_dir() or mode & 0o100 else 0o600)


# -- what a kit allows ----------------------------------------------------------------------------


def _harden(kit: Path, allowed: str) -> dict[str, Any]:
    """Write the kit's permissions; returns its resources with one class that jobs may use."""
    write_json(kit / "local" / "authorization.json", PERMISSIONS)
    resources = _read(kit / "local" / "resources.json.default")
    return resources | {"class_list_enforcement_mode": "enforce", "class_allow_list": [allowed]}


def _harden_site(kit: Path) -> None:
    """Write the permissions and settings of a site's new kit."""
    resources = _harden(kit, EXECUTOR)
    resources["allow_log_streaming"] = False
    # These components send the site's error log to the server.
    resources["components"] = [
        part for part in resources["components"] if "Log" not in part["path"].rpartition(".")[2]
    ]
    write_json(kit / "local" / "resources.json", resources)
    write_json(kit / "local" / SITE_FILE, {"fragment": "fragment.json", "min_rows": MIN_ROWS})


def _harden_coordinator(kit: Path, sites: Sequence[str]) -> None:
    """Write the permissions and settings of the coordinator's new kit."""
    _give_time(kit)
    resources = _harden(kit, CONTROLLER)
    parts = {part["id"]: part for part in resources["components"]}
    del parts["log_receiver"]
    parts["job_scheduler"]["args"]["max_jobs"] = 1  # one round at a time
    resources["components"] = [*parts.values(), {"id": "jigsaw_guard", "path": GUARD, "args": {}}]
    write_json(kit / "local" / "resources.json", resources)
    set_storage_paths(kit)
    # Of the sites and of the person who starts rounds.
    certificates = sorted(kit.parent.glob("*/startup/client.crt"))
    pinned = {path.parts[-3]: certificate_digest(path.read_bytes()) for path in certificates}
    document = {"sites": list(sites), "certificates": pinned, "results": "results"}
    write_json(kit / "local" / COORDINATOR_FILE, document, private=True)


def _give_time(kit: Path) -> None:
    """Give sites more time to accept a job than NVFlare does."""
    config = kit / "startup" / "fed_server.json"
    server = _read(config)
    server["servers"][0]["admin_timeout"] = ACCEPTANCE
    write_json(config, server)


def certificate_digest(pem: bytes) -> str:
    """SHA-256 of the first certificate of a text in PEM, in hexadecimal."""
    from cryptography.hazmat.primitives.hashes import SHA256  # an optional dependency

    return certificate(pem).fingerprint(SHA256()).hex()


def certificate(pem: bytes) -> Certificate:
    """The first certificate of a text in PEM."""
    from cryptography.x509 import load_pem_x509_certificate  # an optional dependency

    return load_pem_x509_certificate(pem)


def check_hardened(kit: Path) -> None:
    """Refuse a kit whose `local` folder allows more than a new kit does."""
    server = (kit / "startup" / "fed_server.json").is_file()
    try:
        rights = _rights(_read(kit / "local" / "authorization.json"))
        resources = _read(kit / "local" / "resources.json")
        parts = {part["path"] for part in resources["components"]}
        allowed = {CONTROLLER if server else EXECUTOR} >= set(resources["class_allow_list"])
        checks = {
            "local/authorization.json allows more": rights <= _rights(PERMISSIONS),
            "local/resources.json lets a job use other classes": allowed
            and resources["class_list_enforcement_mode"] == "enforce",
            "local/resources.json sends logs to the coordinator": server
            or resources["allow_log_streaming"] is False,
            "local/resources.json does not name the guard": GUARD in parts or not server,
        }
    except (AttributeError, OSError, ValueError, KeyError, TypeError):
        checks = {"local/authorization.json or local/resources.json cannot be read": False}
    for what, ok in checks.items():
        if not ok:
            raise InputError(
                f"the kit is not hardened: {what}",
                "Restore its local folder as `jigsaw federate init` wrote it.",
                path=kit,
            )


def _rights(document: dict[str, Any]) -> set[tuple[str, str, str]]:
    """What roles are allowed: role, right, and where."""
    roles = {role: x for role, x in document["permissions"].items() if x != "none"}
    given = {(role, *right) for role, rights in roles.items() for right in rights.items()}
    return {right for right in given if right[-1] != "none"}


def set_storage_paths(kit: Path) -> None:
    """Make the coordinator keep its jobs in its kit, even after the kit was moved.

    NVFlare needs absolute paths. Its default is /tmp, which a restart of the machine may empty.
    """
    path = kit / "local" / "resources.json"
    resources = _read(path)
    root = kit.resolve() / "storage"
    for part in resources["components"]:
        if part["id"] == "job_manager":
            part["args"]["uri_root"] = str(root / "jobs")
    resources["snapshot_persistor"]["args"]["storage"]["args"]["root_dir"] = str(root / "snapshots")
    if resources != _read(path):
        write_json(path, resources)


# -- sites join and leave, certificates are renewed -----------------------------------------------


def days_left(pem: bytes) -> int:
    """Whole days until a certificate in PEM expires; negative if it has expired."""
    return (certificate(pem).not_valid_after_utc - datetime.now(UTC)).days


def members(folder: Path) -> list[Member]:
    """The authority and every participant of a federation."""
    project, _, listed = _opened(folder)
    authority = _of_federation(folder, folder / "authority" / PROJECT / "state" / "cert.json")
    found = [Member("authority", "authority", days_left(authority["root_cert"].encode()))]
    kinds = {"server": "coordinator", "admin": "admin", "client": "site"}
    for one in project["participants"]:
        name, kind = one["name"], kinds[one["type"]]
        base = "server.crt" if kind == "coordinator" else "client.crt"
        path = folder / "kits" / name / "startup" / base
        days = days_left(path.read_bytes()) if path.is_file() else None
        state = "listed" if name in listed["sites"] else "not listed"
        state = state if _is_admitted(listed, name) else "revoked"
        found.append(Member(name, kind, days, state if kind == "site" else ""))
    return found


def add_site(folder: Path, site: str) -> Path:
    """Make the kit of a new site, and add it to the coordinator's list; returns the kit."""
    require_nvflare()
    check_name(site, "site")
    project, file, listed = _opened(folder)
    if site in {one["name"] for one in project["participants"]}:
        raise InputError(
            f"the federation has a participant {site!r} already",
            "Choose another name, or renew its certificate.",
            path=folder,
        )
    new = _site_entry(site)
    # An attempt that failed may have left a kit; the project, written last, does not name it.
    shutil.rmtree(folder / "kits" / site, ignore_errors=True)
    kit = _put_kit(folder, project, new)
    sites = [*(one for one in listed["sites"] if one != site), site]
    _save(file, {**listed, "sites": sites}, pinned=kit)
    project["participants"].append(new)
    with writable(folder / "project.yml"):
        write_json(folder / "project.yml", project)
    return kit


def renew(folder: Path, name: str) -> Path:
    """Give a participant a new key and certificate; returns its `startup` folder.

    The kit's `local` folder stays as it is. The old certificate is not admitted any more.
    """
    require_nvflare()
    project, file, listed = _opened(folder)
    own = next((one for one in project["participants"] if one["name"] == name), None)
    kit = folder / "kits" / name
    if own is None:
        known = ", ".join(one["name"] for one in project["participants"])
        raise InputError(
            f"the federation has no participant {name!r}", f"It has {known}.", path=folder
        )
    if own["type"] == "client" and not _is_admitted(listed, name):
        raise InputError(f"the site {name!r} was revoked", "Add it under a new name.", path=folder)
    _put_kit(folder, project, own)
    if own["type"] != "server":
        _save(file, listed, pinned=kit)
    return kit / "startup"


def revoke(folder: Path, site: str) -> None:
    """Take a site off the coordinator's list for good: it cannot connect and is never asked."""
    _, file, listed = _opened(folder)
    sites = [one for one in listed["sites"] if one != site]
    if len(sites) == len(listed["sites"]):
        raise InputError(
            f"the coordinator does not list a site {site!r}, or it was revoked",
            f"It lists {', '.join(sites)}.",
            path=folder,
        )
    if not sites:
        raise InputError("it is the last site", "Add another one first.", path=folder)
    known = listed.get("certificates", {})
    admitted = {name: x for name, x in known.items() if name != site}
    _save(file, {**listed, "sites": sites, "certificates": admitted})


def _is_admitted(listed: dict[str, Any], name: str) -> bool:
    """Does the coordinator list a certificate of this participant?"""
    return name in listed.get("certificates", ())


def _put_kit(folder: Path, project: dict[str, Any], own: dict[str, Any]) -> Path:
    """Make the kit of a participant, or if there is one, its `startup` folder anew.

    The other kits that NVFlare makes are thrown away.
    """
    kit = folder / "kits" / str(own["name"])
    base = [one for one in project["participants"] if one["type"] in ("server", "admin")]
    plan = {**project, "participants": base if own in base else [*base, own]}
    with writable(folder, "the kits"):
        made = _provision(plan, folder / "authority")
        try:
            new = made / own["name"]
            if own["type"] == "server":
                _give_time(new)
            if kit.is_dir():
                shutil.rmtree(kit / "startup", ignore_errors=True)
                shutil.move(new / "startup", kit / "startup")
            else:
                shutil.move(new, kit)
                if own["type"] == "client":
                    _harden_site(kit)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    _restrict(kit)
    return kit


def _opened(folder: Path) -> tuple[dict[str, Any], Path, dict[str, Any]]:
    """NVFlare's project of a federation, and the file and content of the coordinator's settings."""
    project = _of_federation(folder, folder / "project.yml")
    server = next(one["name"] for one in project["participants"] if one["type"] == "server")
    file = folder / "kits" / server / "local" / COORDINATOR_FILE
    return project, file, _of_federation(folder, file)


def _of_federation(folder: Path, path: Path) -> dict[str, Any]:
    try:
        with readable(path):
            return _read(path)
    except ValueError as error:  # also an InputError
        raise InputError(
            f"{path.relative_to(folder)} cannot be read",
            "Name the folder that `jigsaw federate init` wrote, with the coordinator's kit in it.",
            path=folder,
        ) from error


def _save(path: Path, listed: dict[str, Any], *, pinned: Path | None = None) -> None:
    """Write the coordinator's settings, with the certificate of a new kit."""
    if pinned is not None:
        digest = certificate_digest((pinned / "startup" / "client.crt").read_bytes())
        known = listed.get("certificates", {})
        listed = {**listed, "certificates": {**known, pinned.name: digest}}
    with writable(path):
        write_json(path, listed, private=True)
