"""E1 against sensor noise: variance added to every feature, as a share of the signal's.

python benchmarks/moments_noise.py --worlds 6 --latent 10 --clients 10 --rows 10000
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np

import jigsaw_crl as jc


def noisy_client(
    world: jc.simulate.World, k: int, rows: int, share: float, noise: str, seed: int
) -> jc.Client:
    control, rest = world.rows(k, rows, noise, seed)
    rng = np.random.default_rng([seed, k])
    scale = np.sqrt(share * np.mean(np.var(control, axis=0)))
    regimes = {
        name: x + scale * rng.standard_normal(x.shape)
        for name, x in {"control": control, **rest}.items()
    }
    return jc.Client.from_samples(
        world.view(k).name, observational=regimes.pop("control"), interventions=regimes
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--worlds", type=int, default=6)
    parser.add_argument("--latent", type=int, default=10)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--noise", default="gaussian")
    options = parser.parse_args()
    print("share   E1 (s.e.)      decided wrong  undetermined  findings")
    for share in (0.0, 0.01, 0.05, 0.2):
        scores, wrong, decided, left = [], 0, 0, 0
        found: Counter[str] = Counter()
        for seed in range(options.worlds):
            world = jc.simulate.random_world(options.latent, options.clients, 0.6, seed)
            result = jc.recover(
                noisy_client(world, k, options.rows, share, options.noise, seed)
                for k in range(options.clients)
            )
            truth, order = world.order.pairs(), result.order
            scores.append(jc.metrics.global_f1(truth, order.pairs()))
            for i, a in enumerate(order.labels):
                for j, d in enumerate(order.labels):
                    if i != j and order.verdicts[i, j] >= 0:
                        decided += 1
                        wrong += bool(order.verdicts[i, j]) != ((a, d) in truth)
            left += len(order.undetermined())
            found.update(f"{f.check} ({f.severity})" for f in result.diagnostics)
        error = np.std(scores, ddof=1) / np.sqrt(len(scores))
        print(
            f"{share:5.2f}   {np.mean(scores):.3f} ({error:.3f})  {wrong:5d} of {decided:<5d}"
            f"  {left:6d}       {dict(found)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
