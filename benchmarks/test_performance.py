"""Speed, as ratios to what any method must do, measured side by side in one run.

    make bench                                        everything, one and two BLAS threads
    make bench BENCH="-k one_client --sizes 25,50"    one part, fewer sizes
    make bench BENCH="--benchmark-timer time.process_time"

Every ratio is the minimum of several times of ours over the minimum of several times of the peer,
taken in turns. On a machine that others use at the same time, count processor seconds, as in the
last line: interruptions hit a long run more often than a short one. Comparisons of processes and of
memory are not affected. A ratio above its limit does not fail; `performance.py` marks it in its
table. More options: `pytest benchmarks --help`, under "performance".
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from assembly_corruption import flipped, large_world, perfect, weighed
from pytest_benchmark.fixture import BenchmarkFixture
from wide import client_of, rows_in_memory

import jigsaw_crl as jc
from jigsaw_crl import baseline, nullcone
from jigsaw_crl.base.text import pluralise

Method = Callable[[jc.Client], jc.Fragment]
Measure = Callable[..., tuple[np.ndarray, np.ndarray]]
Record = Callable[..., None]

# -- one client from moments -----------------------------------------------------------------------


# A large client takes half a minute to make, so every number of threads uses the same.
@lru_cache(maxsize=1)
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


@pytest.mark.parametrize("n", [10_000, None], ids=["estimated", "exact"])
def test_one_client(size: int, n: int | None, in_turns: Measure, record: Record) -> None:
    """`recover_fragment`, checks included, against one `eigh` of each regime's matrix."""
    client = one_client(size, n)
    regimes = [m.covariance for ms in client.interventions.values() for m in ms]
    stack = [client.control.covariance, *regimes]
    pair = (lambda: jc.recover_fragment(client), lambda: [np.linalg.eigh(s) for s in stack])
    times = in_turns([pair], rounds=9 if size <= 100 else 3)
    kind = "exact" if n is None else f"n = {n:,}"
    limit = 1.0 if size >= 400 else 3.0
    case = f"p_k = {size}, {kind}"
    record("one client / eigh of each regime", case, *times, limit, size=size, kind=kind)


# -- raw samples -----------------------------------------------------------------------------------


def test_raw_samples(pytestconfig: pytest.Config, in_turns: Measure, record: Record) -> None:
    """Rows of 24 latents, 36 features, 15 clients to the order, against `XᵀX` of every regime."""
    n, clients = pytestconfig.getoption("rows"), pytestconfig.getoption("clients")
    rng = np.random.default_rng(1)
    latents, features = 24, 36
    edges = np.triu(rng.random((latents, latents)) < 3 / latents, 1)
    weights = edges * rng.uniform(-1, 1, edges.shape)
    sets = [np.flatnonzero(rng.random(latents) < 0.6).tolist() for _ in range(clients)]
    world = jc.simulate.world_from_graph(weights.T, sets, [features] * clients, seed=1)
    views = {}

    def rows(covariance: np.ndarray) -> np.ndarray:
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0))
        keep = values > 1e-9 * values[-1]
        return np.asarray(rng.normal(size=(n, int(keep.sum()))) @ root[:, keep].T)

    def moments(name: str, control: np.ndarray, regimes: dict[str, np.ndarray]) -> None:
        views[name] = jc.Client.from_samples(name, observational=control, interventions=regimes)

    def products(tables: list[np.ndarray]) -> list[np.ndarray]:
        return [x.T @ x for x in tables]

    def pairs() -> Iterator[tuple[Callable[[], object], ...]]:
        for exact in world.clients():
            control = rows(exact.control.covariance)
            regimes = {x: rows(m[0].covariance) for x, m in exact.interventions.items()}
            ours = partial(moments, exact.name, control, regimes)
            yield ours, partial(products, [control, *regimes.values()])
        yield lambda: jc.recover(list(views.values())), lambda: None

    ours, peer = in_turns(pairs(), rounds=3, count=clients + 1)
    alone = ours[:-1].sum()
    note = f"moments {alone:.2f} s ({alone / peer[:-1].sum():.2f} alone), "
    note += f"recovery and assembly {ours[-1]:.2f} s"
    case = f"{n:,} rows a regime, {clients} clients"
    # The peer computes no order; the limit holds with the time of ours included.
    record("raw samples to order / XᵀX", case, ours, peer[:-1], 1.5, note=note)


