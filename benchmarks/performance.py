"""The table of a run of `test_performance.py`, as Markdown.

    python benchmarks/performance.py build/performance.json > build/performance.md

Every row says whether the ratio is within its limit.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]

HEAD = """\
| what / peer | case | BLAS threads | ours | peer | ratio | at most | |
|---|---|---|---|---|---|---|---|"""


def slopes(rows: list[Row]) -> Iterator[Row]:
    """Log-log slope of one client's time against p_k³, from 50 to the largest size."""
    points = defaultdict(list)
    for r in rows:
        if r.get("size", 0) >= 50:
            points[r["kind"], r["threads"]].append((np.log(r["size"] ** 3), np.log(r["ours"])))
    for (kind, threads), found in points.items():
        if len(found) > 1:
            sizes, times = np.transpose(found)
            slope = float(np.polyfit(sizes, times, 1)[0])
            yield {
                "what": "growth with p_k³ (log-log slope)", "case": kind, "threads": threads,
                "ours": slope, "peer": 1.0, "ratio": slope, "limit": 1.3,
            }  # fmt: skip


def line(r: Row) -> str:
    case = "; ".join(filter(None, (r["case"], r.get("note"))))
    met = "met" if r["ratio"] <= r["limit"] else "**missed**"
    return (
        f"| {r['what']} | {case} | {r['threads']} | {r['ours']:.4g} | {r['peer']:.4g} "
        f"| {r['ratio']:.3g} | {r['limit']:.3g} | {met} |"
    )


def markdown(run: Row) -> str:
    machine, rows = run["machine_info"], [b["extra_info"] for b in run["benchmarks"]]
    cpu = machine["cpu"]
    head = (
        f"{cpu['count']} cores, {cpu.get('brand_raw', 'unknown CPU')}; Python "
        f"{machine['python_version']}, numpy {machine['numpy']}, {', '.join(machine['blas'])}. "
        f"Minimum seconds of each by `{machine['clock']}`; processes by wall-clock time."
    )
    return "\n".join([head, "", HEAD, *map(line, [*rows, *slopes(rows)])])


if __name__ == "__main__":
    print(markdown(json.loads(Path(sys.argv[1]).read_text())))
