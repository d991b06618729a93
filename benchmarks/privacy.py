"""What noise or coarse steps would hide of single rows, and what they leave of the order.

    python benchmarks/privacy.py --worlds 3

Differential privacy: one row of a site may change every number of its fragment, each from one end
of its range to the other: log Bayes factors of N pairs and hypotheses, held within ± M (M = log
10,000, beyond which the assembly counts nothing). So the Euclidean sensitivity is 2 M √N, and the
Gaussian mechanism needs noise of standard deviation 2 M √N √(2 log(1.25/δ)) / ε on each number. (No
smaller bound holds for all rows: one far outlier can change every covariance.) The first table has
that standard deviation and E1 of the order from the noisy fragments, for δ = 10⁻⁶, 15 sites, 20
labels and 10,000 rows per regime.

Coarse steps: somebody knows all rows of a site but one, and sees the fragment, whose log factors
are rounded to a step, and its shares to as many errors of theirs (these to a power of two). The
fragment is computed without that row: if it differs, the row was in it. The second table has in how
many of 40 trials a row of the control shows (one drawn at random; the site has 6 labels), for few
and many rows per regime, and E1 of the order in the studies above.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from assembly_liars import study
from reporting import header, mean_and_error, options, row

import jigsaw_crl as jc
from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.evidence.priors import MODEL_ERROR
from jigsaw_crl.federated.disclosure import rounded
from jigsaw_crl.fragment.fragment import Fragment

# The step of fragments first; at the last one most factors are 0.
STEPS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)
TRIALS, FEW, MANY = 40, 300, 10_000
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
    print()
    header("step", f"shown, {FEW} rows", f"shown, {MANY:,} rows", "E1")
    pairs = {n: [with_and_without(n, SEED + k) for k in range(TRIALS)] for n in (FEW, MANY)}
    for step in STEPS:
        seen = [sum(text(a, step) != text(b, step) for a, b in pairs[n]) for n in pairs]
        scores = [
            jc.metrics.global_f1(w.order, jc.assemble([coarse(f, step) for f in fragments]))
            for w, fragments, _ in studies
        ]
        row(f"{step:g}", *(f"{count} of {TRIALS}" for count in seen), mean_and_error(scores))


def with_and_without(n: int, seed: int) -> tuple[Fragment, Fragment]:
    """Two fragments of a site whose rows differ by one of the control."""
    control, regimes = jc.simulate.random_world(6, 1, 1.0, seed).rows(0, n, "gaussian", seed)
    gone = np.random.default_rng(seed).integers(n)

    def fragment(rows: FloatArray) -> Fragment:
        client = jc.Client.from_samples("site", observational=rows, interventions=regimes)
        # Rounded as when it leaves the site; the number of rows does not show the row.
        return jc.Fragment.from_json(rounded(jc.recover_fragment(client)).to_json())

    return fragment(control), fragment(np.delete(control, gone, axis=0))


def coarse(fragment: Fragment, step: float) -> Fragment:
    """The fragment with its log factors rounded to a step."""
    b = fragment.bayes
    assert b is not None

    def to(x: FloatArray) -> FloatArray:
        return np.asarray(np.round(x / step) * step + 0.0)

    lean = None if b.lean is None else to(b.lean)
    own = replace(b, ancestor=to(b.ancestor), district=to(b.district), lean=lean)
    shares = fragment.shares
    if shares is not None:
        error = np.exp2(np.round(np.log2(np.maximum(shares.error, 1e-9))))
        value = np.round(shares.value / (step * error)) * step * error
        shares = replace(shares, value=value, error=error)
    return replace(fragment, bayes=own, shares=shares)


def text(fragment: Fragment, step: float) -> str:
    """All that somebody sees of the fragment but its findings, which are sentences."""
    return replace(coarse(fragment, step), findings=()).to_json()


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
