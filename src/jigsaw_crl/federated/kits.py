"""Certificates and hardened kits of a federation, whose sites join and leave.

NVFlare makes both. With its defaults whoever leads a federation can send code to the sites, read
their files with shell commands and receive their logs. In the kits written here, NVFlare loads one
component of ours (`components`), which answers no such request, and nothing that runs a job. The
files that say so are in each site's own kit, so only the site can change them.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jigsaw_crl.base.errors import InputError, import_optional
from jigsaw_crl.base.files import writable, write_text
from jigsaw_crl.federated.settings import (
    COORDINATOR_FILE,
    SITE_FILE,
    CoordinatorSettings,
    check_name,
)

SITE = "jigsaw_crl.federated.components.Site"
GUARD = "jigsaw_crl.federated.components.Guard"
PROJECT, ORGANISATION = "jigsaw", "jigsaw"
ROLE = "project_admin"
# Days that the authority's certificate is valid; those of participants are for 360 days.
AUTHORITY_DAYS = 1800
# From this many days before a certificate expires, users are warned.
WARNING_DAYS = 60
# Fewer rows say more about each of them than about their regime.
MIN_ROWS = 30
# What NVFlare lets an admin do: to see who is connected. What is not listed is forbidden.
PERMISSIONS = {"format_version": "1.0", "permissions": {ROLE: {"view": "any"}}}


def require_nvflare() -> None:
    """Raise an `InputError` that says what to install, unless NVFlare is installed."""
    import_optional("nvflare", "NVFlare", "federated")


def _read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def _write(path: Path, document: object) -> None:
    """Write a file of NVFlare's configuration as a whole."""
    write_text(path, json.dumps(document, indent=1))


def startup_entry(kit: Path, file: str, part: str, name: str) -> str | None:
    """An entry of a file that NVFlare wrote into a kit; None if there is no such file or entry."""
    try:
        return str(_read(kit / "startup" / file)[part][name])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def certificate_digest(pem: bytes) -> str:
    """SHA-256 of the first certificate of a text in PEM, in hexadecimal."""
    # An optional dependency.
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.x509 import load_pem_x509_certificate

    return load_pem_x509_certificate(pem).fingerprint(SHA256()).hex()


# -- making kits ----------------------------------------------------------------------------------


def init_federation(
    folder: Path,
    sites: Sequence[str],
    *,
    server: str = "localhost",
    port: int = 8002,
    admin: str = "coordinator@jigsaw.local",
) -> Path:
    """Write the provisioning project, the certificates and the hardened kits; returns their folder.

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
    project = {
        "api_version": 3,
        "name": PROJECT,
        "description": "a coordinator assembles the fragments of sites",
        "participants": [
            {"name": server, "type": "server", "org": ORGANISATION, "fed_learn_port": port},
            *map(_site_entry, sites),
            {"name": admin, "type": "admin", "org": ORGANISATION, "role": ROLE},
        ],
    }
    kits = folder / "kits"
    with writable(folder, "the kits"):
        kits.mkdir(parents=True)
        folder.chmod(0o700)
        pinned = _put_kits(folder, project, [server, admin, *sites])
        listed = CoordinatorSettings(
            admin=admin, sites=tuple(sites), certificates=pinned, results=Path("results")
        )
        _save(kits / server / "local" / COORDINATOR_FILE, listed)
        _write(folder / "project.yml", project)  # JSON is also YAML, which NVFlare reads
    return kits


def _site_entry(site: str) -> dict[str, Any]:
    """A site's entry in NVFlare's provisioning project."""
    return {"name": site, "type": "client", "org": ORGANISATION}


def _put_kits(folder: Path, project: dict[str, Any], names: Sequence[str]) -> dict[str, str]:
    """Make the kits of some participants; of a kit that is there, its `startup` folder anew.

    Returns the digests of their certificates, but for the server. NVFlare makes kits of the server
    and the admin in any case; those that are not wanted are thrown away.
    """
    wanted = [
        one for one in project["participants"] if one["name"] in names or one["type"] != "client"
    ]
    pinned = {}
    made = _provision({**project, "participants": wanted}, folder / "authority")
    try:
        for name in names:
            kit = folder / "kits" / name
            if kit.is_dir():
                shutil.rmtree(kit / "startup", ignore_errors=True)
                shutil.move(made / name / "startup", kit / "startup")
            else:
                shutil.move(made / name, kit)
                _harden(kit)
            _restrict(kit)
            if (kit / "startup" / "client.crt").is_file():
                pem = (kit / "startup" / "client.crt").read_bytes()
                pinned[name] = certificate_digest(pem)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return pinned


def _provision(project: dict[str, Any], authority: Path) -> Path:
    """Run NVFlare's provisioning, and return the folder with the new kits.

    The authority's key is made if there is none yet. Of the participants' keys the authority keeps
    none: they are in the kits alone.
    """
    # NVFlare is an optional dependency, and takes a second to load.
    from nvflare.lighter.constants import CtxKey
    from nvflare.lighter.impl.cert import CertBuilder
    from nvflare.lighter.impl.signature import SignatureBuilder
    from nvflare.lighter.impl.static_file import StaticFileBuilder
    from nvflare.lighter.impl.workspace import WorkspaceBuilder
    from nvflare.lighter.provision import prepare_project
    from nvflare.lighter.provisioner import Provisioner

    builders = [
        WorkspaceBuilder(["master_template.yml"]),
        StaticFileBuilder("config", "grpc"),
        CertBuilder(AUTHORITY_DAYS),
        SignatureBuilder(),
    ]
    said, made = io.StringIO(), None
    try:
        with contextlib.redirect_stdout(said):
            plan = prepare_project(copy.deepcopy(project))  # NVFlare changes it
            context = Provisioner(str(authority), builders).provision(plan)
        made = None if context.get(CtxKey.BUILD_ERROR) else context.get(CtxKey.CURRENT_PROD_DIR)
    except (RuntimeError, ValueError) as error:
        said.write(str(error))
    if made is None:
        reason = " ".join(said.getvalue().split())[-300:]
        raise InputError(f"NVFlare could not make the kits: {reason}", "Change the names.")
    state = authority / PROJECT / "state" / "cert.json"
    _write(state, {name: _read(state)[name] for name in ("root_cert", "root_pri_key")})
    _restrict(authority)
    return Path(made)


def _restrict(folder: Path) -> None:
    """Let only the owner read a folder that holds private keys."""
    for path in (folder, *folder.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(0o700 if path.is_dir() or mode & 0o100 else 0o600)


# -- what a kit allows ----------------------------------------------------------------------------


def _own(kit: Path) -> dict[str, Any]:
    """Our entries of NVFlare's resources: what it loads of ours, and that it sends no log."""
    server = (kit / "startup" / "fed_server.json").is_file()
    component = {"id": "jigsaw", "path": GUARD if server else SITE, "args": {}}
    return {"allow_log_streaming": False, "components": [component]}


