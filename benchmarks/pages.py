"""The tables of the pages, from records: made, written, and checked.

    python benchmarks/pages.py run --jobs 2              # measures what this code has not measured
    python benchmarks/pages.py run --only calibration --seconds 600
    python benchmarks/pages.py write                     # tables and pictures from the records
    python benchmarks/pages.py check --sample 10         # do pages, records and code agree?
    python benchmarks/pages.py try --only knowledge --worlds 2 --where rows=100

A benchmark lists its tables as `PUBLISHED`. Its records are `docs/figures/NAME.jsonl`: one line a
world, with the hash of the code that measured it. A run measures what is missing, so that one that
was stopped goes on; `--seconds` ends it after the world that is under way. A table stands on its
page between two comments, and a line below it says from which worlds, seeds, code and commit it is.
`check` compares every table with its records, measures a random sample of the records again, and
says which tables are from other code than the present one. `try` prints the tables from worlds of
another family of seeds, by default the one for choosing constants; `--where` keeps the cells whose
fields have these values.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from records import Record, Table, code, finished, run

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures"
BENCHMARKS = (
    "calibration",
    "blocks",
    "effects",
    "knowledge",
    "never_wrong",
    "nonlinear",
    "robustness",
    "bent_sensors",
    "assembly_liars",
    "adaptive",
    "semireal",
)
# What differs between two runs of the same code.
UNSTABLE = ("seconds", "code", "commit")
Key = tuple[str, str, int]


def key(record: Record) -> Key:
    """Cell, family of seeds and number of a world."""
    return json.dumps(record["cell"], sort_keys=True), record["seeds"], record["world"]


def path_of(name: str) -> Path:
    """The file with the records of a benchmark."""
    return FIGURES / f"{name}.jsonl"


def worlds_of(table: Table) -> dict[Key, tuple[Any, str, int]]:
    """The worlds of a table, each with what `measure` takes."""
    return {
        (json.dumps(asdict(cell), sort_keys=True), table.seeds, number): (cell, table.seeds, number)
        for cell, worlds in table.tasks
        for number in range(worlds)
    }


def wanted(module: ModuleType) -> dict[Key, tuple[Any, str, int]]:
    """The worlds of all tables of a benchmark."""
    return {k: task for table in module.PUBLISHED for k, task in worlds_of(table).items()}


def kept(name: str) -> dict[Key, Record]:
    """The records of a benchmark; of two for the same world the later one."""
    return {key(r): r for r in finished(path_of(name))}


def runs_here(name: str) -> bool:
    """Is all installed that a benchmark needs?"""
    needed = getattr(importlib.import_module(name), "NEEDS", None)
    if needed is None or importlib.util.find_spec(needed):
        return True
    print(f"{name} is left out: {needed} is not installed")
    return False


def measure_missing(name: str, jobs: int, seconds: float) -> None:
    """Measure the worlds of a benchmark that this code has not measured."""
    module = importlib.import_module(name)
    for family in dict.fromkeys(table.seeds for table in module.PUBLISHED):
        tasks = [t for table in module.PUBLISHED if table.seeds == family for t in table.tasks]
        most = {cell: max(n for c, n in tasks if c == cell) for cell, _ in tasks}
        run(module.Cell, module.run_world, most.items(), family, jobs, path_of(name), seconds)
    # Worlds that no table has any more go, and so does what other code measured before.
    found, asked = kept(name), wanted(module)
    lines = [json.dumps(found[k]) for k in asked if k in found]
    path_of(name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def below(table: Table, records: list[Record], module: ModuleType) -> str:
    """The line below a table: worlds, seeds, code, commit."""
    first = f"{module.SEEDS[table.seeds]:,}"
    asked = sum(worlds for _, worlds in table.tasks)
    number = f"{len(records):,}" + (f" of {asked:,}" if len(records) < asked else "")
    codes = sorted({r["code"] for r in records})
    commits = sorted({r["commit"] for r in records})
    return (
        f"*{number} worlds, seeds from {first} (`{table.seeds}`); commit "
        f"{', '.join(commits)}; code {', '.join(codes)}.*"
    )


def made(name: str) -> Iterator[tuple[Table, str]]:
    """The tables of a benchmark with their text, as far as there are records."""
    module, records = importlib.import_module(name), kept(name)
    for table in module.PUBLISHED:
        own = [records[k] for k in worlds_of(table) if k in records]
        if own:
            yield table, f"{table.show(own)}\n\n{below(table, own, module)}"


def place(name: str) -> re.Pattern[str]:
    """Where a table stands on a page."""
    return re.compile(rf"(<!-- table {re.escape(name)} -->\n).*?(\n<!-- end -->)", re.S)


def write(name: str) -> None:
    """Put the tables of a benchmark on their pages, and what else it makes beside them."""
    for table, text in made(name):
        page = ROOT / table.page
        old = page.read_text(encoding="utf-8")
        new, count = place(table.name).subn(lambda m, t=text: f"{m[1]}{t}{m[2]}", old)  # type: ignore[misc]
        if count != 1:
            sys.exit(f"{table.page} has {count} places for the table {table.name}")
        page.write_text(new, encoding="utf-8")
    module = importlib.import_module(name)
    if hasattr(module, "write_more") and path_of(name).exists():
        module.write_more(list(kept(name).values()), ROOT)


def same(one: Any, other: Any) -> bool:
    """Equal, numbers up to rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = {*one, *other} - set(UNSTABLE)
        return all(x in one and x in other and same(one[x], other[x]) for x in names)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) or isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
    return bool(one == other)


