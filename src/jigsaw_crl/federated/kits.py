"""Provisioning: certificates for a coordinator and its sites, in kits that trust little.

NVFlare's own defaults let whoever leads a federation ship code to the sites, read their files with
shell commands and receive their logs. The kits written here allow none of it, and because the files
that say so are in each site's own kit, no one but the site can change them.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.job import CONTROLLER, EXECUTOR
from jigsaw_crl.federated.settings import COORDINATOR_FILE, SITE_FILE, check_name

__all__ = ["PERMISSIONS", "Federation", "init_federation", "need_nvflare", "settle_storage"]

PROJECT, ORGANISATION = "jigsaw", "jigsaw"
ROLE = "project_admin"
# Seconds that a site has to accept a job; one that is later is left out of the round. NVFlare's 10
# are too few for a site's machine that is busy with something else.
ACCEPTANCE = 60.0

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
"""Submit the job, watch it, stop it: no submitted code, no shell, no restarting from afar."""


@dataclass(frozen=True)
class Federation:
    """Where the parts of a new federation are.

    Parameters
    ----------
    project : Path
        The provisioning project, as NVFlare reads it.
    coordinator, admin : Path
        Kits of the server and of the person who starts rounds.
    sites : dict of str to Path
        Kits of the sites.
    """

    project: Path
    coordinator: Path
    admin: Path
    sites: dict[str, Path]


def need_nvflare() -> None:
    """Say what to install, where NVFlare is not."""
    from importlib.util import find_spec

    if find_spec("nvflare") is None:
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
        New folder. It will hold private keys: the authority's in `authority`, the participants' in
        their kits.
    sites : sequence of str
        Names of the sites, which are their clients' names.
    server : str
        Host name under which sites reach the coordinator.
    port : int
    admin : str
        Who starts rounds, as an address.
    """
    need_nvflare()
    for site in sites:
        check_name(site, "site")
    if not sites or len(set(sites)) != len(sites) or server in sites:
        raise InputError(
            "the sites are not distinct names", "Name each site once, and none like the server."
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("there is something already", "Name a new folder.", path=folder)
    project = _project(sites, server, port, admin)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        file = folder / "project.yml"
        # JSON is YAML: NVFlare reads it, and so does everyone.
        file.write_text(json.dumps(project, indent=1), encoding="utf-8")
        kits = _provisioned(project, folder)
    except OSError as error:
        raise InputError(
            f"the kits cannot be written ({error.strerror})", "Choose another place.", path=folder
        ) from None
    federation = Federation(
        file, kits / server, kits / admin, {site: kits / site for site in sites}
    )
    for kit in federation.sites.values():
        _harden_site(kit)
    _harden_coordinator(federation.coordinator, sites)
    return federation


def _project(sites: Sequence[str], server: str, port: int, admin: str) -> dict[str, Any]:
    people: list[dict[str, Any]] = [
        {"name": server, "type": "server", "org": ORGANISATION, "fed_learn_port": port},
        *(
            {"name": s, "type": "client", "org": ORGANISATION, "allow_log_streaming": False}
            for s in sites
        ),
        {"name": admin, "type": "admin", "org": ORGANISATION, "role": ROLE},
    ]
    building = "nvflare.lighter.impl"
    return {
        "api_version": 3,
        "name": PROJECT,
        "description": "fragments of sites, assembled by a coordinator",
        "participants": people,
        "builders": [
            {
                "path": f"{building}.workspace.WorkspaceBuilder",
                "args": {"template_file": ["master_template.yml"]},
            },
            {
                "path": f"{building}.static_file.StaticFileBuilder",
                "args": {"config_folder": "config", "scheme": "grpc"},
            },
            {"path": f"{building}.cert.CertBuilder"},
            {"path": f"{building}.signature.SignatureBuilder"},
        ],
    }


def _provisioned(project: dict[str, Any], folder: Path) -> Path:
    """Run NVFlare's provisioning; the kits end up in `kits`, the authority in `authority`."""
    from nvflare.lighter.constants import CtxKey
    from nvflare.lighter.provision import prepare_builders, prepare_project
    from nvflare.lighter.provisioner import Provisioner

    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            plan = json.loads(json.dumps(project))  # it is changed on the way
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
    local = kit / "local"
    resources = json.loads((local / "resources.json.default").read_text(encoding="utf-8"))
    resources["class_list_enforcement_mode"] = "enforce"
    resources["class_allow_list"] = [EXECUTOR]
    resources["allow_log_streaming"] = False
    # It would hand the site's error log to the server.
    resources["components"] = [
        part for part in resources["components"] if "Log" not in part["path"].rpartition(".")[2]
    ]
    _write(local / "resources.json", resources)
    _write(local / "authorization.json", PERMISSIONS)
    _write(local / SITE_FILE, {"fragment": "fragment.json"})


def _harden_coordinator(kit: Path, sites: Sequence[str]) -> None:
    local = kit / "local"
    config = kit / "startup" / "fed_server.json"
    server = json.loads(config.read_text(encoding="utf-8"))
    server["servers"][0]["admin_timeout"] = ACCEPTANCE
    _write(config, server)
    resources = json.loads((local / "resources.json.default").read_text(encoding="utf-8"))
    resources["class_list_enforcement_mode"] = "enforce"
    resources["class_allow_list"] = [CONTROLLER]
    parts = {part["id"]: part for part in resources["components"]}
    del parts["log_receiver"]
    parts["job_scheduler"]["args"]["max_jobs"] = 1  # one round at a time
    resources["components"] = list(parts.values())
    _write(local / "resources.json", resources)
    settle_storage(kit)
    _write(local / "authorization.json", PERMISSIONS)
    _write(local / COORDINATOR_FILE, {"sites": list(sites), "results": "results"})


def settle_storage(kit: Path) -> None:
    """Let the coordinator keep its jobs in its kit, wherever that is now.

    NVFlare wants absolute paths, and would use /tmp, which a restart of the machine may empty.
    """
    path = kit / "local" / "resources.json"
    before = path.read_text(encoding="utf-8")
    resources = json.loads(before)
    root = kit.resolve() / "storage"
    for part in resources["components"]:
        if part["id"] == "job_manager":
            part["args"]["uri_root"] = str(root / "jobs")
    resources["snapshot_persistor"]["args"]["storage"]["args"]["root_dir"] = str(root / "snapshots")
    if resources != json.loads(before):
        _write(path, resources)


def _write(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")