def _harden(kit: Path) -> None:
    """Write the permissions of a new kit, and a site's settings."""
    if startup_entry(kit, "fed_admin.json", "admin", "username"):
        return
    resources = _read(kit / "local" / "resources.json.default")
    resources.pop("snapshot_persistor", None)  # of jobs, in a folder that all users share
    _write(kit / "local" / "resources.json", resources | _own(kit))
    _write(kit / "local" / "authorization.json", PERMISSIONS)
    if not (kit / "startup" / "fed_server.json").is_file():
        _write(kit / "local" / SITE_FILE, {"fragment": "fragment.json", "min_rows": MIN_ROWS})


def check_hardened(kit: Path) -> None:
    """Refuse a kit whose `local` folder allows more than a new kit does."""
    try:
        resources, wrong = _read(kit / "local" / "resources.json"), ""
        if _read(kit / "local" / "authorization.json") != PERMISSIONS:
            wrong = "local/authorization.json is not as it was written"
        elif resources != resources | _own(kit):
            wrong = "local/resources.json names other components, or sends logs"
    except (OSError, ValueError, KeyError, TypeError):
        wrong = "local/authorization.json or local/resources.json cannot be read"
    if wrong:
        raise InputError(
            f"the kit is not hardened: {wrong}",
            "Restore its local folder as `jigsaw federate init` wrote it.",
            path=kit,
        )


# -- sites join and leave, certificates are renewed -----------------------------------------------


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
    project["participants"].append(_site_entry(site))
    # An attempt that failed may have left a kit; the project, written last, does not name it.
    shutil.rmtree(folder / "kits" / site, ignore_errors=True)
    with writable(folder, "the kits"):
        pinned = _put_kits(folder, project, [site])
        sites = (*(one for one in listed.sites if one != site), site)
        _save(file, listed, sites=sites, certificates={**listed.certificates, **pinned})
        _write(folder / "project.yml", project)
    return folder / "kits" / site


def renew(folder: Path, name: str) -> Path:
    """Give a participant a new key and certificate; returns its `startup` folder.

    The kit's `local` folder stays as it is. The old certificate is not admitted any more.
    """
    require_nvflare()
    project, file, listed = _opened(folder)
    own = next((one for one in project["participants"] if one["name"] == name), None)
    if own is None:
        known = ", ".join(one["name"] for one in project["participants"])
        raise InputError(
            f"the federation has no participant {name!r}", f"It has {known}.", path=folder
        )
    if own["type"] == "client" and name not in listed.certificates:
        raise InputError(f"the site {name!r} was revoked", "Add it under a new name.", path=folder)
    with writable(folder, "the kits"):
        pinned = _put_kits(folder, project, [name])
        _save(file, listed, certificates={**listed.certificates, **pinned})
    return folder / "kits" / name / "startup"


def revoke(folder: Path, site: str) -> None:
    """Take a site off the coordinator's list for good: it cannot connect and is never asked."""
    _, file, listed = _opened(folder)
    sites = tuple(one for one in listed.sites if one != site)
    if len(sites) == len(listed.sites):
        raise InputError(
            f"the coordinator does not list a site {site!r}, or it was revoked",
            f"It lists {', '.join(sites)}.",
            path=folder,
        )
    if not sites:
        raise InputError("it is the last site", "Add another one first.", path=folder)
    admitted = {name: x for name, x in listed.certificates.items() if name != site}
    _save(file, listed, sites=sites, certificates=admitted)


def _opened(folder: Path) -> tuple[dict[str, Any], Path, CoordinatorSettings]:
    """NVFlare's project of a federation, and the file and content of the coordinator's settings."""
    try:
        project = _read(folder / "project.yml")
        server = next(one["name"] for one in project["participants"] if one["type"] == "server")
    except (OSError, ValueError, LookupError, TypeError, StopIteration):
        raise InputError(
            "its project.yml cannot be read",
            "Name the folder that `jigsaw federate init` wrote.",
            path=folder,
        ) from None
    file = folder / "kits" / server / "local" / COORDINATOR_FILE
    return project, file, CoordinatorSettings.from_file(file)


def _save(path: Path, listed: CoordinatorSettings, **changes: object) -> None:
    """Write the coordinator's settings."""
    text = listed.model_copy(update=changes).model_dump_json(indent=1, exclude_unset=True)
    write_text(path, text, private=True)
