"""How well does the null-cone method do? Each table on fresh random worlds, as Markdown.

python benchmarks/nullcone.py table        E1, E2, E3 and exact blocks against p and n
python benchmarks/nullcone.py settings     the paper's settings A, B, C, both noises
python benchmarks/nullcone.py kinds        every kind of intervention
python benchmarks/nullcone.py single       one client that accesses every latent
python benchmarks/nullcone.py population   exact moments: every client against the truth
python benchmarks/nullcone.py unusual      unequal sizes, missing interventions, two doses
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, fields
from itertools import product

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from reporting import header, mean_and_error, options, row, share
from threadpoolctl import threadpool_limits

import jigsaw_crl as jc
from jigsaw_crl.truth.metrics import VerdictCounts

Scores = dict[str, float]
Scored = Callable[..., Scores]

# No world of these seeds was looked at while the method was written.
FRESH = 720_000


def cell(p: int, clients: int, n: int, noise: str, kind: str, seed: int) -> Scores:
    """One random world: recover it and compare with the truth."""
    world = jc.simulate.random_world(p, clients, 0.6, FRESH + seed, intervention=kind)
    return recovered(world, [world.client(k, n, noise, seed=seed) for k in range(clients)])


def setting(name: str, noise: str, seed: int) -> Scores:
    """One world of the paper's settings."""
    world = jc.simulate.setting(name, FRESH + seed)
    return recovered(world, world.clients(10_000, noise, seed))


def recovered(world: jc.simulate.World, clients: list[jc.Client]) -> Scores:
    """Scores of the recovery, and its seconds."""
    with threadpool_limits(1):
        start = time.perf_counter()
        result = jc.recover(clients)
        seconds = time.perf_counter() - start
    scores = []
    for k in range(world.n_clients):
        true, fragment = world.truth(k), result.fragments.get(world.view(k).name)
        if fragment is None:
            scores.append((1.0, 1.0, 0.0))
            continue
        same = set(fragment.blocks) == set(true.blocks)
        scores.append(
            (
                jc.metrics.subspace_error(true, fragment),
                jc.metrics.support_leakage(true, fragment),
                float(same and fragment.block_order == true.block_order),
            )
        )
    e2, e3, blocks = np.mean(scores, axis=0)
    return {
        "E1": jc.metrics.global_f1(world.order, result.order),
        "E2": e2,
        "E3": e3,
        "blocks": blocks,
        **asdict(jc.metrics.verdict_counts(world.order, result.order)),
        "seconds": seconds,
    }


def over_worlds(args: argparse.Namespace, function: Scored, *arguments: object) -> list[Scores]:
    """The function of the arguments and of every seed, on several processes."""
    found: list[Scores] = Parallel(n_jobs=args.jobs)(
        delayed(function)(*arguments, seed) for seed in range(args.worlds)
    )
    return found


def head(first: str) -> None:
    columns = ("E1", "exact blocks and order", "E2", "E3", "decided", "wrong yes", "wrong no")
    header(first, *columns, "s a world")


def line(name: str, worlds: list[Scores]) -> None:
    """One row: means over worlds, and shares of all their verdicts."""
    names = [f.name for f in fields(VerdictCounts)]
    counts = VerdictCounts(*(int(sum(w[name] for w in worlds)) for name in names))
    row(
        name,
        *(mean_and_error([w[key] for w in worlds]) for key in ("E1", "blocks", "E2", "E3")),
        counts.decided,
        share(counts.wrong_yes, counts.yes),
        share(counts.wrong_no, counts.no),
        f"{np.mean([w['seconds'] for w in worlds]):.2f}",
    )


def table(args: argparse.Namespace) -> None:
    head("p, n, noise (K = 15, q = 0.6)")
    for noise, n, p in product(args.noise, args.n, args.p):
        line(
            f"{p}, {n:.0e}, {noise}",
            over_worlds(args, cell, p, 15, int(n), noise, "paper"),
        )


def kinds(args: argparse.Namespace) -> None:
    head("interventions (p = 20, K = 15, n = 10⁴)")
    for kind, noise in product(jc.simulate.INTERVENTIONS, args.noise):
        line(f"{kind}, {noise}", over_worlds(args, cell, 20, 15, 10_000, noise, kind))


def settings(args: argparse.Namespace) -> None:
    head("setting, noise (n = 10⁴)")
    for name, noise in product("ABC", args.noise):
        line(f"{name}, {noise}", over_worlds(args, setting, name, noise))


