"""How fast, as ratios to what any method must do, measured side by side in one run.

    python benchmarks/performance.py                      everything, one and two BLAS threads
    python benchmarks/performance.py client --sizes 25 50  one part, fewer sizes
    python benchmarks/performance.py --json out.json --markdown out.md

Every ratio is the least of several times of ours over the least of several times of the peer, taken
in turns, so that a busy machine slows both. On a machine that others use at the same time,
`--clock cpu` counts processor seconds instead: a short peer fits between two interruptions, a long
run of ours never does. Comparisons of processes and of memory are not affected.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import numpy as np
from threadpoolctl import threadpool_limits

import jigsaw_crl as jc


@dataclass(frozen=True)
class Row:
    """One comparison; `limit` is what the ratio must not exceed."""

    part: str
    case: str
    threads: int
    ours: float
    peer: float
    ratio: float
    limit: float
    note: str = ""


CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
clock = time.perf_counter


def turns(ours: Callable[[], object], peer: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Least seconds of both, taken in turns."""
    best = [np.inf, np.inf]
    for _ in range(repeats):
        for k, work in enumerate((ours, peer)):
            start = clock()
            work()
            best[k] = min(best[k], clock() - start)
    return best[0], best[1]


def row(part: str, case: str, threads: int, times: tuple[float, float], limit: float, note: str = "") -> Row:
    return Row(part, case, threads, *times, times[0] / times[1], limit, note)


# -- one client from moments ------------------------------------------------------------------------


def one_client(p: int, n: int | None = 10_000, seed: int = 0) -> jc.Client:
    """A client with p labels and p features of a world as in the paper's sensitivity study.

    Estimated moments are drawn from their Wishart law, which is that of n Gaussian rows.
    """
    rng = np.random.default_rng([seed, p])
    latents = round(p / 0.6)
    edges = np.triu(rng.random((latents, latents)) < 3 / latents, 1)
    seen = sorted(rng.choice(latents, p, replace=False).tolist())
    weights = edges * rng.uniform(-1, 1, edges.shape)
    exact = jc.simulate.world_from_graph(weights.T, [seen], [p], seed=seed).client(0)
    if n is None:
        return exact

    def draw(covariance: np.ndarray) -> np.ndarray:
        root = np.tril(rng.normal(size=(p, p)), -1)
        root[np.diag_indices(p)] = np.sqrt(rng.chisquare(n - 1 - np.arange(p)))
        root = np.linalg.cholesky(covariance) @ root
        return root @ root.T / n

    return jc.Client.from_covariances(
        exact.name,
        observational=draw(exact.control.covariance),
        interventions={x: draw(m[0].covariance) for x, m in exact.interventions.items()},
        n_samples=n,
    )


def client(args: argparse.Namespace) -> Iterator[Row]:
    """`recover_fragment`, checks included, against one `eigh` of each regime's matrix."""
    for p in args.sizes:
        for n in (10_000, None):
            one = one_client(p, n)
            stack = [m.covariance for ms in one.interventions.values() for m in ms]
            stack = [one.control.covariance, *stack]
            for threads in args.threads:
                with threadpool_limits(threads):
                    times = turns(
                        lambda: jc.recover_fragment(one),
                        lambda: [np.linalg.eigh(s) for s in stack],
                        9 if p <= 100 else 2,
                    )
                case = f"p_k = {p}, {'exact' if n is None else f'n = {n:,}'}"
                yield row("one client / eigh of each regime", case, threads, times, 1.0 if p >= 400 else 3.0)


def slopes(rows: list[Row]) -> Iterator[Row]:
    """Log-log slope of the time against p_k³, from 50 to the largest size."""
    groups: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for r in rows:
        if r.part.startswith("one client /"):
            p = int(r.case.split(",")[0].split("=")[1])
            if p >= 50:
                groups.setdefault((r.case.split(", ", 1)[1], r.threads), []).append((p, r.ours))
    for (kind, threads), points in groups.items():
        if len(points) > 1:
            size, seconds = np.log([p**3 for p, _ in points]), np.log([t for _, t in points])
            slope = float(np.polyfit(size, seconds, 1)[0])
            yield Row("growth with p_k³ (log-log slope)", kind, threads, slope, 1.0, slope, 1.3)


# -- raw samples ------------------------------------------------------------------------------------


