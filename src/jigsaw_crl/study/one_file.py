"""How a single client's file is read: as the manifest beside it says, and first of all as asked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.study.folder import Described, Entry, manifest_entries, naming_of
from jigsaw_crl.study.manifest import MANIFEST

__all__ = ["describe_one"]


def describe_one(
    path: Path, given: Mapping[str, Any], *, name: str | None = None, n_latent: int | None = None
) -> Described:
    """One client: of its file, with the manifest in the same folder, or of a manifest.

    Parameters
    ----------
    path : Path
    given : mapping of str to object
        What is asked for, by the names of a manifest's fields; it comes before the manifest.
    name : str, optional
    n_latent : int, optional
    """
    described = _described(path, given)
    (entry,) = described.entries
    own = replace(
        entry,
        # A column that is asked for must be there.
        naming=replace(entry.naming, strict_ignore=True) if given.get("ignore") else entry.naming,
        name=entry.name if name is None else name,
        n_latent=entry.n_latent if n_latent is None else n_latent,
    )
    return replace(described, entries=[own])


def _described(path: Path, given: Mapping[str, Any]) -> Described:
    if path.suffix == ".toml":
        described = manifest_entries(path, given, elsewhere=True)
        if len(described.entries) != 1:
            count = pluralise(len(described.entries), "client")
            raise InputError(
                f"the manifest has {count}, and one is asked for",
                "Name the client's own file: the manifest in its folder holds for it.",
                path=path,
            )
        return described
    with readable(path):
        beside = (path.parent / MANIFEST).is_file()
    if beside:
        described = manifest_entries(path.parent, given, elsewhere=True)
        for entry in described.entries:
            if os.path.realpath(entry.path) == os.path.realpath(path):
                return replace(described, entries=[replace(entry, path=path)])
    return Described(path.name, [Entry(None, path, naming_of({}, {}, given))], None, None)
