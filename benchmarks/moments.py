"""Peak memory and time of `jigsaw moments` on a large Parquet client.

The time is compared with that of reading the same file and forming one `XᵀX` per chunk, the minimum
of work that any method does. Both run in processes of their own, in turns.

    python benchmarks/moments.py --gigabytes 4 --features 50 --repeats 3
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from reporting import options

from jigsaw_crl.study.table import chunk_rows

MEMORY_LIMIT_MB, TIME_LIMIT = 400, 2.0

READ_AND_MULTIPLY = """
import sys
import numpy as np
import pyarrow.parquet as pq
total = 0.0
with pq.ParquetFile(sys.argv[1], pre_buffer=False, buffer_size=1 << 16) as file:
    names = [n for n in file.schema_arrow.names if n != "regime"]
    total = np.zeros((len(names), len(names)))
    for batch in file.iter_batches(int(sys.argv[2]), columns=["regime", *names]):
        x = np.column_stack([batch.column(n).to_numpy() for n in names])
        total += x.T @ x
"""


def write_client(path: Path, gigabytes: float, d: int, labels: int, shuffled: bool) -> int:
    """Write a Parquet file of the given size and return its number of rows."""
    rows = int(gigabytes * 1e9 / (8 * d))
    rng = np.random.default_rng(0)
    names = np.array(["control", *(f"label-{i}" for i in range(labels))])
    schema = pa.schema([("regime", pa.string()), *((f"x{i}", pa.float64()) for i in range(d))])
    step = 200_000
    with pq.ParquetWriter(path, schema, use_dictionary=["regime"]) as writer:
        for start in range(0, rows, step):
            n = min(step, rows - start)
            codes = (
                rng.integers(0, len(names), n)
                if shuffled
                else (np.arange(start, start + n) * len(names)) // rows
            )
            x = rng.standard_normal((d, n)) * (1 + 0.05 * codes)
            columns = [pa.array(names[codes].tolist()), *(pa.array(row) for row in x)]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=step)
    return rows


def measured(command: list[str]) -> tuple[float, float]:
    """Seconds and peak megabytes of a command, in a process that only waits for it."""
    code = (
        "import json, resource, subprocess, sys, time\n"
        "start = time.perf_counter()\n"
        "subprocess.run(json.loads(sys.argv[1]), check=True, stdout=subprocess.DEVNULL)\n"
        "seconds = time.perf_counter() - start\n"
        "peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024\n"
        "print(json.dumps([seconds, peak]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(command)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    seconds, peak = json.loads(done.stdout)
    return float(seconds), float(peak)


def main() -> None:
    parser = options(__doc__, gigabytes=1.0, features=50, labels=20, repeats=3)
    parser.add_argument("--shuffled", action="store_true", help="rows of all regimes mixed")
    parser.add_argument("--folder", type=Path, default=None, help="where to put the file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        path, out = Path(folder) / "lab-1.parquet", Path(folder) / "lab-1.moments.npz"
        start = time.perf_counter()
        rows = write_client(path, given.gigabytes, given.features, given.labels, given.shuffled)
        size = path.stat().st_size / 1e9
        print(f"{size:.2f} GB, {rows} rows written in {time.perf_counter() - start:.0f} s")
        jigsaw = [sys.executable, "-c", "from jigsaw_crl.cli import main; main()"]
        ours = [*jigsaw, "moments", str(path), "-o", str(out)]
        chunk = str(chunk_rows(given.features))
        least = [sys.executable, "-c", READ_AND_MULTIPLY, str(path), chunk]
        if size < 2:
            path.read_bytes()  # small enough for the page cache: then both start from a warm one
        best = {"ours": (np.inf, 0.0), "least": (np.inf, 0.0)}
        for _ in range(given.repeats):
            for name, command in (("least", least), ("ours", ours)):
                seconds, peak = measured(command)
                print(f"  {name:5} {seconds:7.2f} s  {peak:6.0f} MB", flush=True)
                best[name] = (min(best[name][0], seconds), max(best[name][1], peak))
    ratio = best["ours"][0] / best["least"][0]
    print(f"peak memory {best['ours'][1]:.0f} MB (limit {MEMORY_LIMIT_MB})")
    print(f"time {ratio:.2f} times reading and one XᵀX per chunk (limit {TIME_LIMIT})")
    sys.exit(best["ours"][1] > MEMORY_LIMIT_MB or ratio > TIME_LIMIT)


if __name__ == "__main__":
    main()