def samples(args: argparse.Namespace) -> Iterator[Row]:
    """Rows of 24 latents, 36 features, 15 clients to the order, against `XᵀX` of every regime."""
    rng = np.random.default_rng(1)
    latents, features, clients = 24, 36, args.clients
    weights = np.triu(rng.random((latents, latents)) < 3 / latents, 1)
    weights = weights * rng.uniform(-1, 1, weights.shape)
    sets = [np.flatnonzero(rng.random(latents) < 0.6).tolist() for _ in range(clients)]
    world = jc.simulate.world_from_graph(weights.T, sets, [features] * clients, seed=1)
    spent = {t: [0.0, 0.0] for t in args.threads}
    views: dict[int, list[jc.Client]] = {t: [] for t in args.threads}
    for k in range(clients):
        exact = world.client(k)

        def rows(covariance: np.ndarray) -> np.ndarray:
            values, vectors = np.linalg.eigh(covariance)
            root = vectors * np.sqrt(np.maximum(values, 0))
            keep = values > 1e-9 * values[-1]
            return rng.normal(size=(args.rows, int(keep.sum()))) @ root[:, keep].T

        control = rows(exact.control.covariance)
        regimes = {x: rows(m[0].covariance) for x, m in exact.interventions.items()}
        for t in args.threads:
            with threadpool_limits(t):
                best = turns(
                    lambda: views[t].append(
                        jc.Client.from_samples(exact.name, observational=control, interventions=regimes)
                    ),
                    lambda: [x.T @ x for x in (control, *regimes.values())],
                    2,
                )
            spent[t][0] += best[0]
            spent[t][1] += best[1]
    for t in args.threads:
        given = views[t][::2]
        with threadpool_limits(t):
            order, _ = turns(lambda: jc.recover(given), lambda: None, 2)
        times = (spent[t][0] + order, spent[t][1])
        alone = spent[t][0] / spent[t][1]
        note = f"moments {spent[t][0]:.2f} s ({alone:.2f} alone), recovery and assembly {order:.2f} s"
        case = f"{args.rows:,} rows a regime, {clients} clients"
        yield row("raw samples to order / XᵀX", case, t, times, 1.5, note)


# -- exact moments against the paper's search --------------------------------------------------------


# Label sets the published enumeration may look at for one client: some minutes. A client whose
# search does not end is left out on both sides, and the note says so.
PUBLISHED_LOOKS = 10**7


def population(args: argparse.Namespace) -> Iterator[Row]:
    """Exact moments, against the paper's method with a budget that lets its search end.

    Two peers: the published enumeration of label sets, and the faster search for the same blocks
    that `method="paper"` uses. All without the checks of the client, which are the same.
    """
    from jigsaw_crl import baseline, nullcone

    def ours(client: jc.Client) -> jc.Fragment:
        return nullcone.recover_fragment(client)

    def published(client: jc.Client) -> jc.Fragment:
        return baseline.recover_fragment(client, budget=PUBLISHED_LOOKS, search="published")

    def fast(client: jc.Client) -> jc.Fragment:
        return baseline.recover_fragment(client, budget=10**9)

    for p, faster in ((10, 2), (20, 5), (30, 20), (40, 100)):
        world = jc.simulate.random_world(p, 15, 0.6, 11)
        views, truths = world.clients(), [world.truth(k) for k in range(15)]
        for peer in (published, fast):
            with threadpool_limits(1):
                start = clock()
                found = [(ours(c), peer(c)) for c in views]
                repeats = 3 if clock() - start < 60 else 1
                ended = [k for k, (_, other) in enumerate(found) if other.outcome.code != "budget"]
                times = turns(
                    lambda: [ours(views[k]) for k in ended],
                    lambda: [peer(views[k]) for k in ended],
                    repeats,
                )
            exact = [
                sum(
                    found[k][which].outcome.ok
                    and set(found[k][which].blocks) == set(truths[k].blocks)
                    and found[k][which].block_order == truths[k].block_order
                    for k in ended
                )
                for which in (0, 1)
            ]
            note = f"exact {exact[0]} of {len(ended)} (paper {exact[1]})"
            if len(ended) < len(views):
                note += f"; the search of {len(views) - len(ended)} clients did not end, left out"
            part = f"exact moments / the paper's search, {peer.__name__}"
            yield row(part, f"p = {p}", 1, times, 1 / faster, note)


# -- assembly ---------------------------------------------------------------------------------------


def assembly(args: argparse.Namespace) -> Iterator[Row]:
    """1,000 clients of 50 labels out of 1,000, against reading their fragments."""
    from assembly_corruption import flipped, weighed

    from jigsaw_crl.simulate.perfect import perfect_fragment

    rng = np.random.default_rng(0)
    labels = clients = args.labels
    present = np.triu(rng.random((labels, labels)) < 3 / labels, 1)
    sets = [sorted(rng.choice(labels, size=50, replace=False).tolist()) for _ in range(clients)]
    world = jc.simulate.world_from_graph(present.T, sets, [50] * clients, seed=0)
    exact = [perfect_fragment(world.truth(k)) for k in range(clients)]
    kinds = {"exact": exact, "evidence": [weighed(flipped(f, 0.02, rng), 0.02) for f in exact]}
    for kind, fragments in kinds.items():
        texts = [f.to_json() for f in fragments]
        with threadpool_limits(1):
            times = turns(
                lambda: jc.assemble(fragments), lambda: [jc.Fragment.from_json(x) for x in texts], 2
            )
        size = f"{sum(map(len, texts)) / 1e6:.0f} MB of JSON"
        yield row("assembly / reading the fragments", f"{labels} labels, {kind}", 1, times, 10.0, size)


