"""Are the errors of moments from incomplete rows as large as stated?

    python benchmarks/incomplete.py --studies 200 --seeds judge

Each study draws rows of a few latents that are mixed into the features, with sensor noise, and
takes a share of the cells away at random. Its moments come from all rows, from the complete ones
among those with gaps, and from all of those by EM. Columns: how many rows they count as, as a share
of all; how often 95 % intervals contain the covariances and the means along the latents'
directions; and the root mean square error of these covariances, relative to that of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from reporting import header, options, row

from jigsaw_crl.moments.incomplete import filled

SEEDS = {"tune": 8_200_000, "judge": 8_300_000}
# Latents, features and rows.
SIZES = ((4, 6, 1_000), (12, 18, 2_000), (4, 40, 1_000), (4, 4, 1_000))
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Estimate:
    """A covariance and a mean, and the rows that they count for."""

    covariance: FloatArray
    mean: FloatArray
    n: float
    of_mean: float

    @classmethod
    def of_complete(cls, x: FloatArray) -> Estimate:
        return cls(np.cov(x.T), x.mean(axis=0), len(x), len(x))

    @classmethod
    def by_em(cls, x: FloatArray, p: int) -> Estimate:
        found = filled(x, np.zeros(len(x), dtype=np.intp), p)
        n = len(x)
        return cls(found.covariance * n / (n - 1), found.mean, found.n or 0, found.mean_rows)


def scores(found: Estimate, W: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """z-scores of the covariances and of the means, and the errors of the covariances."""
    upper = np.triu_indices(len(W))
    away = (W @ found.covariance @ W.T - np.eye(len(W)))[upper]
    away = away / np.where(upper[0] == upper[1], np.sqrt(2), 1)
    return away * np.sqrt(found.n), W @ found.mean * np.sqrt(found.of_mean), away


def study(seed: int, p: int, d: int, n: int, noise: float, share: float) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(d, p)) * np.geomspace(0.3, 2, p)
    variance = noise * np.sum(G**2) / d
    C = G @ G.T + variance * np.eye(d)
    V = np.linalg.eigh(C)[1][:, -p:]
    W = np.linalg.inv(np.linalg.cholesky(V.T @ C @ V)) @ V.T
    x = rng.normal(size=(n, p)) @ G.T + np.sqrt(variance) * rng.normal(size=(n, d))
    gaps = rng.random(x.shape) < share
    complete = x[~gaps.any(axis=1)]
    found = {"all": Estimate.of_complete(x), "em": Estimate.by_em(np.where(gaps, np.nan, x), p)}
    if len(complete) > d + 1:
        found["dropped"] = Estimate.of_complete(complete)
    return {name: [e.n / n, *scores(e, W)] for name, e in found.items()}


def main() -> None:
    parser = options(__doc__, studies=100)
    parser.add_argument("--seeds", choices=SEEDS, default="tune")
    given = parser.parse_args()
    header("latents", "features", "rows", "noise", "missing", "moments", "count as", "covariances",
           "means", "error")  # fmt: skip
    for (p, d, n), noise, share in product(SIZES, (0.0, 0.01, 0.3), (0.05, 0.2)):
        seeds = range(SEEDS[given.seeds], SEEDS[given.seeds] + given.studies)
        found = [study(seed, p, d, n, noise, share) for seed in seeds]
        least = np.sqrt(np.mean([np.square(f["all"][3]) for f in found]))
        for name in ("all", "dropped", "em"):
            own = [f[name] for f in found if name in f]
            if len(own) < len(found):
                continue
            worth, z, of_mean, away = (np.array([o[i] for o in own]) for i in range(4))
            inside = [f"{np.mean(np.abs(s) < 1.96):.3f}" for s in (z, of_mean)]
            error = np.sqrt(np.mean(np.square(away))) / least
            row(p, d, n, noise, share, name, f"{worth.mean():.3f}", *inside, f"{error:.2f}")


if __name__ == "__main__":
    main()
