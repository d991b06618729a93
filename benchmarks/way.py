"""The way of a CSV to its fragment: which functions of the package it passes, room by room.

    python benchmarks/way.py [--list 1]

A client of four labels is read from a CSV and recovered. Prints for each room how many distinct
functions ran, and how many of them ran after a later room was entered: data goes one way, so a room
that moments or checks are computed in should not be needed again. Methods of the values that it
made, such as `Client.columns` or `White.moved`, are handed on with them: they are counted apart.
`--list 1` names the functions.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pandas as pd
from reporting import header, options, row

import jigsaw_crl as jc

PACKAGE = Path(jc.__file__).parent
# The rooms in which data becomes something else, in its order. The others are tools of these.
WAY = ("study", "moments", "client", "diagnostics", "nullcone")


def write_table(path: Path) -> None:
    """A CSV of a client with four labels and five features."""
    world = jc.simulate.random_world(4, 1, 1.0, seed=1)
    parts = [
        pd.DataFrame(rows).add_prefix("x").assign(regime=regime)
        for regime, rows in world.sample(0, 1_000, seed=1).regimes.items()
    ]
    pd.concat(parts).to_csv(path, index=False)


def passed(work: Callable[[], Any]) -> tuple[dict[CodeType, str], set[CodeType]]:
    """The functions that `work` calls, each with its room, and those that ran after a later one."""
    rooms: dict[CodeType, str] = {}
    late: set[CodeType] = set()
    reached = 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal reached
        code = frame.f_code
        if event != "call" or code.co_name.startswith("<"):
            return
        if code not in rooms:
            path = Path(code.co_filename)
            inside = path.is_relative_to(PACKAGE)
            rooms[code] = path.relative_to(PACKAGE).parts[0].removesuffix(".py") if inside else ""
        if rooms[code] in WAY:
            place = WAY.index(rooms[code])
            # Reading a file and adding up its rows go hand in hand.
            if place < reached and reached > WAY.index("client"):
                late.add(code)
            reached = max(reached, place)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return {code: room for code, room in rooms.items() if room}, late


def main() -> None:
    given = options(__doc__, list=0).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lab-1.csv"
        write_table(path)
        # Once before: lazy imports and caches are not on the way.
        jc.recover_fragment(jc.read_client(path))
        found, late = passed(lambda: jc.recover_fragment(jc.read_client(path)))
    methods = {code for code in late if code.co_varnames[:1] == ("self",)}
    header("room", "functions", "after a later room", "methods of its values, after it")
    for room in sorted(set(found.values())):
        own = [code for code in found if found[code] == room]
        back = [code for code in own if code in late - methods]
        row(room, len(own), len(back), sum(code in methods for code in own))
        if given.list:
            for code in own:
                mark = "  ← late" if code in late - methods else "  ← late method" * (code in late)
                print(f"    {Path(code.co_filename).stem}.{code.co_qualname}{mark}")
    files = {code.co_filename for code in found}
    row(f"all, in {len(files)} files", len(found), len(late - methods), len(methods))


if __name__ == "__main__":
    main()
