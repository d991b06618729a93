"""Settings a participant keeps for itself, in a file of its kit's `local` folder.

They never come with a job. They are not put in NVFlare's own `resources.json`, whose further
entries a site would announce to the server.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable

__all__ = [
    "COORDINATOR_FILE",
    "SITE_FILE",
    "CoordinatorSettings",
    "SiteSettings",
    "check_name",
    "coordinator_settings",
    "site_settings",
]

SITE_FILE, COORDINATOR_FILE = "jigsaw-site.json", "jigsaw-coordinator.json"
# A fragment of a thousand labels with evidence at two scales takes about 30 MB.
MOST_BYTES = 1 << 26
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True)
class SiteSettings:
    """What a site decides: where its finished fragment is, and how large one may be.

    Parameters
    ----------
    fragment : Path
    most_bytes : int
    """

    fragment: Path
    most_bytes: int = MOST_BYTES


@dataclass(frozen=True)
class CoordinatorSettings:
    """What the coordinator decides.

    Parameters
    ----------
    sites : tuple of str
        All that take part; one that does not answer is named as missing.
    results : Path
        Folder with a result folder for each round.
    keys : Path or None
        List of the sites' keys; with it only signed fragments count.
    most_bytes : int
        Larger answers are refused.
    """

    sites: tuple[str, ...]
    results: Path
    keys: Path | None = None
    most_bytes: int = MOST_BYTES


def site_settings(local: Path, site: str) -> SiteSettings:
    """Of the kit whose `local` folder this is; the path is relative to the kit.

    `{site}` in the path stands for the site's name: in a simulation all sites share their settings.
    """
    path, document = _document(local / SITE_FILE, {"fragment"}, {"most_bytes"})
    fragment = _text(document, "fragment", path).replace("{site}", site)
    return SiteSettings(local.parent / fragment, _size(document, path))


def coordinator_settings(local: Path) -> CoordinatorSettings:
    """Of the kit whose `local` folder this is; paths are relative to the kit."""
    path, document = _document(
        local / COORDINATOR_FILE, {"sites", "results"}, {"keys", "most_bytes"}
    )
    sites = document["sites"]
    if not isinstance(sites, list) or not sites or len({str(s) for s in sites}) != len(sites):
        raise InputError("'sites' is not a list of names", "List each site once.", path=path)
    keys = document.get("keys")
    return CoordinatorSettings(
        tuple(check_name(site, "site") for site in sites),
        local.parent / _text(document, "results", path),
        None if keys is None else local.parent / _text(document, "keys", path),
        _size(document, path),
    )


def check_name(name: object, what: str) -> str:
    """A name that can be a folder's; it may come from another machine."""
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise InputError(
            f"the {what}'s name is {str(name)[:80]!r}",
            "Use up to 63 letters, digits, dots, dashes and underscores, a letter or digit first.",
        )
    return name


def _document(path: Path, needed: set[str], more: set[str]) -> tuple[Path, dict[str, Any]]:
    with readable(path):
        text = path.read_bytes()
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or not needed <= set(document) <= needed | more:
        raise InputError(
            f"it does not hold {', '.join(sorted(needed))}, with {', '.join(sorted(more))} "
            "if wanted and nothing else",
            "Write it as `jigsaw federate init` does.",
            path=path,
        )
    return path, document


def _text(document: dict[str, Any], name: str, path: Path) -> str:
    value = document[name]
    if not isinstance(value, str) or not value:
        raise InputError(f"{name!r} is not a path", "Write it as text.", path=path)
    return value


def _size(document: dict[str, Any], path: Path) -> int:
    value = document.get("most_bytes", MOST_BYTES)
    if type(value) is not int or value < 1:
        raise InputError("'most_bytes' is not a number of bytes", "Mend it.", path=path)
    return int(value)
