"""A federation of thousands of sites and labels: fragments generated, not recovered, and assembled.

    python benchmarks/federation.py                     # 10⁴ sites with 50 of 10⁴ labels each
    python benchmarks/federation.py --sites 600 --labels 4500      # a smaller one
    python benchmarks/federation.py --workers 2         # on one process, then on a cluster

A graph over the labels is drawn, and every site gets labels at random. A site's log Bayes factor of
a pair is normal with variance v and mean v/2 or −v/2, as the truth is, which makes it as sure as it
is right; v is drawn for every pair of a site. Some effects are invisible: they look like none. A
few sites are wrong about everything: they call ancestors descendants.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import sys
import tempfile
import threading
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import jigsaw_crl as jc
from jigsaw_crl.assembly import panel
from jigsaw_crl.base.bitsets import greedy_order
from jigsaw_crl.base.errors import import_optional
from jigsaw_crl.fragment.fragment import BayesFactors, Fragment
from jigsaw_crl.fragment.packed import pack

# Variance of log factors: exponential with this mean.
SURE = 12.0
# Share of effects that look like none, and of labels that show a single direction at a site.
INVISIBLE = 0.05


def world(labels: int, degree: float, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Ancestors in a random graph: `degree` children per label, before the last ones."""
    count = rng.poisson(degree * labels / 2)
    a, d = np.sort(rng.integers(0, labels, (2, count)), axis=0)
    weight = np.zeros((labels, labels), dtype=np.float32)
    weight[a[a < d], d[a < d]] = 1.0
    order = greedy_order(weight)
    shuffle = rng.permutation(labels)
    return np.asarray(order[np.ix_(shuffle, shuffle)])


