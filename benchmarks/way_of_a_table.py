"""The functions that a table passes on its way to a fragment, room by room.

    python benchmarks/way_of_a_table.py [--rows 2000] [--functions]

Writes a table of four labels, reads and recovers it, and prints how many functions and files of the
package took part, and in which order data entered its rooms (packages). A room that comes again was
entered again from another one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

import jigsaw_crl as jc

PACKAGE = str(Path(jc.__file__).parent)


def traced(work: Any) -> list[tuple[str, str, str]]:
    """Room, file and function of every call within the package, in order."""
    calls: list[tuple[str, str, str]] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            file = Path(code.co_filename).relative_to(PACKAGE)
            if not code.co_name.startswith("<"):
                calls.append((file.parts[0], str(file), code.co_qualname))

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def write_table(path: Path, rows: int) -> None:
    """Rows of a control and four interventions, as CSV."""
    control, regimes = jc.simulate.random_world(4, 1, 1.0, seed=0, features=2.0).rows(0, rows)
    frame = pd.DataFrame(np.vstack([control, *regimes.values()])).add_prefix("x")
    frame.insert(0, "regime", np.repeat(["control", *regimes], rows))
    frame.to_csv(path, index=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--functions", action="store_true", help="list every function")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lab-1.csv"
        write_table(path, options.rows)
        jc.recover_fragment(jc.read_client(path))  # imports and caches are not a part of the way
        calls = traced(lambda: jc.recover_fragment(jc.read_client(path)))
    functions = dict.fromkeys(calls)
    print(f"{len(functions)} functions in {len({file for _, file, _ in functions})} files")
    for room in dict.fromkeys(room for room, _, _ in functions):
        own = [name for name in functions if name[0] == room]
        print(
            f"  {room:12s} {len(own):4d} functions in {len({file for _, file, _ in own}):3d} files"
        )
        if options.functions:
            print(*(f"      {file}  {function}" for _, file, function in own), sep="\n")
    first_seen = [room for room, _ in groupby(functions, key=lambda call: call[0])]
    print("new functions, room after room:", " → ".join(first_seen))


if __name__ == "__main__":
    main()
