"""A measured cause of latents and sensors: left out, as a feature, and as a covariate.

Each world has a root that acts on most latents and on all sensors, and that no regime intervenes
on. Its values are a column of every table. With `--season S`, regimes are recorded at different
times: the mean of the root moves by S standard deviations from regime to regime, and its spread by
a factor of up to 1 + S. Prints the table of `docs/howto/batches.md`:

    .venv/bin/python benchmarks/covariates.py --seeds 9600 --worlds 20
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from reporting import header, mean_and_error, options, row

import jigsaw_crl as jc
from jigsaw_crl.truth.metrics import VerdictCounts
from jigsaw_crl.truth.simulate.sampling import rows_from_noise

LATENTS, CLIENTS, COVERAGE, REACHED = 8, 5, 0.7, 0.7
NAME = "depth"


def covariate_world(seed: int, kind: str = "paper") -> jc.simulate.World:
    """A random world whose first node, `NAME`, is a cause that nobody intervenes on."""
    rng = np.random.default_rng([seed, 7])
    p = LATENTS + 1
    A = np.tril(rng.uniform(0.5, 1.0, (p, p)) * rng.choice([-1, 1], (p, p)), -1)
    A *= rng.random((p, p)) < 0.35
    A[1:, 0] = rng.choice([-1, 1], LATENTS) * (rng.random(LATENTS) < REACHED)
    names = [NAME, *(f"z{i}" for i in range(1, p))]
    own = [rng.permutation(np.arange(1, p))[: round(COVERAGE * LATENTS)] for _ in range(CLIENTS)]
    sets = [[0, *sorted(nodes.tolist())] for nodes in own]
    counts = [2 * len(nodes) for nodes in sets]
    return jc.simulate.world_from_graph(A, sets, counts, seed, intervention=kind, names=names)


def tables(
    world: jc.simulate.World, n: int, seed: int, season: float = 0.0
) -> Iterator[pd.DataFrame]:
    """The table of each client, with the covariate as a column."""
    for k in range(world.n_clients):
        rng, blocks = np.random.default_rng([seed, k, 8]), []
        for label in (None, *(x for x in world.truth(k).labels if x != NAME)):
            E = rng.standard_normal((n, world.n_latent))
            E[:, 0] = season * rng.standard_normal() + (1 + season) ** rng.uniform(-1, 1) * E[:, 0]
            rows = rows_from_noise(world.regime(k, label), E, rng)
            frame = pd.DataFrame(rows, columns=[f"x{j + 1}" for j in range(rows.shape[1])])
            frame[NAME], frame["regime"] = E[:, 0], label or "control"
            blocks.append(frame)
        yield pd.concat(blocks)


def clients(
    world: jc.simulate.World, n: int, seed: int, how: str, season: float = 0.0
) -> list[jc.Client]:
    """The clients, with the covariate "left out", as a "feature", or taken "off"."""
    ignore, covariates = ([NAME] if how == one else [] for one in ("left out", "off"))
    return [
        jc.Client.from_table(frame, name=world.view(k).name, ignore=ignore, covariates=covariates)
        for k, frame in enumerate(tables(world, n, seed, season))
    ]


def main() -> None:
    parser = options(__doc__, seeds=9600, worlds=20, rows=3_000, season=1.0, kind="paper")
    parser.add_argument("--how", nargs="*", default=["left out", "feature", "off"])
    asked = parser.parse_args()
    header("the column is", "E1", "decided", "wrong yes", "wrong no", "refused")
    for how in asked.how:
        scores, counts, refused = [], VerdictCounts(), 0
        for seed in range(asked.seeds, asked.seeds + asked.worlds):
            world = covariate_world(seed, asked.kind)
            labels = [x for x in world.labels if x != NAME]
            truth = world.order.restrict(labels)
            try:
                order = jc.recover(clients(world, asked.rows, seed, how, asked.season)).order
            except jc.InputError:
                refused += 1
                scores.append(0.0)
                counts += VerdictCounts(LATENTS * (LATENTS - 1), len(truth.pairs()))
                continue
            scores.append(jc.metrics.global_f1(truth, order))
            counts += jc.metrics.verdict_counts(truth, order, labels)
        share = f"{counts.decided:.0%} of {counts.pairs:,}"
        row(how, mean_and_error(scores), share, counts.wrong_yes, counts.wrong_no, refused)


if __name__ == "__main__":
    main()