def site(
    name: str, members: npt.NDArray[Any], order: npt.NDArray[np.bool_], rng: np.random.Generator
) -> Fragment:
    """The fragment of a site that says what it would, given what is true."""
    p = len(members)
    inside = order[np.ix_(members, members)]
    seen = inside & (rng.random((p, p)) >= INVISIBLE)
    v = rng.exponential(SURE, (p, p))

    def factor(true: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        return np.where(true, v / 2, -v / 2) + np.sqrt(v) * rng.standard_normal((p, p))

    x = factor(seen)
    np.fill_diagonal(x, np.nan)
    apart = np.triu(factor(np.zeros((p, p), dtype=bool)), 1)
    labels = tuple(f"g{i:05d}" for i in members)
    blocks = tuple(frozenset([label]) for label in labels)
    return Fragment(
        name,
        "null-cone",
        labels,
        blocks,
        jc.PartialOrder.from_matrix(blocks, inside),
        blocks,
        bayes=BayesFactors((0.5, 0.08), np.stack([x, x]), apart + apart.T),
        n_samples={"control": 5000},
    )


def write_sites(given: argparse.Namespace, folder: Path) -> npt.NDArray[np.bool_]:
    """Write the fragments, packed; returns who is an ancestor of whom."""
    rng = np.random.default_rng(given.seed)
    order = world(given.labels, given.degree, rng)
    wrong = rng.random(given.sites) < given.wrong
    for k in range(given.sites):
        members = np.sort(rng.choice(given.labels, given.size, replace=False))
        name = f"{'wrong' if wrong[k] else 'site'}-{k:05d}"
        piece = site(name, members, order.T if wrong[k] else order, rng)
        (folder / f"{name}.bin").write_bytes(pack(piece))
        if k % 1000 == 999:
            say(f"{k + 1} fragments")
    return order


class Clock:
    """Seconds, seconds of computing and the largest memory since the last step."""

    def __init__(self) -> None:
        self.start, self.worked = time.perf_counter(), time.process_time()
        self.peak, self.done = 0, False
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self.done:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            self.peak = max(self.peak, pages * resource.getpagesize())
            time.sleep(0.05)

    def step(self) -> dict[str, float]:
        found = {
            "seconds": time.perf_counter() - self.start,
            "computing": time.process_time() - self.worked,
            "gigabytes": self.peak / 1e9,
        }
        self.start, self.worked, self.peak = time.perf_counter(), time.process_time(), 0
        return found


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def scores(order: jc.GlobalOrder, true: npt.NDArray[np.bool_]) -> dict[str, float]:
    """How many verdicts there are, and how many of them are wrong."""
    at = np.array([int(label[1:]) for label in order.labels])
    truth = true[np.ix_(at, at)]
    off = ~np.eye(len(at), dtype=bool)
    yes, no = (order.verdicts == 1) & off, (order.verdicts == 0) & off
    return {
        "true pairs": int(truth.sum()),
        "yes": int(yes.sum()),
        "wrong yes": int((yes & ~truth).sum()),
        "no": int(no.sum()),
        "wrong no": int((no & truth).sum()),
        "undetermined": int(off.sum() - yes.sum() - no.sum()),
    }


def seconds_and_memory() -> tuple[float, float]:
    """Seconds of computing and the largest memory of this process, in GB."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return time.process_time(), used.ru_maxrss / 1e6


def digest(order: jc.GlobalOrder) -> str:
    """Equal for two orders with the same bits."""
    tables = (order.verdicts, order.probabilities, order.evidence)
    weights = np.array(list(order.client_weights.values()))
    return sha256(b"".join(x.tobytes() for x in (*tables, weights))).hexdigest()


def on_cluster(folder: Path, workers: int) -> dict[str, Any]:
    """Assemble on a Dask cluster of processes."""
    dask = import_optional("distributed", "Dask", "cluster")
    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    with dask.SubprocessCluster(**options) as cluster, dask.Client(cluster) as client:
        clock = Clock()
        order = jc.assemble(folder, cluster=client)
        row: dict[str, Any] = dict(clock.step())
        clock.done = True
        each = client.run(seconds_and_memory).values()
    row["computing of workers"] = sum(seconds for seconds, _ in each)
    row["gigabytes of a worker"] = max(memory for _, memory in each)
    return row | {"digest": digest(order)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sites", type=int, default=10_000)
    parser.add_argument("--labels", type=int, default=10_000)
    parser.add_argument("--size", type=int, default=50, help="labels of a site")
    parser.add_argument("--degree", type=float, default=5.0, help="children per label, early ones")
    parser.add_argument("--wrong", type=float, default=0.02, help="share of sites that are wrong")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--out", type=Path, help="keep the fragments in this folder, or take those that are there"
    )
    parser.add_argument("--workers", type=int, default=0, help="of a Dask cluster")
    parser.add_argument("--limit", type=int, help="labels up to which orders are sampled")
    given = parser.parse_args()
    if given.limit is not None:
        panel.MOST_SAMPLED = given.limit
    folder = Path(tempfile.mkdtemp()) if given.out is None else given.out
    folder.mkdir(parents=True, exist_ok=True)
    try:
        clock = Clock()
        rows: dict[str, Any] = {"arguments": vars(given)}
        truth = folder / "truth.npy"
        if not truth.exists():
            np.save(truth, np.packbits(write_sites(given, folder), axis=1))
            rows["writing"] = clock.step()
        true = np.unpackbits(np.load(truth), axis=1, count=given.labels).astype(bool)
        rows["bytes"] = sum(path.stat().st_size for path in folder.glob("*.bin"))
        clock.step()
        order = jc.assemble(folder)
        rows["assembling"] = clock.step()
        rows |= scores(order, true)
        weights = order.client_weights
        rows["mean weight of honest sites"] = np.mean(
            [w for n, w in weights.items() if n[0] == "s"]
        )
        bad = [w for n, w in weights.items() if n[0] == "w"]
        rows["mean weight of wrong sites"] = np.mean(bad) if bad else None
        rows["notes"] = [note[:200] for note in order.notes]
        rows["digest"] = digest(order)
        del order
        if given.workers:
            rows["on a cluster"] = on_cluster(folder, given.workers)
        say(json.dumps(rows, indent=1, default=str))
        clock.done = True
    finally:
        if given.out is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
