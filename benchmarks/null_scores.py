"""Are one client's standard errors right? The spread of its scores, and its wrong statements.

    python benchmarks/null_scores.py --worlds 20 --kinds paper hard --rows 1e3 1e4

The score of a pair that is unrelated and not confounded, in standard errors, should have standard
deviation 1. Beside it: how many pairs each client gives more than 0.95 or less than 0.05, before
assembly, and which share of them is wrong.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from reporting import header, options, row, share
from threadpoolctl import threadpool_limits

import jigsaw_crl as jc
from jigsaw_crl.nullcone import Recovery

FIRST_SEED = 830_000

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def one_world(
    p: int, n: int, noise: str, protocol: jc.simulate.Intervention, seed: int
) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Stated probabilities, whether they are true, and null scores, of all clients of a world."""
    stated, true, scores = [], [], []
    with threadpool_limits(1):
        world = jc.simulate.random_world(p, 15, 0.6, FIRST_SEED + seed, intervention=protocol)
        for k in range(world.n_clients):
            recovery = Recovery.of(world.client(k, n, noise, seed=seed))
            fragment, own = recovery.fragment(basis=False), world.truth(k)
            ancestor = own.order.restrict(fragment.labels).matrix
            said = ~np.isnan(fragment.evidence)
            stated.append(1.0 / (1.0 + np.exp(-fragment.evidence[said])))
            true.append(ancestor[said])
            district = {x: i for i, group in enumerate(own.districts) for x in group}
            home = np.array([district[x] for x in fragment.labels])
            two = recovery.reading.lines.rank == 2
            null = (home[:, None] != home) & ~ancestor & ~ancestor.T & two[:, None] & two
            z = recovery.reading.z
            scores.append(z[np.triu(null, 1) & ~np.isnan(z)])
    return np.concatenate(stated), np.concatenate(true), np.concatenate(scores)


def main() -> None:
    parser = options(__doc__, worlds=20, jobs=2, latent=20, shift=0.0)
    parser.add_argument("--kinds", nargs="+", default=["paper"])
    parser.add_argument("--rows", type=float, nargs="+", default=[1e3, 1e4, 1e5, 1e6])
    parser.add_argument("--noises", nargs="+", default=["gaussian", "laplace"])
    given = parser.parse_args()
    said = ("stated > 0.95", "wrong", "stated < 0.05", "wrong")
    header("kind, noise, n", "null scores", "their s.d.", *said)
    for kind in given.kinds:
        protocol = jc.simulate.Intervention.named(kind, shift=given.shift)
        for noise in given.noises:
            for n in map(int, given.rows):
                parts = Parallel(n_jobs=given.jobs)(
                    delayed(one_world)(given.latent, n, noise, protocol, seed)
                    for seed in range(given.worlds)
                )
                stated, true, scores = (np.concatenate(x) for x in zip(*parts, strict=True))
                yes, no = stated > 0.95, stated < 0.05
                row(
                    f"{kind}, {noise}, {n:,}",
                    len(scores),
                    scores.std(),
                    yes.sum(),
                    share((yes & ~true).sum(), yes.sum()),
                    no.sum(),
                    share((no & true).sum(), no.sum()),
                )


if __name__ == "__main__":
    main()
