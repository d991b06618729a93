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

__all__ = ["PERMISSIONS", "Federation", "init_federation", "require_nvflare", "set_storage_paths"]

PROJECT, ORGANISATION = "jigsaw", "jigsaw"
ROLE = "project_admin"
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
        raise InputError("NVFlare is not installed", "Run pip install 'jigsaw-crl[federated]'.")


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
        kits = _provision(project, folder)
    federation = Federation(
        file, kits / server, kits / admin, {site: kits / site for site in sites}
    )
    for kit in federation.sites.values():
        _harden_site(kit)
    _harden_coordinator(federation.coordinator, sites)
    return federation


def _project(sites: Sequence[str], server: str, port: int, admin: str) -> dict[str, Any]:
    participants: list[dict[str, Any]] = [
        {"name": server, "type": "server", "org": ORGANISATION, "fed_learn_port": port},
        *(
            {"name": s, "type": "client", "org": ORGANISATION, "allow_log_streaming": False}
            for s in sites
        ),
        {"name": admin, "type": "admin", "org": ORGANISATION, "role": ROLE},
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
            {"path": f"{builders}.cert.CertBuilder"},
            {"path": f"{builders}.signature.SignatureBuilder"},
        ],
    }


def _provision(project: dict[str, Any], folder: Path) -> Path:
    """Run NVFlare's provisioning: the kits go to `kits`, the authority's key to `authority`."""
    # NVFlare is an optional dependency, and takes a second to load.
    from nvflare.lighter.constants import CtxKey
    from nvflare.lighter.provision import prepare_builders, prepare_project
    from nvflare.lighter.provisioner import Provisioner

    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            plan = copy.deepcopy(project)  # NVFlare changes it
            provisioner = Provisioner(str(folder / "authority"), prepare_builders(plan))
            context = provisioner.provision(prepare_project(plan))
    except (RuntimeError, ValueError) as error:
        raise InputError(f"NVFlare refuses the project: {error}", "Change the names.") from None
    made = context.get(CtxKey.CURRENT_PROD_DIR)
    if context.get(CtxKey.BUILD_ERROR) or not made:
        raise InputError(
            f"NVFlare could not make the kits: {' '.join(said.getvalue().split())[-300:]}",
            "Change the names.",
        )
    kits = folder / "kits"
    shutil.move(made, kits)
    for key in kits.rglob("*.key"):
        key.chmod(0o600)
    return kits


def _harden_site(kit: Path) -> None:
    resources = _harden(kit, EXECUTOR)
    resources["allow_log_streaming"] = False
    # These components send the site's error log to the server.
    resources["components"] = [
        part for part in resources["components"] if "Log" not in part["path"].rpartition(".")[2]
    ]
    write_json(kit / "local" / "resources.json", resources)
    write_json(kit / "local" / SITE_FILE, {"fragment": "fragment.json", "min_rows": MIN_ROWS})


def _harden_coordinator(kit: Path, sites: Sequence[str]) -> None:
    config = kit / "startup" / "fed_server.json"
    server = _read(config)
    server["servers"][0]["admin_timeout"] = ACCEPTANCE
    write_json(config, server)
    resources = _harden(kit, CONTROLLER)
    parts = {part["id"]: part for part in resources["components"]}
    del parts["log_receiver"]
    parts["job_scheduler"]["args"]["max_jobs"] = 1  # one round at a time
    resources["components"] = [*parts.values(), {"id": "jigsaw_guard", "path": GUARD, "args": {}}]
    write_json(kit / "local" / "resources.json", resources)
    set_storage_paths(kit)
    write_json(kit / "local" / COORDINATOR_FILE, {"sites": list(sites), "results": "results"})


def _harden(kit: Path, allowed: str) -> dict[str, Any]:
    """Write the kit's permissions; returns its resources with one class that jobs may use."""
    write_json(kit / "local" / "authorization.json", PERMISSIONS)
    resources = _read(kit / "local" / "resources.json.default")
    return resources | {"class_list_enforcement_mode": "enforce", "class_allow_list": [allowed]}


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
