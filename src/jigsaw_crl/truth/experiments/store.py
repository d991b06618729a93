"""Finished tasks on disk, one file each."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from jigsaw_crl.base.errors import InputError

__all__ = ["Store"]


class Store:
    """A folder of finished tasks.

    Writes are atomic, so an interrupted run leaves complete files only. Files of another plan, and
    files that cannot be read, are ignored.

    Parameters
    ----------
    folder : Path
    fingerprint : str
        Fingerprint of the plan.
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
        """Write a record under the key of its task."""
        place = self.folder / f"{record['task']}.json"
        beside = place.with_suffix(f".{os.getpid()}.part")
        beside.write_text(json.dumps(record, indent=1), encoding="utf-8")
        beside.replace(place)
