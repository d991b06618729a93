"""Tables of many columns: memory, time, and whether the answer is that of all columns.

    python benchmarks/wide.py memory      3,000 columns × 21 regimes × 600 rows in memory
    python benchmarks/wide.py disk        20,000 columns × 101 regimes × 500 rows, a file of 8 GB
    python benchmarks/wide.py verdicts    studies of 300 columns, reduced against all columns

`memory` prints the peak above the rows, from rows to fragment, and the time from rows to client by
that of one product `XᵀΩ` with as many columns as the client has directions. `disk` writes the file
chunk by chunk and runs `jigsaw moments` and `jigsaw fragment` in processes of their own. Seeds of
`verdicts` from 1,000 on were not looked at when constants were chosen.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from reporting import header, mean_and_error, options, row

import jigsaw_crl as jc

# Standard deviation of a sensor's noise over that of its signal, and how unequal the sensors are.
NOISE, UNEQUAL = 0.5, 0.5


class WideWorld:
    """Rows of one client that sees `labels` latents through `columns` noisy sensors."""

    def __init__(self, columns: int, labels: int, n: int, seed: int = 0) -> None:
        world = jc.simulate.random_world(n_latent=labels, n_clients=1, coverage=1.0, seed=seed)
        control, regimes = world.rows(0, n)
        self.parts = {"control": control, **regimes}
        self.lens = Lens(control, columns, seed)

    def chunks(self) -> Iterator[tuple[str, np.ndarray]]:
        for regime, x in self.parts.items():
            yield regime, self.lens(x)


class Lens:
    """Makes few clean features many noisy ones."""

    def __init__(self, rows: np.ndarray, columns: int, seed: int) -> None:
        self.rng = np.random.default_rng([seed, columns])
        self.mixing = self.rng.normal(size=(rows.shape[1], columns)) / np.sqrt(rows.shape[1])
        typical = np.sqrt(np.mean((rows @ self.mixing).var(axis=0)))
        self.noise = NOISE * typical * np.exp(UNEQUAL * self.rng.normal(size=columns))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        x = rows @ self.mixing
        for part in np.array_split(x, max(len(x) // 256, 1)):
            part += self.rng.normal(size=part.shape) * self.noise
        return np.asarray(x)


# -- memory ----------------------------------------------------------------------------------------


def status(name: str) -> float:
    """A line of this process's memory, in GB."""
    with open("/proc/self/status") as file:
        return next(int(x.split()[1]) for x in file if x.startswith(name)) / 2**20