def check(names: list[str], sample: int, seed: int) -> list[str]:
    """What is wrong: pages that differ from their records, and records from the code."""
    wrong, all_records = [], []
    for name in names:
        for table, text in made(name):
            found = place(table.name).search((ROOT / table.page).read_text(encoding="utf-8"))
            if found is None or found[0] != f"{found[1]}{text}{found[2]}":
                wrong.append(f"{table.page}: the table {table.name} is not that of its records")
        module, records = importlib.import_module(name), kept(name)
        tasks = wanted(module)
        old = sum(r["code"] != code() for r in records.values())
        if old or len(records) < len(tasks):
            print(f"{name}: {len(records) - old} of {len(tasks)} worlds are measured by this code")
        if sample and runs_here(name):
            all_records += [(name, tasks[k], r) for k, r in records.items() if k in tasks]
    drawn = np.random.default_rng(seed).permutation(len(all_records))[:sample]
    for i in drawn.tolist():
        name, task, record = all_records[i]
        again = json.loads(json.dumps(importlib.import_module(name).run_world(*task)))
        if not same(again, record):
            wrong.append(f"{name}: {task} gives other figures than the page's")
    print(f"{len(drawn)} of {len(all_records)} worlds measured again")
    return wrong


def show_others(name: str, given: argparse.Namespace) -> None:
    """Print the tables of a benchmark from worlds that no page shows; `build` keeps the records."""
    module, wanted_values = importlib.import_module(name), [x.split("=", 1) for x in given.where]
    family = given.seeds or next(iter(module.SEEDS))
    for table in module.PUBLISHED:
        cells = [cell for cell, _ in table.tasks]
        for field, value in wanted_values:
            cells = [cell for cell in cells if str(getattr(cell, field)) == value]
        tasks, out = [(cell, given.worlds) for cell in cells], ROOT / "build" / f"{name}.jsonl"
        records = run(module.Cell, module.run_world, tasks, family, given.jobs, out, given.seconds)
        if records:
            print(f"{table.name}\n\n{table.show(records)}\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("run", "write", "check", "try"))
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=math.inf, help="for each benchmark")
    parser.add_argument("--sample", type=int, default=10)
    parser.add_argument("--seed", type=int, default=date.today().toordinal(), help="of the sample")
    parser.add_argument("--seeds", help="of try: the family of seeds")
    parser.add_argument("--worlds", type=int, default=2, help="of try, for each cell")
    parser.add_argument("--where", nargs="+", default=[], metavar="FIELD=VALUE", help="of try")
    given = parser.parse_args()
    if given.what == "check":
        sys.exit("\n".join(check(given.only, given.sample, given.seed)) or 0)
    for name in given.only:
        if given.what == "try":
            show_others(name, given)
            continue
        if given.what == "run" and runs_here(name):
            measure_missing(name, given.jobs, given.seconds)
        write(name)


if __name__ == "__main__":
    main()
