"""The result folder: read, and written in one step.

A result folder has `result.json` (the whole result), `order.csv`, `hasse.graphml` and
`report.html` (derived from it), and with hard interventions `effects.csv` and `graph.graphml`.
It is written with a journal: all files go to a hidden sub-folder (the stage), one rename marks the
stage as complete, and then its files are moved into place. A run killed before the rename leaves
the old result. A run killed after it leaves the new one, because readers look into a complete
stage first and the next writer moves its files out.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from jigsaw_crl.assembly.order import GlobalOrder
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import (
    Ours,
    check_output,
    is_document,
    locked,
    sync_folder,
    writable,
    write_text,
)
from jigsaw_crl.base.labels import csv_cell

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from jigsaw_crl.result.result import Result

RESULT, ORDER, HASSE, REPORT = "result.json", "order.csv", "hasse.graphml", "report.html"
# Only with hard interventions. An empty one in the stage stands for none, so that one of an older
# result is removed, also when the move is repeated after an interruption.
EFFECTS, GRAPH = "effects.csv", "graph.graphml"
_STAGE_PREFIX, COMPLETE = ".jigsaw-stage-", ".jigsaw-complete"


def is_report(seen: bytes) -> bool:
    """Is it a report that this package wrote?"""
    return b'<meta name="generator" content="jigsaw-crl ' in seen


def _is_graph(seen: bytes) -> bool:
    # A graph without edges has no attributes.
    named = b'"probability"' in seen or b'"verdict"' in seen
    return b"<graphml " in seen[:200] and (named or b"<edge" not in seen)


_OURS: dict[str, Ours] = {
    RESULT: is_document("result"),
    ORDER: lambda seen: seen.startswith(b"ancestor,descendant,verdict,"),
    HASSE: _is_graph,
    REPORT: is_report,
    EFFECTS: lambda seen: seen.startswith(b"cause,effect,total,"),
    GRAPH: _is_graph,
}


def order_csv(order: GlobalOrder) -> str:
    """The table of `GlobalOrder.to_frame` as CSV, numbers with four decimals."""
    return _csv(order.to_frame(), "%.4f")


def _csv(table: pd.DataFrame, number: str) -> str:
    """A table; no label or unit in it is a spreadsheet's formula."""
    texts = [name for name in (*table.columns[:2], "unit") if name in table]
    shown = table.assign(**{name: table[name].map(csv_cell) for name in texts})
    return str(shown.to_csv(index=False, lineterminator="\n", float_format=number))


def graphml(graph: nx.DiGraph[str]) -> str:
    """GraphML text, nodes named by their labels."""
    import networkx as nx  # here for start-up time

    return "\n".join(nx.generate_graphml(graph)) + "\n"


def load_result(folder: str | os.PathLike[str]) -> Result:
    """Read a result folder that `Result.save` wrote; latent bases are not in it.

    Examples
    --------
    >>> import tempfile
    >>> import jigsaw_crl as jc
    >>> result = jc.recover(jc.simulate.setting("A", 0).clients())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = jc.load_result(result.save(folder))
    >>> again.order.pairs() == result.order.pairs()
    True
    """
    # Imported here for start-up time: it loads pydantic.
    from jigsaw_crl.result.document import ResultDocument

    root = Path(folder)
    path = next((p for p in (root / COMPLETE / RESULT, root / RESULT) if p.exists()), None)
    if path is None:
        what = f"this folder has no {RESULT}" if root.exists() else "there is no such folder"
        raise InputError(what, "Pass a folder that `jigsaw recover --out` wrote.", path=root)
    document = ResultDocument.from_file(path)
    try:
        return document.result(path)
    except InputError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"the result does not hold together ({type(error).__name__}: {error})",
            "Run the recovery again.",
            path=path,
        ) from None


def write_folder(result: Result, root: Path, *, force: bool = False) -> Path:
    """Write all files of a result folder, completely or not at all."""
    check_folder(root, force=force)
    # Everything is composed first: writing computes nothing.
    texts = texts_of(result)
    stage: Path | None = None
    with writable(root, "the folder"):
        made = not root.exists()
        root.mkdir(parents=True, exist_ok=True)
        try:
            with locked(root):
                _finish(root)
                # The umask decides who may read it.
                stage = root / f"{_STAGE_PREFIX}{secrets.token_hex(6)}"
                stage.mkdir()
                for name, text in texts.items():
                    write_text(stage / name, text)
                # From here on, readers get the new result.
                os.rename(stage, root / COMPLETE)
                stage = None
                sync_folder(root)
                _finish(root)
            if made:
                sync_folder(root.absolute().parent)
        finally:
            if stage is not None:
                shutil.rmtree(stage, ignore_errors=True)
            if made:
                # It is empty if nothing could be written.
                with suppress(OSError):
                    root.rmdir()
    return root


def check_folder(root: Path, *, inputs: Iterable[Path | None] = (), force: bool = False) -> None:
    """Refuse a folder in which the result would overwrite an input, or a file that is not ours.

    With `force`, files that are not ours and have the names of a result's files are overwritten.
    """
    if root.exists() and not root.is_dir():
        raise InputError("this is a file", "Name a folder for the result.", path=root)
    given = list(inputs)
    for name, ours in _OURS.items():
        if not (root / COMPLETE / name).exists():
            # What waits in a complete stage was checked when it was written.
            check_output(root / name, ours, inputs=given, force=force, what="part of a result")


def check_finished(root: Path) -> None:
    """Refuse a folder whose last write was not finished: it may hold two results."""
    left = [*root.glob(COMPLETE), *root.glob(f"{_STAGE_PREFIX}*")]
    if left:
        raise InputError(
            f"the last write of this folder was not finished ({left[0].name})",
            "Write the result again.",
            path=root,
        )


def texts_of(result: Result) -> dict[str, str]:
    """The content of every file of the folder; empty for one that it does not have."""
    order, effects = result.order, result.effects
    linear = order.effects is not None
    return {
        RESULT: json.dumps(result.to_document(), ensure_ascii=False, allow_nan=False),
        ORDER: order_csv(order),
        HASSE: graphml(order.hasse()),
        EFFECTS: _csv(effects, "%.6g") if linear or len(effects) else "",
        GRAPH: graphml(result.graph) if linear else "",
        REPORT: resolve_name("jigsaw_crl.report.writing:render_report")(result),
    }


def _finish(root: Path) -> None:
    """Move a complete stage into place, and clear stages that were never completed."""
    complete = root / COMPLETE
    if complete.is_symlink() or complete.exists():
        strange = complete.is_symlink() or not complete.is_dir()
        if strange or set(os.listdir(complete)) - _OURS.keys():
            # Moved into place, it would be taken from elsewhere, or would replace another file.
            raise InputError(
                f"{COMPLETE} in this folder is not an unfinished write of a result",
                "Remove it, or name another folder.",
                path=root,
            )
        # result.json goes last: until then, readers take it from the stage.
        for name in sorted(os.listdir(complete), key=lambda name: (name == RESULT, name)):
            if name in (EFFECTS, GRAPH) and not (complete / name).stat().st_size:
                (root / name).unlink(missing_ok=True)
                (complete / name).unlink()
            else:
                os.replace(complete / name, root / name)
        sync_folder(root)
        complete.rmdir()
    for left in root.glob(f"{_STAGE_PREFIX}*"):
        shutil.rmtree(left, ignore_errors=True)
