"""E1 against sensor noise: variance added to every feature, as a share of the signal's.

python benchmarks/moments_noise.py --worlds 6 --latent 10 --clients 10 --rows 10000
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from reporting import header, mean_and_error, options, row, share

import jigsaw_crl as jc
from jigsaw_crl.truth.metrics import VerdictCounts


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
    given = options(
        __doc__, worlds=6, latent=10, clients=10, rows=10_000, noise="gaussian"
    ).parse_args()
    header("share", "E1", "decided", "of these wrong", "findings")
    for part in (0.0, 0.01, 0.05, 0.2):
        scores, counts = [], VerdictCounts()
        found: Counter[str] = Counter()
        for seed in range(given.worlds):
            world = jc.simulate.random_world(given.latent, given.clients, 0.6, seed)
            result = jc.recover(
                noisy_client(world, k, given.rows, part, given.noise, seed)
                for k in range(given.clients)
            )
            scores.append(jc.metrics.global_f1(world.order, result.order))
            counts += jc.metrics.verdict_counts(world.order, result.order)
            found.update(f"{f.check} ({f.severity})" for f in result.diagnostics)
        wrong = share(counts.wrong_yes + counts.wrong_no, counts.yes + counts.no)
        row(part, mean_and_error(scores), counts.decided, wrong, dict(found))


if __name__ == "__main__":
    main()
