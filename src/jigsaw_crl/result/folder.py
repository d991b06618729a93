"""The result folder, written in one step.

A result folder has `result.json` (the whole result), `order.csv`, `hasse.graphml` and
`report.html` (derived from it). It is written with a journal: all files go to a hidden
sub-folder (the stage), one rename marks the stage as complete, and then its files are moved into
place. A run killed before the rename leaves the old result. A run killed after it leaves the new
one, because readers look into a complete stage first and the next writer moves its files out.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import writable

if TYPE_CHECKING:
    from jigsaw_crl.result.result import Result

__all__ = ["COMPLETE", "RESULT", "check_folder", "write_folder"]

RESULT, ORDER, HASSE, REPORT = "result.json", "order.csv", "hasse.graphml", "report.html"
_STAGE_PREFIX, COMPLETE = ".jigsaw-stage-", ".jigsaw-complete"


def write_folder(result: Result, root: Path) -> Path:
    """Write all files of a result folder, completely or not at all."""
    check_folder(root)
    stage: Path | None = None
    with writable(root, "the folder"):
        try:
            root.mkdir(parents=True, exist_ok=True)
            _finish(root)
            stage = Path(tempfile.mkdtemp(prefix=_STAGE_PREFIX, dir=root))
            _write_files(result, stage)
            # From here on, readers get the new result.
            os.rename(stage, root / COMPLETE)
            stage = None
            _finish(root)
        finally:
            if stage is not None:
                shutil.rmtree(stage, ignore_errors=True)
    return root


def check_folder(root: Path) -> None:
    """Refuse a folder that is no result folder but has a file with one of its names."""
    if root.exists() and not root.is_dir():
        raise InputError("this is a file", "Name a folder for the result.", path=root)
    if not root.is_dir() or (root / COMPLETE).exists() or (root / RESULT).exists():
        return
    for name in (ORDER, HASSE, REPORT):
        if (root / name).exists():
            raise InputError(
                f"the folder has a file {name} but no {RESULT}, so it is not a result folder",
                "Choose another folder, or move that file.",
                path=root,
            )


def _write_files(result: Result, stage: Path) -> None:
    # Imported here for start-up time: it loads networkx, which results that stay in memory spare.
    from jigsaw_crl.result.exports import order_csv, to_graphml

    document = json.dumps(result.to_document(), ensure_ascii=False, allow_nan=False)
    (stage / RESULT).write_text(document, encoding="utf-8")
    (stage / ORDER).write_text(order_csv(result.order), encoding="utf-8", newline="\n")
    (stage / HASSE).write_text(to_graphml(result.order), encoding="utf-8", newline="\n")
    result.report(stage / REPORT)
    for path in stage.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())


def _finish(root: Path) -> None:
    """Move a complete stage into place, and clear stages that were never completed."""
    complete = root / COMPLETE
    if complete.is_dir():
        # result.json goes last: until then, readers take it from the stage.
        for name in sorted(os.listdir(complete), key=lambda name: (name == RESULT, name)):
            os.replace(complete / name, root / name)
        complete.rmdir()
    for left in root.glob(f"{_STAGE_PREFIX}*"):
        shutil.rmtree(left, ignore_errors=True)
