"""How well does the null-cone method do? Each table on fresh random worlds, as Markdown.

    python benchmarks/nullcone.py table        E1, E2, E3 and exact blocks against p and n
    python benchmarks/nullcone.py settings     the paper's settings A, B, C, both noises
    python benchmarks/nullcone.py kinds        weak, strong, shrinking and hard interventions
    python benchmarks/nullcone.py single       one client that accesses every latent
    python benchmarks/nullcone.py population   exact moments: every client against the truth
    python benchmarks/nullcone.py unusual      unequal sizes, missing interventions, doses, noise only
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import jigsaw_crl as jc

# No world of these seeds was looked at while the method was written.
FRESH = 720_000


def cell(
    p: int, clients: int, n: int | None, seed: int, noise: str = "gaussian", kind: str = "paper"
) -> dict[str, float]:
    """One world: recover it and compare with the truth."""
    with threadpool_limits(1):
        world = jc.simulate.random_world(p, clients, 0.6, FRESH + seed, intervention=kind)
        views = [world.client(k, n, noise, seed=seed) for k in range(clients)]
        start = time.perf_counter()
        result = jc.recover(views)
        seconds = time.perf_counter() - start
    return {**score(world, result), "seconds": seconds}


def score(world: jc.simulate.World, result: jc.Result) -> dict[str, float]:
    order, truth = result.order, world.order
    out: dict[str, list[float]] = {"E2": [], "E3": [], "blocks": []}
    for k in range(world.n_clients):
        true = world.truth(k)
        fragment = result.fragments.get(world.view(k).name)
        if fragment is None:
            out["E2"].append(1.0), out["E3"].append(1.0), out["blocks"].append(0.0)
            continue
        out["E2"].append(jc.metrics.subspace_error(true, fragment))
        out["E3"].append(jc.metrics.support_leakage(true, fragment))
        same = set(fragment.blocks) == set(true.blocks)
        out["blocks"].append(float(same and fragment.block_order == true.block_order))
    said = {"yes": 0, "yes_wrong": 0, "no": 0, "no_wrong": 0, "pairs": 0}
    for a in order.labels:
        for d in order.labels:
            if a == d:
                continue
            said["pairs"] += 1
            verdict, is_ancestor = order.verdict(a, d), truth.is_ancestor(a, d)
            if verdict is jc.Verdict.ANCESTOR:
                said["yes"] += 1
                said["yes_wrong"] += not is_ancestor
            elif verdict is jc.Verdict.NOT_ANCESTOR:
                said["no"] += 1
                said["no_wrong"] += is_ancestor
    return {
        "E1": jc.metrics.global_f1(truth, order),
        **{name: float(np.mean(values)) for name, values in out.items()},
        **said,
    }


def run(jobs: int, worlds: int, *arguments: object) -> list[dict[str, float]]:
    return Parallel(n_jobs=jobs)(delayed(cell)(*arguments[:3], s, *arguments[3:]) for s in range(worlds))


def line(name: str, rows: list[dict[str, float]]) -> str:
    def mean(key: str) -> str:
        values = [r[key] for r in rows]
        return f"{np.mean(values):.3f} ± {np.std(values) / np.sqrt(len(values)):.3f}"

    total = {k: sum(r[k] for r in rows) for k in ("yes", "yes_wrong", "no", "no_wrong", "pairs")}
    decided = (total["yes"] + total["no"]) / total["pairs"]
    return (
        f"| {name} | {mean('E1')} | {mean('blocks')} | {mean('E2')} | {mean('E3')} | {decided:.3f} "
        f"| {total['yes_wrong'] / max(total['yes'], 1):.4f} | "
        f"{total['no_wrong'] / max(total['no'], 1):.4f} | {np.mean([r['seconds'] for r in rows]):.2f} |"
    )


HEAD = (
    "| {} | E1 | exact blocks and order | E2 | E3 | decided | wrong yes | wrong no | s a world |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def table(args: argparse.Namespace) -> Iterator[str]:
    yield HEAD.format("p, n, noise (K = 15, q = 0.6)")
    for noise in args.noise:
        for n in args.n:
            for p in args.p:
                yield line(f"{p}, {n:.0e}, {noise}", run(args.jobs, args.worlds, p, 15, int(n), noise))


def kinds(args: argparse.Namespace) -> Iterator[str]:
    yield HEAD.format("interventions (p = 20, K = 15, n = 10⁴)")
    for kind in ("paper", "weak", "strong", "shrink", "hard-keep", "hard-replace", "noise-only"):
        for noise in args.noise:
            rows = run(args.jobs, args.worlds, 20, 15, 10_000, noise, kind)
            yield line(f"{kind}, {noise}", rows)


def settings(args: argparse.Namespace) -> Iterator[str]:
    def one(name: str, noise: str, seed: int) -> dict[str, float]:
        world = jc.simulate.setting(name, FRESH + seed)
        start = time.perf_counter()
        views = [world.client(k, 10_000, noise, seed=seed) for k in range(world.n_clients)]
        result = jc.recover(views)
        return {**score(world, result), "seconds": time.perf_counter() - start}

    yield HEAD.format("setting, noise (n = 10⁴)")
    for name in "ABC":
        for noise in args.noise:
            rows = Parallel(n_jobs=args.jobs)(delayed(one)(name, noise, s) for s in range(args.worlds))
            yield line(f"{name}, {noise}", rows)


def single(args: argparse.Namespace) -> Iterator[str]:
    """One client, p = 5, 8 features, every latent accessed."""
    setting = np.array(jc.simulate.setting("A", 0).sem.A)

    def graph(name: str, rng: np.random.Generator) -> np.ndarray:
        if name == "setting A":
            return setting
        upper = np.triu(rng.random((5, 5)) < (0.5 if name == "Erdős–Rényi" else 0.25), 1)
        return upper * rng.uniform(0.5, 1.5, (5, 5)) * rng.choice([-1.0, 1.0], (5, 5))

    yield "| graph | interventions | F1, n = 10⁴ | F1, exact moments |\n|---|---|---|---|"
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
                        pairs = jc.recover([client], confounding="none").order.pairs()
                    except jc.InputError:  # cutting no weights and keeping the noise changes nothing
                        pairs = frozenset()
                    found[n].append(jc.metrics.global_f1(world.order, pairs))
            yield (
                f"| {name} | {kind} | {np.mean(found[10_000]):.3f} ± "
                f"{np.std(found[10_000]) / np.sqrt(args.worlds):.3f} | {np.mean(found[None]):.3f} |"
            )


def population(args: argparse.Namespace) -> Iterator[str]:
    yield "| p | clients | blocks, order, districts exact | wrong statements | missing across districts |"
    yield "|---|---|---|---|---|"
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
                home = {x: i for i, group in enumerate(true.districts) for x in group}
                same = np.array([[home[a] == home[d] for d in fragment.labels] for a in fragment.labels])
                is_ancestor = true.order.restrict(fragment.labels).matrix
                stated = fragment.evidence
                wrong += int(((stated > 0) & ~is_ancestor).sum() + ((stated < 0) & is_ancestor).sum())
                missing += int((np.isnan(stated) & ~same).sum())
        yield f"| {p} | {clients} | {exact} | {wrong} | {missing} |"


def unusual(args: argparse.Namespace) -> Iterator[str]:
    yield HEAD.format("p = 20, K = 15, Gaussian")

    def one(make: Callable[[jc.simulate.World, int, int], jc.Client], seed: int, kind: str) -> dict[str, float]:
        world = jc.simulate.random_world(20, 15, 0.6, FRESH + seed, intervention=kind)
        start = time.perf_counter()
        result = jc.recover([make(world, k, seed) for k in range(15)])
        return {**score(world, result), "seconds": time.perf_counter() - start}

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
        yield line(name, [one(make, s, "paper") for s in range(args.worlds)])


COMMANDS = {
    f.__name__: f for f in (table, kinds, settings, single, population, unusual)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--p", type=int, nargs="+", default=[10, 20, 40])
    parser.add_argument("--n", type=float, nargs="+", default=[1e3, 1e4, 1e6])
    parser.add_argument("--noise", nargs="+", default=["gaussian", "laplace"])
    args = parser.parse_args()
    for row in COMMANDS[args.command](args):
        print(row, flush=True)


if __name__ == "__main__":
    main()
