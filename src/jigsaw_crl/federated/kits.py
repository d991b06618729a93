"""Certificates and hardened kits for a coordinator and its sites.

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
from pathlib import Path
from typing import Any

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import writable
from jigsaw_crl.federated.job import CONTROLLER, EXECUTOR, GUARD, write_json
from jigsaw_crl.federated.settings import COORDINATOR_FILE, SITE_FILE, check_name

__all__ = [
    "PERMISSIONS",
    "Federation",
    "certificate_digest",
    "check_hardened",
    "fingerprint",
    "harden_coordinator",
    "harden_server_config",
    "harden_site",
    "init_federation",
    "participant",
    "provision",
    "require_nvflare",
    "set_storage_paths",
]

PROJECT, ORGANISATION = "jigsaw", "jigsaw"
ROLE = "project_admin"
# Days that the authority's certificate is valid; those of participants are for 360 days.
AUTHORITY_DAYS = 1800
# Seconds that a site has to accept a job; a later one is left out of the round. NVFlare's default
# of 10 is too short for a site whose machine is busy.
ACCEPTANCE = 60.0

# Fewer rows say more about each of them than about their regime.
MIN_ROWS = 30

PERMISSIONS: dict[str, Any] = {
    "format_version": "1.0",
    "permissions": {
        ROLE: {
            "submit_job": "any",
            "clone_job": "none",
            "manage_job": "any",
            "download_job": "none",
            "view": "any",
            "operate": "none",
            "shell_commands": "none",
            "byoc": "none",
            "server-predeployed-flwr": "none",
        },
        "org_admin": "none",
        "lead": "none",
        "member": "none",
    },
}
"""Who starts rounds may submit, watch and stop a job: no code, no shell, no remote restart."""


@dataclass(frozen=True)
class Federation:
    """The files of a new federation.

    Parameters
    ----------
    project : Path
        NVFlare's provisioning project.
    coordinator, admin : Path
        Kits of the server and of the person who starts rounds.
    sites : dict of str to Path
        Kits of the sites, by name.
    """

    project: Path
    coordinator: Path
    admin: Path
    sites: dict[str, Path]


def require_nvflare() -> None:
    """Raise an `InputError` that says what to install, unless NVFlare is installed."""
    if importlib.util.find_spec("nvflare") is None:
        raise InputError("NVFlare is not installed", "Run pip install '.[federated]' in a clone.")


def init_federation(
    folder: Path,
    sites: Sequence[str],
    *,
    server: str = "localhost",
    port: int = 8002,
    admin: str = "coordinator@jigsaw.local",
) -> Federation:
    """Write the provisioning project, the certificates and the hardened kits.

    Parameters
    ----------
    folder : Path
        New folder. It holds private keys: the authority's in `authority`, the participants' in
        their kits.
    sites : sequence of str
        Names of the sites, which are their clients' names.
    server : str
        Host name under which sites reach the coordinator.
    port : int
    admin : str
        E-mail address of the person who starts rounds.
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
    project = _project(sites, server, port, admin)
    file = folder / "project.yml"
    with writable(folder, "the kits"):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        write_json(file, project)  # JSON is also YAML, which NVFlare reads
        kits = folder / "kits"
        shutil.move(provision(project, folder / "authority"), kits)
    federation = Federation(
        file, kits / server, kits / admin, {site: kits / site for site in sites}
    )
    for kit in federation.sites.values():
        harden_site(kit)
    harden_coordinator(federation.coordinator, sites)
    for kit in (federation.coordinator, federation.admin, *federation.sites.values()):
        restrict(kit)
    return federation


def participant(name: str, kind: str, **more: Any) -> dict[str, Any]:
    """A participant's entry in NVFlare's provisioning project."""
    return {"name": name, "type": kind, "org": ORGANISATION, **more}


def _project(sites: Sequence[str], server: str, port: int, admin: str) -> dict[str, Any]:
    participants: list[dict[str, Any]] = [
        participant(server, "server", fed_learn_port=port),
        *(participant(site, "client", allow_log_streaming=False) for site in sites),
        participant(admin, "admin", role=ROLE),
    ]
    builders = "nvflare.lighter.impl"
    return {
        "api_version": 3,
        "name": PROJECT,
        "description": "a coordinator assembles the fragments of sites",
        "participants": participants,
        "builders": [
            {
                "path": f"{builders}.workspace.WorkspaceBuilder",
                "args": {"template_file": ["master_template.yml"]},
            },
            {
                "path": f"{builders}.static_file.StaticFileBuilder",
                "args": {"config_folder": "config", "scheme": "grpc"},
            },
            {
                "path": f"{builders}.cert.CertBuilder",
                "args": {"root_valid_days": AUTHORITY_DAYS},
            },
            {"path": f"{builders}.signature.SignatureBuilder"},
        ],
    }


