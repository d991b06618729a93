"""Finished tasks on disk, one file each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jigsaw_crl.base.files import writable, write_text

__all__ = ["Store"]


class Store:
    """A folder of finished tasks.

    Writes are atomic, so an interrupted run leaves complete files only. Files of another plan, and
    files that cannot be read, are ignored.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with writable(folder, "the folder"):
            folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: str, fingerprint: str) -> dict[str, Any] | None:
        """The record of a finished task with this fingerprint of its plan, or None."""
        try:
            record = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(record, dict) or record.get("fingerprint") != fingerprint:
            return None
        return record if record.get("task") == key else None

    def put(self, record: dict[str, Any]) -> None:
        """Write a record under the key of its task."""
        write_text(self.folder / f"{record['task']}.json", json.dumps(record, indent=1))