def test_wide_table(in_turns: Measure, record: Record) -> None:
    """Rows of 3,000 columns to a client, against one product with as many columns as directions."""
    x, parts = rows_in_memory(3000, 20, 600)
    omega = np.random.default_rng(0).normal(size=(len(x), client_of(parts).n_features))
    times = in_turns([(lambda: client_of(parts), lambda: x.T @ omega)], rounds=7)
    record("wide table to client / XᵀΩ", "3,000 columns, 21 regimes × 600 rows", *times, 2.0)


# -- exact moments against the paper's search ------------------------------------------------------


def fast(client: jc.Client) -> jc.Fragment:
    return baseline.recover_fragment(client, budget=10**9)


@pytest.mark.parametrize(("p", "faster"), [(10, 2), (20, 5), (30, 20), (40, 100)])
def test_exact_moments(p: int, faster: int, in_turns: Measure, record: Record) -> None:
    """Exact moments, against the search that `method="paper"` uses; without the client's checks."""
    world = jc.simulate.random_world(p, 15, 0.6, 11)
    found = {}

    def keep(k: int, method: Method, client: jc.Client) -> None:
        found[k, method] = method(client)

    def exact(k: int, method: Method) -> bool:
        fragment, truth = found[k, method], world.truth(k)
        return bool(
            fragment.outcome.ok
            and set(fragment.blocks) == set(truth.blocks)
            and fragment.block_order == truth.block_order
        )

    def null_cone(client: jc.Client) -> jc.Fragment:
        return nullcone.Recovery.of(client).fragment()

    methods = (null_cone, fast)
    pairs = [[partial(keep, k, m, c) for m in methods] for k, c in enumerate(world.clients())]
    ours, peer = in_turns(pairs, rounds=3, count=len(pairs))
    right = [sum(exact(k, m) for k in range(len(pairs))) for m in methods]
    note = f"exact {right[0]} of {len(pairs)} (paper {right[1]})"
    record("exact moments / the paper's search", f"p = {p}", ours, peer, 1 / faster, note=note)


# -- assembly --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fragments(pytestconfig: pytest.Config) -> dict[str, list[jc.Fragment]]:
    """As many clients as labels, 50 labels each."""
    rng = np.random.default_rng(0)
    labels = pytestconfig.getoption("labels")
    exact = perfect(large_world(labels, labels, 50, rng))
    return {"exact": exact, "evidence": [weighed(flipped(f, 0.02, rng), 0.02) for f in exact]}


@pytest.mark.parametrize("kind", ["exact", "evidence"])
def test_assembly(
    kind: str, fragments: dict[str, list[jc.Fragment]], in_turns: Measure, record: Record
) -> None:
    """1,000 clients of 50 labels out of 1,000, against reading their fragments."""
    given = fragments[kind]
    texts = [f.to_json() for f in given]
    pair = (lambda: jc.assemble(given), lambda: [jc.Fragment.from_json(x) for x in texts])
    note = f"{sum(map(len, texts)) / 1e6:.0f} MB of JSON"
    times = in_turns([pair], rounds=3)
    record(
        "assembly / reading the fragments", f"{len(given)} labels, {kind}", *times, 10.0, note=note
    )


