"""Assembly with malicious clients: F1 beside the honest clients alone, and who is named.

python benchmarks/assembly_malice.py --worlds 100
"""

from __future__ import annotations

import argparse

import numpy as np
from assembly_corruption import KINDS, f1, malicious, perfect, weighed

import jigsaw_crl as jc


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--latent", type=int, default=20)
    parser.add_argument("--clients", type=int, default=15)
    parser.add_argument("--rate", type=float, default=0.0, help="error rate of honest statements")
    options = parser.parse_args()
    print("| malicious | kind | F1 | honest alone | culprits named | honest named | disagreement |")
    print("|---|---|---|---|---|---|---|")
    for share in (0.2, 0.4):
        for kind in KINDS:
            rows = np.array([one(options, share, kind, seed) for seed in range(options.worlds)])
            m = rows.mean(axis=0)
            print(
                f"| {share:.0%} | {kind} | {m[0]:.3f} | {m[1]:.3f} | {m[2]:.2f} | {m[3]:.3f} "
                f"| {m[4]:.2f} |",
                flush=True,
            )


def one(options: argparse.Namespace, share: float, kind: str, seed: int) -> list[float]:
    """F1, F1 of the honest alone, shares of culprits and of honest named, disagreement told."""
    world = jc.simulate.random_world(options.latent, options.clients, 0.6, seed=seed)
    rng = np.random.default_rng([seed, 6])
    n_bad = round(share * options.clients)
    bad = rng.choice(options.clients, size=n_bad, replace=False).tolist()
    given = malicious(world, perfect(world), bad, kind, seed)
    if options.rate:
        given = [weighed(f, options.rate) for f in given]
    order = jc.assemble(given)
    honest = jc.assemble([f for k, f in enumerate(given) if k not in bad])
    named = {name for name, weight in order.client_weights.items() if weight < 0.5}
    culprits = {given[k].client for k in bad}
    return [
        f1(order, world),
        f1(honest, world),
        len(named & culprits) / len(culprits),
        len(named - culprits) / (len(given) - len(culprits)),
        float(order.disagreement),
    ]


if __name__ == "__main__":
    main()
