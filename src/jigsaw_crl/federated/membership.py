"""The life of a federation: sites join and leave, certificates are renewed before they expire."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable, writable
from jigsaw_crl.federated.job import write_json
from jigsaw_crl.federated.kits import (
    fingerprint,
    harden_server_config,
    harden_site,
    participant,
    provision,
    require_nvflare,
    restrict,
)
from jigsaw_crl.federated.settings import COORDINATOR_FILE, check_name

__all__ = ["WARNING_DAYS", "Member", "add_site", "days_left", "members", "renew", "revoke"]

# From this many days before a certificate expires, users are warned.
WARNING_DAYS = 60


@dataclass(frozen=True)
class Member:
    """A participant of a federation, or its authority.

    Parameters
    ----------
    name : str
    kind : {"authority", "coordinator", "admin", "site"}
    days : int or None
        Days until the certificate expires; None if the kit is not in the federation's folder.
    state : {"", "listed", "not listed", "revoked"}
        Of a site: whether the coordinator asks it.
    """

    name: str
    kind: str
    days: int | None
    state: str = ""


def days_left(certificate: bytes) -> int:
    """Whole days until a certificate in PEM expires; negative if it has expired."""
    from cryptography import x509  # an optional dependency

    end = x509.load_pem_x509_certificate(certificate).not_valid_after_utc
    return (end - datetime.now(UTC)).days


def members(folder: Path) -> list[Member]:
    """The authority and every participant of a federation."""
    project, listed = _project(folder), _coordinator(folder)
    authority = _authority(folder)["root_cert"].encode()
    found = [Member("authority", "authority", days_left(authority))]
    kinds = {"server": "coordinator", "admin": "admin", "client": "site"}
    for one in project["participants"]:
        name, kind = one["name"], kinds[one["type"]]
        base = "server.crt" if kind == "coordinator" else "client.crt"
        path = folder / "kits" / name / "startup" / base
        days = days_left(path.read_bytes()) if path.is_file() else None
        state = ""
        if kind == "site":
            state = "listed" if name in listed.get("sites", ()) else "not listed"
            state = "revoked" if name in listed.get("revoked", ()) else state
        found.append(Member(name, kind, days, state))
    return found


def add_site(folder: Path, site: str) -> Path:
    """Make the kit of a new site, and add it to the coordinator's list; returns the kit."""
    require_nvflare()
    check_name(site, "site")
    project, listed = _project(folder), _coordinator(folder)
    if site in {one["name"] for one in project["participants"]}:
        raise InputError(
            f"the federation has a participant {site!r} already",
            "Choose another name, or renew its certificate.",
            path=folder,
        )
    new = participant(site, "client", allow_log_streaming=False)
    kit = folder / "kits" / site
    with _new_kit(folder, project, new) as made:
        # An attempt that failed may have left one; the project, written last, does not name it.
        shutil.rmtree(kit, ignore_errors=True)
        shutil.move(made, kit)
    harden_site(kit)
    restrict(kit)
    sites = [*(one for one in listed["sites"] if one != site), site]
    _save_coordinator(folder, _pinned({**listed, "sites": sites}, kit))
    project["participants"].append(new)
    with writable(folder / "project.yml"):
        write_json(folder / "project.yml", project)
    return kit


def renew(folder: Path, name: str) -> Path:
    """Give a participant a new key and certificate; returns its `startup` folder.

    The kit's `local` folder stays as it is. The old certificate is not admitted any more.
    """
    require_nvflare()
    project = _project(folder)
    own = next((one for one in project["participants"] if one["name"] == name), None)
    kit = folder / "kits" / name
    if own is None:
        known = ", ".join(one["name"] for one in project["participants"])
        raise InputError(
            f"the federation has no participant {name!r}", f"It has {known}.", path=folder
        )
    listed = _coordinator(folder)
    if name in listed.get("revoked", ()):
        raise InputError(f"the site {name!r} was revoked", "Add it under a new name.", path=folder)
    with _new_kit(folder, project, own) as made:
        if own["type"] == "server":
            harden_server_config(made)
        if kit.is_dir():
            shutil.rmtree(kit / "startup", ignore_errors=True)
            shutil.move(made / "startup", kit / "startup")
        else:
            shutil.move(made, kit)
            if own["type"] == "client":
                harden_site(kit)
    restrict(kit)
    if own["type"] != "server":
        _save_coordinator(folder, _pinned(listed, kit))
    return kit / "startup"


def revoke(folder: Path, site: str) -> None:
    """Take a site off the coordinator's list for good: it cannot connect and is never asked."""
    listed = _coordinator(folder)
    revoked = listed.get("revoked", [])
    if site in revoked:
        raise InputError(f"the site {site!r} was revoked already", "Nothing is to do.", path=folder)
    if site not in listed["sites"]:
        raise InputError(
            f"the coordinator does not list a site {site!r}",
            f"It lists {', '.join(listed['sites'])}.",
            path=folder,
        )
    sites = [one for one in listed["sites"] if one != site]
    if not sites:
        raise InputError("it is the last site", "Add another one first.", path=folder)
    _save_coordinator(folder, {**listed, "sites": sites, "revoked": [*revoked, site]})


# -- files ----------------------------------------------------------------------------------------


@contextmanager
def _new_kit(folder: Path, project: dict[str, Any], own: dict[str, Any]) -> Iterator[Path]:
    """A new kit of one participant; the other kits that NVFlare makes are thrown away."""
    base = [one for one in project["participants"] if one["type"] in ("server", "admin")]
    plan = {**project, "participants": base if own in base else [*base, own]}
    with writable(folder, "the kits"):
        made = provision(plan, folder / "authority")
        try:
            yield made / own["name"]
        finally:
            shutil.rmtree(made, ignore_errors=True)


def _project(folder: Path) -> dict[str, Any]:
    return _read(folder, folder / "project.yml")


def _authority(folder: Path) -> dict[str, Any]:
    return _read(folder, folder / "authority" / "jigsaw" / "state" / "cert.json")


def _coordinator_file(folder: Path) -> Path:
    everybody = _project(folder)["participants"]
    server = next(str(one["name"]) for one in everybody if one["type"] == "server")
    return folder / "kits" / server / "local" / COORDINATOR_FILE


def _coordinator(folder: Path) -> dict[str, Any]:
    return _read(folder, _coordinator_file(folder))


def _save_coordinator(folder: Path, document: dict[str, Any]) -> None:
    path = _coordinator_file(folder)
    with writable(path):
        write_json(path, document, private=True)


def _pinned(listed: dict[str, Any], kit: Path) -> dict[str, Any]:
    """The coordinator's settings with the certificate of a new kit."""
    known = listed.get("certificates", {})
    return {**listed, "certificates": {**known, kit.name: fingerprint(kit)}}


def _read(folder: Path, path: Path) -> dict[str, Any]:
    try:
        with readable(path):
            document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # also an InputError
        raise InputError(
            f"{path.relative_to(folder)} cannot be read",
            "Name the folder that `jigsaw federate init` wrote, with the coordinator's kit in it.",
            path=folder,
        ) from error
    return document
