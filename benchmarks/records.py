"""Worlds that are computed once: one line of JSON each, in a file that a later run reads again.

A cell is a frozen dataclass whose fields describe a kind of world. A record is what was measured in
one world of a cell, and the hash of the code that measured it: a record of other code is not used.
A benchmark whose tables stand on a page lists them as `PUBLISHED`; `pages.py` makes these.
"""

from __future__ import annotations

import json
import math
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from joblib import Parallel, delayed

from jigsaw_crl.truth.experiments.reproduce import code_hash

__all__ = ["Record", "Table", "by_cell", "cell_name", "code", "finished", "run"]

Record = dict[str, Any]
Cell = TypeVar("Cell")


@dataclass(frozen=True)
class Table:
    """A table of a page, between `<!-- table NAME -->` and `<!-- end -->`.

    Parameters
    ----------
    name : str
    page : str
        From the root of the project.
    tasks : tuple of (cell, number of worlds)
    show : function
        The Markdown of the records of these tasks.
    seeds : str
        The family of seeds.
    """

    name: str
    page: str
    tasks: tuple[tuple[Any, int], ...]
    show: Callable[[list[Record]], str]
    seeds: str = "judge"


def code() -> str:
    """The start of the hash of the code that numbers depend on."""
    return code_hash()[:12]


def commit() -> str:
    """The commit of the tree, marked if code was changed since."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *words]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()

    # The report's table of simulations is written by a run itself.
    table = ":!../src/jigsaw_crl/report/simulations.csv"
    changed = git("status", "--porcelain", "--", "../src", ".", table)
    return git("rev-parse", "--short", "HEAD") + (" with changes" if changed else "")


def finished(path: Path, by: str | None = None) -> Iterator[Record]:
    """The records of a file, measured by this code if it is given; cut lines are skipped."""
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if by in (None, record.get("code")):
                yield record


def run(
    kind: type[Cell],
    measure: Callable[[Cell, str, int], Record],
    tasks: Iterable[tuple[Cell, int]],
    family: str,
    jobs: int,
    out: Path,
    seconds: float = math.inf,
) -> list[Record]:
    """The records of all worlds, from the file where this code has measured them.

    Cells get their worlds in turns, so that a run that was stopped has some of each.

    Parameters
    ----------
    kind : type
        Of the cells.
    measure : function
        Of cell, family of seeds and number of the world. Its record has these as "cell", "seeds"
        and "world".
    tasks : iterable of (cell, number of worlds)
    family : str
    jobs : int
    out : Path
    seconds : float
        After that time no further world is begun, and those that are missing are left out.
    """

    def key(record: Record) -> tuple[Cell, str, int]:
        return kind(**record["cell"]), record["seeds"], record["world"]

    wanted = [t for cell, worlds in tasks for t in product([cell], [family], range(worlds))]
    own, at, until = code(), commit(), time.monotonic() + seconds
    records = {key(r): r for r in finished(out, by=own)}
    missing = [task for task in dict.fromkeys(wanted) if task not in records]

    def begun() -> Iterator[Any]:
        for task in sorted(missing, key=lambda task: task[2]):
            if time.monotonic() > until:
                return
            yield delayed(measure)(*task)

    out.parent.mkdir(parents=True, exist_ok=True)
    torn = out.exists() and not out.read_text(encoding="utf-8").endswith("\n")
    parallel = Parallel(
        n_jobs=jobs, return_as="generator_unordered", batch_size=1, pre_dispatch=jobs
    )
    with out.open("a", encoding="utf-8") as file:
        if torn and out.stat().st_size:
            file.write("\n")
        for record in parallel(begun()):
            record |= {"code": own, "commit": at}
            file.write(json.dumps(record) + "\n")
            file.flush()
            records[key(record)] = record
    return [records[task] for task in wanted if task in records]


def by_cell(kind: type[Cell], records: Iterable[Record]) -> dict[Cell, list[Record]]:
    """The records of each cell."""
    groups: dict[Cell, list[Record]] = defaultdict(list)
    for record in records:
        groups[kind(**record["cell"])].append(record)
    return groups


def cell_name(cell: Any, first: str, skip: Iterable[str]) -> str:
    """`first`, and the fields that differ from their defaults, but for those in `skip`."""
    given = {f.name: getattr(cell, f.name) for f in fields(cell) if f.name not in skip}
    default = {f.name: f.default for f in fields(cell)}
    other = [
        f"{name.replace('_', ' ')} {f'{x:.3g}' if isinstance(x, float) else x}"
        for name, x in given.items()
        if x != default[name]
    ]
    return ", ".join([first, *other])
