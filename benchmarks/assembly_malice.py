"""Assembly with malicious clients: F1 beside the honest clients alone, and who is named.

python benchmarks/assembly_malice.py --worlds 100
"""

from __future__ import annotations

import argparse

import numpy as np
from assembly_corruption import KINDS, malicious, perfect, weighed
from reporting import header, options, row

import jigsaw_crl as jc


def main() -> None:
    parser = options(__doc__, worlds=100, latent=20, clients=15)
    parser.add_argument("--rate", type=float, default=0.0, help="error rate of honest statements")
    given = parser.parse_args()
    names = ("F1", "honest alone", "culprits named", "honest named", "disagreement")
    header("malicious", "kind", *names)
    for share in (0.2, 0.4):
        for kind in KINDS:
            worlds = [one(given, share, kind, seed) for seed in range(given.worlds)]
            row(f"{share:.0%}", kind, *np.mean(worlds, axis=0))


def one(given: argparse.Namespace, share: float, kind: str, seed: int) -> list[float]:
    """F1, F1 of the honest alone, shares of culprits and of honest named, disagreement reported."""
    world = jc.simulate.random_world(given.latent, given.clients, 0.6, seed=seed)
    rng = np.random.default_rng([seed, 6])
    bad = rng.choice(given.clients, size=round(share * given.clients), replace=False).tolist()
    fragments = malicious(world, perfect(world), bad, kind, seed)
    if given.rate:
        fragments = [weighed(f, given.rate) for f in fragments]
    order = jc.assemble(fragments)
    honest = jc.assemble([f for k, f in enumerate(fragments) if k not in bad])
    named = {name for name, weight in order.client_weights.items() if weight < 0.5}
    culprits = {fragments[k].client for k in bad}
    return [
        jc.metrics.global_f1(world.order, order),
        jc.metrics.global_f1(world.order, honest),
        len(named & culprits) / len(culprits),
        len(named - culprits) / (len(fragments) - len(culprits)),
        float(order.disagreement),
    ]


if __name__ == "__main__":
    main()