def provision(project: dict[str, Any], authority: Path) -> Path:
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
    restrict(authority)
    return Path(made)


def restrict(folder: Path) -> None:
    """Let only the owner read a folder that holds private keys."""
    for path in (folder, *folder.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(0o700 if path.is_dir() or mode & 0o100 else 0o600)


def harden_site(kit: Path) -> None:
    """Write the permissions and settings of a site's new kit."""
    resources = _harden(kit, EXECUTOR)
    resources["allow_log_streaming"] = False
    # These components send the site's error log to the server.
    resources["components"] = [
        part for part in resources["components"] if "Log" not in part["path"].rpartition(".")[2]
    ]
    write_json(kit / "local" / "resources.json", resources)
    write_json(kit / "local" / SITE_FILE, {"fragment": "fragment.json", "min_rows": MIN_ROWS})


def harden_server_config(kit: Path) -> None:
    """Give sites more time to accept a job than NVFlare does."""
    config = kit / "startup" / "fed_server.json"
    server = _read(config)
    server["servers"][0]["admin_timeout"] = ACCEPTANCE
    write_json(config, server)


def harden_coordinator(kit: Path, sites: Sequence[str]) -> None:
    """Write the permissions and settings of the coordinator's new kit."""
    harden_server_config(kit)
    resources = _harden(kit, CONTROLLER)
    parts = {part["id"]: part for part in resources["components"]}
    del parts["log_receiver"]
    parts["job_scheduler"]["args"]["max_jobs"] = 1  # one round at a time
    resources["components"] = [*parts.values(), {"id": "jigsaw_guard", "path": GUARD, "args": {}}]
    write_json(kit / "local" / "resources.json", resources)
    set_storage_paths(kit)
    # Of the sites and of the person who starts rounds.
    certificates = sorted(kit.parent.glob("*/startup/client.crt"))
    document = {
        "sites": list(sites),
        "certificates": {path.parts[-3]: fingerprint(path.parents[1]) for path in certificates},
        "results": "results",
    }
    write_json(kit / "local" / COORDINATOR_FILE, document, private=True)


def fingerprint(kit: Path) -> str:
    """SHA-256 of the certificate in the kit of a site or an admin, in hexadecimal."""
    return certificate_digest((kit / "startup" / "client.crt").read_bytes())


def certificate_digest(pem: bytes) -> str:
    """SHA-256 of the first certificate of a text in PEM, in hexadecimal."""
    from cryptography import x509  # an optional dependency
    from cryptography.hazmat.primitives.hashes import SHA256

    return x509.load_pem_x509_certificate(pem).fingerprint(SHA256()).hex()


def _harden(kit: Path, allowed: str) -> dict[str, Any]:
    """Write the kit's permissions; returns its resources with one class that jobs may use."""
    write_json(kit / "local" / "authorization.json", PERMISSIONS)
    resources = _read(kit / "local" / "resources.json.default")
    return resources | {"class_list_enforcement_mode": "enforce", "class_allow_list": [allowed]}


def check_hardened(kit: Path) -> None:
    """Refuse a kit whose `local` folder allows more than a new kit does."""
    server = (kit / "startup" / "fed_server.json").is_file()

    def refuse(what: str) -> InputError:
        return InputError(
            f"the kit is not hardened: {what}",
            "Restore its local folder as `jigsaw federate init` wrote it.",
            path=kit,
        )

    try:
        permissions = _read(kit / "local" / "authorization.json")["permissions"]
        resources = _read(kit / "local" / "resources.json")
        paths = {part["path"] for part in resources["components"]}
    except (OSError, ValueError, KeyError, TypeError):
        raise refuse("local/authorization.json or local/resources.json cannot be read") from None
    for role, allowed in PERMISSIONS["permissions"].items():
        given = permissions.get(role, "none")
        rights = allowed if isinstance(allowed, dict) else {}
        if (
            given != "none"
            and given != rights
            and not (
                isinstance(given, dict)
                and all(
                    value == "none" or rights.get(right) == value for right, value in given.items()
                )
            )
        ):
            raise refuse(f"local/authorization.json allows the role {role!r} more")
    if set(permissions) - set(PERMISSIONS["permissions"]):
        raise refuse("local/authorization.json has another role")
    wanted = {CONTROLLER if server else EXECUTOR}
    if (
        resources.get("class_list_enforcement_mode") != "enforce"
        or set(resources.get("class_allow_list", ["*"])) - wanted
    ):
        raise refuse("local/resources.json lets a job use other classes")
    if not server and resources.get("allow_log_streaming") is not False:
        raise refuse("local/resources.json sends logs to the coordinator")
    if server and GUARD not in paths:
        raise refuse("local/resources.json does not name the guard")


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


def _read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document