# Processor seconds that assembly should not exceed, by the labels and the number of clients.
SECONDS = {(10, 1): 0.03, (15, 1): 0.06, (25, 1): 0.15, (20, 8): 0.3}


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize(("labels", "clients"), SECONDS, ids=[f"{p}-{n}" for p, n in SECONDS])
def test_small_assembly(labels: int, clients: int, in_turns: Measure, record: Record) -> None:
    """Studies of the usual size: processor time of `assemble` alone, mean of eight worlds.

    The ratio is to a second.
    """
    pairs = []
    for seed, (kind, shift) in product(range(4), (("paper", 0.0), ("hard", 1.0))):
        how = jc.simulate.Intervention.named(kind, shift=shift)
        share = 1.0 if clients == 1 else 0.6
        world = jc.simulate.random_world(labels, clients, share, seed=100 + seed, intervention=how)
        claim: Literal["hard", "soft"] = "hard" if kind == "hard" else "soft"
        given = [
            jc.recover_fragment(client, interventions=claim)
            for client in world.clients(10_000, seed=seed)
        ]
        pairs.append((partial(jc.assemble, given), partial(jc.assemble, given)))
    ours, _ = in_turns(pairs, rounds=3, count=len(pairs))
    case = f"{labels} labels, {pluralise(clients, 'client')}"
    limit = SECONDS[labels, clients]
    record("processor seconds of assemble / 1", case, ours.mean(), 1.0, limit)


# -- processes -------------------------------------------------------------------------------------

SCRIPT = str(Path(sys.executable).with_name("jigsaw"))
LIBRARIES = ("-c", "import numpy, scipy.linalg")
LOADED = "import jigsaw_crl as jc; jc.recover, jc.assemble, jc.Client"


def process(*command: str) -> str:
    return subprocess.run(
        [sys.executable, *command], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


@pytest.mark.benchmark(timer=time.perf_counter)
@pytest.mark.parametrize(
    ("what", "case", "ours", "peer", "limit"),
    [
        ("import jigsaw_crl / import numpy, scipy.linalg", "names load on use",
         ("-c", "import jigsaw_crl"), LIBRARIES, 2.0),
        ("import jigsaw_crl / import numpy, scipy.linalg", "with recover and assemble",
         ("-c", LOADED), LIBRARIES, 2.0),
        ("jigsaw --help / python -c pass", "", (SCRIPT, "--help"), ("-c", "pass"), 8.0),
    ],
    ids=["import", "import-and-load", "help"],
)  # fmt: skip
def test_start(
    what: str,
    case: str,
    ours: tuple[str, ...],
    peer: tuple[str, ...],
    limit: float,
    in_turns: Measure,
    record: Record,
) -> None:
    """Processes of their own, by wall-clock time."""
    pair = (partial(process, *ours), partial(process, *peer))
    record(what, case, *in_turns([pair], rounds=15), limit)


# For code of other processes: the modules beside this one.
BESIDE = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); "


def test_memory(pytestconfig: pytest.Config, benchmark: BenchmarkFixture, record: Record) -> None:
    """Peak memory of a process that holds one client and recovers it, less that of an idle one."""
    p = max(pytestconfig.getoption("sizes"))
    code = f"import test_performance; test_performance.print_peak({p})"
    peak = float(benchmark.pedantic(process, ("-c", BESIDE + code)))
    given = (p + 1) * p * p * 8 / 2**20
    what = "peak memory of one client / its moments (MB)"
    record(what, f"p_k = {p}, moments included", peak, given, 3.0)


def test_memory_of_a_wide_table(benchmark: BenchmarkFixture, record: Record) -> None:
    """Peak memory of a process from the rows of a wide table to its fragment, above the rows."""
    code = "import json, wide; print(json.dumps(wide.memory(3000, 20, 600)))"
    found = json.loads(benchmark.pedantic(process, ("-c", BESIDE + code)))
    above, rows = found["peak above the rows, GB"], found["rows, GB"]
    case = "3,000 columns, 21 regimes × 600 rows"
    record("peak memory above a wide table / its rows (GB)", case, above, rows, 0.6 / rows)


def print_peak(p: int) -> None:
    """The peak of recovery above an idle process, in MB."""

    def memory(name: str) -> float:
        # Not `ru_maxrss`: a process inherits that of the one that started it.
        with open("/proc/self/status") as file:
            return next(int(x.split()[1]) for x in file if x.startswith(name)) / 2**10

    jc.recover_fragment(one_client(24))
    idle = memory("VmRSS")
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
    print(memory("VmHWM") - idle)