# -- processes --------------------------------------------------------------------------------------


def starting(args: argparse.Namespace) -> Iterator[Row]:
    """Import and `--help`, as processes of their own, by the clock on the wall."""
    global clock
    clock = time.perf_counter

    def process(*command: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)

    times = turns(process("-c", "import jigsaw_crl"), process("-c", "import numpy, scipy.linalg"), 10)
    yield row("import jigsaw_crl / import numpy, scipy.linalg", "names load on use", 1, times, 2.0)
    used = process("-c", "import jigsaw_crl as jc; jc.recover, jc.assemble, jc.Client")
    times = turns(used, process("-c", "import numpy, scipy.linalg"), 10)
    yield row("import jigsaw_crl / import numpy, scipy.linalg", "with recover and assemble", 1, times, 2.0)
    script = os.path.join(os.path.dirname(sys.executable), "jigsaw")
    times = turns(process(script, "--help"), process("-c", "pass"), 20)
    yield row("jigsaw --help / python -c pass", "", 1, times, 8.0)
    clock = CLOCKS[args.clock]


def memory(args: argparse.Namespace) -> Iterator[Row]:
    """Peak memory of a process that holds one client and recovers it, less that of an idle one."""
    p = args.sizes[-1]
    code = f"import performance as b; b.measure_memory({p})"
    out = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True,
        cwd=os.path.dirname(os.path.abspath(__file__)),
    ).stdout
    peak, given = (float(x) for x in out.split())
    yield row("peak memory of one client / its moments (MB)", f"p_k = {p}", 1, (peak, given), 3.0)


def measure_memory(p: int) -> None:
    """Print the peak of recovery above an idle process, and the size of the moments, in MB."""

    def resident() -> float:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize() / 2**20

    jc.recover_fragment(one_client(24))
    idle = resident()
    # Matrices with one strong and one weak direction each: cheap to make one at a time, so that
    # making them does not set the peak.
    rng = np.random.default_rng(0)

    def regime() -> np.ndarray:
        u, v = np.linalg.qr(rng.normal(size=(p, 2)))[0].T
        return np.asarray(np.eye(p) + 3 * np.outer(u, u) - 0.7 * np.outer(v, v))

    control = jc.Moments(10_000, np.zeros(p), np.eye(p))
    regimes = {f"x{j}": jc.Moments(10_000, np.zeros(p), regime()) for j in range(p)}
    one = jc.Client.from_moments("one", control=control, interventions=regimes)
    jc.recover_fragment(one)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(peak - idle, (p + 1) * p * p * 8 / 2**20)


PARTS = {f.__name__: f for f in (samples, client, population, assembly, starting, memory)}


def markdown(rows: list[Row]) -> str:
    lines = ["| what / peer | case | BLAS threads | ours | peer | ratio | at most | |", "|---|---|---|---|---|---|---|---|"]
    for r in rows:
        met = "met" if r.ratio <= r.limit else "**missed**"
        lines.append(
            f"| {r.part} | {r.case}{'; ' + r.note if r.note else ''} | {r.threads} | {r.ours:.4g} | {r.peer:.4g} "
            f"| {r.ratio:.3g} | {r.limit:.3g} | {met} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--sizes", type=int, nargs="+", default=[25, 50, 100, 200, 400])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=15)
    parser.add_argument("--labels", type=int, default=1_000)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--json")
    parser.add_argument("--markdown")
    args = parser.parse_args()
    global clock
    clock = CLOCKS[args.clock]
    unknown = set(args.parts) - set(PARTS)
    if unknown:
        parser.error(f"no part named {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    rows: list[Row] = []
    for name in args.parts or PARTS:
        for r in PARTS[name](args):
            rows.append(r)
            print(f"{r.part}; {r.case}; {r.threads} threads: {r.ratio:.3g} (at most {r.limit:.3g}) {r.note}", flush=True)
    rows += slopes(rows)
    table = markdown(rows)
    print(table)
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version(), "numpy": np.__version__}
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"machine": machine, "rows": [asdict(r) for r in rows]}, file, indent=1)
    if args.markdown:
        with open(args.markdown, "w") as file:
            file.write(f"{machine['cores']} cores, Python {machine['python']}, numpy {machine['numpy']}\n\n{table}")


if __name__ == "__main__":
    main()
