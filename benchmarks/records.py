"""Worlds that are computed once: one line of JSON each, in a file that a later run reads again.

A cell is a frozen dataclass whose fields describe a kind of world. A record is what was measured in
one world of a cell.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from joblib import Parallel, delayed

__all__ = ["Record", "by_cell", "cell_name", "finished", "run"]

Record = dict[str, Any]
Cell = TypeVar("Cell")


def finished(path: Path) -> Iterator[Record]:
    """The records of a file; a last line that was cut off is skipped."""
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue


def run(
    kind: type[Cell],
    measure: Callable[[Cell, str, int], Record],
    tasks: Iterable[tuple[Cell, int]],
    family: str,
    jobs: int,
    out: Path,
) -> list[Record]:
    """The records of all worlds, from the file where they are there.

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
    """

    def key(record: Record) -> tuple[Cell, str, int]:
        return kind(**record["cell"]), record["seeds"], record["world"]

    wanted = [t for cell, worlds in tasks for t in product([cell], [family], range(worlds))]
    records = {key(r): r for r in finished(out)}
    missing = [task for task in wanted if task not in records]
    out.parent.mkdir(parents=True, exist_ok=True)
    torn = out.exists() and not out.read_text(encoding="utf-8").endswith("\n")
    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    with out.open("a", encoding="utf-8") as file:
        if torn and out.stat().st_size:
            file.write("\n")
        for record in parallel(delayed(measure)(*task) for task in missing):
            file.write(json.dumps(record) + "\n")
            file.flush()
            records[key(record)] = record
    return [records[task] for task in wanted]


def by_cell(kind: type[Cell], records: Iterable[Record]) -> dict[Cell, list[Record]]:
    """The records of each cell."""
    groups: dict[Cell, list[Record]] = defaultdict(list)
    for record in records:
        groups[kind(**record["cell"])].append(record)
    return groups


def cell_name(cell: Any, first: str, skip: Iterable[str]) -> str:
    """`first`, and the fields that differ from their defaults, but for those in `skip`."""
    other = [
        f"{f.name} {getattr(cell, f.name)}"
        for f in fields(cell)
        if f.name not in skip and getattr(cell, f.name) != f.default
    ]
    return ", ".join([first, *other])