def rows_in_memory(columns: int, labels: int, n: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    world = WideWorld(columns, labels, n)
    x = np.empty((len(world.parts) * n, columns))
    for i, (_, rows) in enumerate(world.chunks()):
        x[i * n : (i + 1) * n] = rows
    return x, {regime: x[i * n : (i + 1) * n] for i, regime in enumerate(world.parts)}


def client_of(parts: dict[str, np.ndarray]) -> jc.Client:
    control, *labels = parts
    regimes = {label: parts[label] for label in labels}
    return jc.Client.from_samples("wide", observational=parts[control], interventions=regimes)


def memory(columns: int, labels: int, n: int) -> dict[str, float]:
    """Peak memory above the rows, and times."""
    jc.recover_fragment(client_of(rows_in_memory(600, 4, 600)[1]))  # loads and compiles
    x, parts = rows_in_memory(columns, labels, n)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak starts anew
    before = status("VmRSS")
    client = client_of(parts)
    fragment = jc.recover_fragment(client)
    above = status("VmHWM") - before
    rng = np.random.default_rng(0)
    omega = rng.normal(size=(len(x), client.n_features))
    ours, peer = [], []
    for _ in range(7):
        start = time.process_time()
        x.T @ omega
        peer.append(time.process_time() - start)
        start = time.process_time()
        client_of(parts)
        ours.append(time.process_time() - start)
    return {
        "rows, GB": x.nbytes / 2**30,
        "peak above the rows, GB": above,
        "directions": client.n_features,
        "one product, s": min(peer),
        "rows to client, s": min(ours),
        "ratio": min(ours) / min(peer),
        "blocks found": len(fragment.blocks),
    }


# -- disk ------------------------------------------------------------------------------------------


def write_archive(path: Path, columns: int, labels: int, n: int) -> None:
    """Write a NumPy archive chunk by chunk."""
    world = WideWorld(columns, labels, n)
    shape = (len(world.parts) * n, columns)
    about = {"descr": "<f8", "fortran_order": False, "shape": shape}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        with archive.open("X.npy", "w", force_zip64=True) as file:
            npy.write_array_header_1_0(file, about)
            for _, rows in world.chunks():
                file.write(np.ascontiguousarray(rows).data.cast("B"))
        with archive.open("regime.npy", "w") as file:
            npy.write_array(file, np.repeat(list(world.parts), n))


def measured(*command: str) -> tuple[float, float, float]:
    """Seconds on the clock, processor seconds and peak memory (GB) of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, code, usage = os.wait4(process.pid, 0)
    if code:
        raise SystemExit(f"{' '.join(command)} ended with {code}")
    seconds = time.perf_counter() - start
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20


def disk(columns: int, labels: int, n: int, folder: str) -> None:
    header("command", "clock, s", "processor, s", "peak, GB")
    with tempfile.TemporaryDirectory(dir=folder or None) as place:
        table, moments = Path(place) / "wide.npz", Path(place) / "wide.moments.npz"
        write_archive(table, columns, labels, n)
        jigsaw = (sys.executable, "-c", "from jigsaw_crl.cli import main; main()")
        for name, command in (
            ("moments", ("moments", str(table), "-o", str(moments))),
            ("fragment of the moments", ("fragment", str(moments), "-o", f"{place}/a.json")),
            ("fragment of the table", ("fragment", str(table), "-o", f"{place}/b.json")),
        ):
            row(name, *measured(*jigsaw, *command))
        size = table.stat().st_size / 2**30
        print(f"table {size:.2f} GB, moments file {moments.stat().st_size / 2**20:.0f} MB")


# -- verdicts --------------------------------------------------------------------------------------


def verdicts(columns: int, latents: int, clients: int, n: int, first: int, worlds: int) -> None:
    """Compare studies of reduced clients with those of all columns."""
    header("seed", "E1 all", "E1 reduced", "same verdict", "mean |Δp|", "largest |Δp|", "wrong")
    scores: list[tuple[float, ...]] = []
    for seed in range(first, first + worlds):
        world = jc.simulate.random_world(latents, clients, coverage=0.6, seed=seed)
        study: dict[bool, list[jc.Client]] = {False: [], True: []}
        for k in range(world.n_clients):
            control, regimes = world.rows(k, n)
            lens = Lens(control, columns, seed * 100 + k)
            observed, others = lens(control), {x: lens(rows) for x, rows in regimes.items()}
            for reduce, own in study.items():
                own.append(
                    jc.Client.from_samples(
                        f"site-{k}", observational=observed, interventions=others, reduce=reduce
                    )
                )
        orders = {reduce: jc.recover(own, seed=1).order for reduce, own in study.items()}
        pairs = [(a, d) for a in world.order.elements for d in world.order.elements if a != d]
        pairs = [p for p in pairs if set(p) <= set(orders[True].labels)]
        p, q = (np.array([o.probability(*pair) for pair in pairs]) for o in orders.values())
        same = np.mean([orders[True].verdict(*x) is orders[False].verdict(*x) for x in pairs])
        scores.append(tuple(jc.metrics.global_f1(world.order, o) for o in orders.values()))
        counts = [jc.metrics.verdict_counts(world.order, o, o.labels) for o in orders.values()]
        wrong = " / ".join(f"{c.wrong_yes} yes, {c.wrong_no} no" for c in counts)
        away = np.abs(p - q)
        row(seed, *scores[-1], float(same), float(away.mean()), float(away.max()), wrong)
    full, reduced = np.array(scores).T
    print(f"E1 of all columns {mean_and_error(full)}, reduced {mean_and_error(reduced)}, ", end="")
    print(f"difference {mean_and_error(reduced - full)}")


def main() -> None:
    parser = options(__doc__, columns=0, labels=0, rows=0, clients=6, worlds=5, first=1000, tmp="")
    parser.add_argument("what", choices=["memory", "disk", "verdicts"])
    given = parser.parse_args()
    usual = {"memory": (3000, 20, 600), "disk": (20_000, 100, 500), "verdicts": (300, 10, 1000)}
    own = (given.columns, given.labels, given.rows)
    columns, labels, n = (a or b for a, b in zip(own, usual[given.what], strict=True))
    if given.what == "memory":
        print(json.dumps(memory(columns, labels, n), indent=1))
    elif given.what == "disk":
        disk(columns, labels, n, given.tmp)
    else:
        verdicts(columns, labels, given.clients, n, given.first, given.worlds)


if __name__ == "__main__":
    main()
