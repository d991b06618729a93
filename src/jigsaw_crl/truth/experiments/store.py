"""Finished pieces of work on disk: one small file each, written whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from jigsaw_crl.base.errors import InputError

__all__ = ["Store"]


class Store:
    """A folder of finished tasks.

    A run that is killed leaves complete files only, because each is written beside its place and
    then moved there. A file of another plan, or one that cannot be read, counts as not there.

    Parameters
    ----------
    folder : Path
    fingerprint : str
        Of the plan whose results are wanted.
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder = folder
        self.fingerprint = fingerprint
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"the folder cannot be written ({error.strerror})", "Choose another.", path=folder
            ) from None

    def get(self, key: str) -> dict[str, Any] | None:
        """The record of a finished task, or None."""
        try:
            record = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(record, dict) or record.get("fingerprint") != self.fingerprint:
            return None
        return record if record.get("task") == key else None

    def put(self, record: dict[str, Any]) -> None:
        """Keep a record under the key of its task."""
        place = self.folder / f"{record['task']}.json"
        beside = place.with_suffix(f".{os.getpid()}.part")
        beside.write_text(json.dumps(record, indent=1), encoding="utf-8")
        beside.replace(place)
