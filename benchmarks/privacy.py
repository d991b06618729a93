"""Evidence with differential privacy: how much noise would it need, and what is left of the order?

    python benchmarks/privacy.py --worlds 3

One row of a site may change every number of its fragment, each from one end of its range to the
other: log Bayes factors of N pairs and hypotheses, held within ± M (M = log 10,000, beyond which
the assembly counts nothing). So the Euclidean sensitivity is 2 M √N, and the Gaussian mechanism
needs noise of standard deviation 2 M √N √(2 log(1.25/δ)) / ε on each number. (No smaller bound
holds for all rows: one far outlier can change every covariance.) The table has that standard
deviation and E1 of the order from the noisy fragments, for δ = 10⁻⁶, 15 sites, 20 labels and 10,000
rows per regime.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from assembly_liars import study
from reporting import header, mean_and_error, options, row

import jigsaw_crl as jc
from jigsaw_crl.evidence.priors import MODEL_ERROR
from jigsaw_crl.fragment.fragment import Fragment

EPSILONS = (1.0, 10.0, 100.0, 1000.0, 10000.0)
DELTA = 1e-6
MOST = -np.log(MODEL_ERROR)
# First seed; no test or other benchmark uses seeds in this range.
SEED = 8_400_000


def main() -> None:
    given = options(__doc__, worlds=3, latent=20, clients=15, n=10_000).parse_args()
    studies = [study(given.latent, given.clients, given.n, SEED + k) for k in range(given.worlds)]
    header("ε per fragment", "noise (log-odds)", "E1")
    row("none", 0.0, mean_and_error([jc.metrics.global_f1(w.order, o) for w, _, o in studies]))
    for epsilon in EPSILONS:
        sizes, scores = [], []
        for number, (world, fragments, _) in enumerate(studies):
            rng = np.random.default_rng([SEED, number])
            sizes += [noise(f, epsilon) for f in fragments]
            order = jc.assemble([noisy(f, epsilon, rng) for f in fragments])
            scores.append(jc.metrics.global_f1(world.order, order))
        row(f"{epsilon:g}", float(np.mean(sizes)), mean_and_error(scores))


def noise(fragment: Fragment, epsilon: float) -> float:
    """The standard deviation that the Gaussian mechanism needs."""
    assert fragment.bayes is not None
    b = fragment.bayes
    count = b.ancestor.size + b.district.size + (0 if b.lean is None else b.lean.size)
    return float(2 * MOST * np.sqrt(count) * np.sqrt(2 * np.log(1.25 / DELTA)) / epsilon)


def noisy(fragment: Fragment, epsilon: float, rng: np.random.Generator) -> Fragment:
    """The fragment with bounded factors and noise on each."""
    assert fragment.bayes is not None
    size, b = noise(fragment, epsilon), fragment.bayes.bounded()
    symmetric = rng.normal(0.0, size, b.district.shape)
    symmetric = np.triu(symmetric, 1) + np.triu(symmetric, 1).T
    return replace(
        fragment,
        bayes=replace(
            b,
            ancestor=b.ancestor + rng.normal(0.0, size, b.ancestor.shape),
            district=b.district + symmetric,
            lean=None if b.lean is None else b.lean + symmetric,
        ),
    )


if __name__ == "__main__":
    main()