def single(args: argparse.Namespace) -> None:
    """One client, p = 5, 8 features, every latent accessed."""

    def graph(name: str, rng: np.random.Generator) -> npt.NDArray[np.float64]:
        if name == "setting A":
            return jc.simulate.setting("A", 0).sem.A
        upper = np.triu(rng.random((5, 5)) < (0.5 if name == "Erdős–Rényi" else 0.25), 1)
        signs = rng.choice([-1.0, 1.0], (5, 5))
        return np.where(upper, rng.uniform(0.5, 1.5, (5, 5)) * signs, 0.0)

    header("graph", "interventions", "F1, n = 10⁴", "F1, exact moments")
    for name in ("setting A", "Erdős–Rényi", "sparse"):
        for kind in ("paper", "hard-keep", "hard-replace", "shrink"):
            found: dict[int | None, list[float]] = {10_000: [], None: []}
            for seed in range(args.worlds):
                rng = np.random.default_rng([FRESH, seed])
                world = jc.simulate.world_from_graph(
                    graph(name, rng), [range(5)], [8], seed=FRESH + seed, intervention=kind
                )
                for n in found:
                    client = world.client(0, n, seed=seed)
                    try:
                        order = jc.recover([client], confounding="none").order
                        f1 = jc.metrics.global_f1(world.order, order)
                    except jc.InputError:  # "hard-keep" without any edge changes nothing
                        f1 = jc.metrics.global_f1(world.order, ())
                    found[n].append(f1)
            row(name, kind, mean_and_error(found[10_000]), np.mean(found[None]))


def population(args: argparse.Namespace) -> None:
    """Exact moments: every client against the truth."""
    columns = ("blocks, order, districts exact", "wrong statements", "missing across districts")
    header("p", "clients", *columns)
    for p in args.p:
        exact = wrong = missing = clients = 0
        for seed in range(args.worlds):
            world = jc.simulate.random_world(p, 15, 0.6, FRESH + seed)
            for k in range(world.n_clients):
                fragment, true = jc.recover_fragment(world.client(k)), world.truth(k)
                clients += 1
                exact += (
                    set(fragment.blocks) == set(true.blocks)
                    and fragment.block_order == true.block_order
                    and set(fragment.districts or ()) == set(true.districts)
                )
                district = {x: i for i, group in enumerate(true.districts) for x in group}
                home = np.array([district[x] for x in fragment.labels])
                ancestor = true.order.restrict(fragment.labels).matrix
                stated = fragment.evidence
                wrong += int(((stated > 0) & ~ancestor).sum() + ((stated < 0) & ancestor).sum())
                missing += int((np.isnan(stated) & (home[:, None] != home)).sum())
        row(p, clients, exact, wrong, missing)


def unusual(args: argparse.Namespace) -> None:
    head("p = 20, K = 15, Gaussian")

    def one(make: Callable[[jc.simulate.World, int, int], jc.Client], seed: int) -> Scores:
        world = jc.simulate.random_world(20, 15, 0.6, FRESH + seed)
        return recovered(world, [make(world, k, seed) for k in range(world.n_clients)])

    def unequal(world: jc.simulate.World, k: int, seed: int) -> jc.Client:
        rng = np.random.default_rng([FRESH, seed, k])
        labels = world.truth(k).labels
        sizes = {x: int(2_000 * 20 ** rng.random()) for x in (*labels, "control")}
        return world.client(k, sizes, seed=seed)

    def fewer(world: jc.simulate.World, k: int, seed: int) -> jc.Client:
        labels = world.truth(k).labels
        return world.client(k, 10_000, seed=seed, labels=labels[: max(2, 2 * len(labels) // 3)])

    def doses(world: jc.simulate.World, k: int, seed: int) -> jc.Client:
        return world.client(k, 10_000, seed=seed, doses=2)

    for name, make in (
        ("n_j from 2,000 to 40,000", unequal),
        ("two thirds of the latents intervened on", fewer),
        ("two strengths a label", doses),
    ):
        line(name, over_worlds(args, one, make))


COMMANDS = {f.__name__: f for f in (table, kinds, settings, single, population, unusual)}


def main() -> None:
    parser = options(__doc__, worlds=20, jobs=2)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--p", type=int, nargs="+", default=[10, 20, 40])
    parser.add_argument("--n", type=float, nargs="+", default=[1e3, 1e4, 1e6])
    parser.add_argument("--noise", nargs="+", default=["gaussian", "laplace"])
    args = parser.parse_args()
    COMMANDS[args.command](args)


if __name__ == "__main__":
    main()
