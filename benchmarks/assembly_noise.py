"""Assembly of statements that are wrong at a known or unknown rate: F1 and decided pairs.

python benchmarks/assembly_noise.py --worlds 100
"""

from __future__ import annotations

import time

import numpy as np
from assembly_corruption import flipped, perfect, weighed
from reporting import header, options, row, share

import jigsaw_crl as jc
from jigsaw_crl.base.order import transitive_closure
from jigsaw_crl.fragment.fragment import YES
from jigsaw_crl.truth.metrics import VerdictCounts


def main() -> None:
    parser = options(__doc__, worlds=100, latent=20, clients=15)
    parser.add_argument("--rates", type=float, nargs="*", default=[0.01, 0.05, 0.1, 0.2])
    given = parser.parse_args()
    names = ("F1", "F1 Algorithm 3", "decided", "of these wrong", "converged", "s")
    header("rate", "log-odds", *names)
    for rate in given.rates:
        for known in (True, False):
            means, counts = [], VerdictCounts()
            for seed in range(given.worlds):
                world = jc.simulate.random_world(given.latent, given.clients, 0.6, seed=seed)
                rng = np.random.default_rng([seed, 5])
                spoilt = [flipped(f, rate, rng) for f in perfect(world)]
                fragments = [weighed(f, rate) for f in spoilt] if known else spoilt
                start = time.perf_counter()
                order = jc.assemble(fragments)
                seconds = time.perf_counter() - start
                counts += jc.metrics.verdict_counts(world.order, order)
                converged = order.convergence is None or order.convergence.converged
                f1 = jc.metrics.global_f1(world.order, order)
                means.append((f1, union_f1(spoilt, world), converged, seconds))
            f1, baseline, agreed, spent = np.mean(means, axis=0)
            wrong = share(counts.wrong_yes + counts.wrong_no, counts.yes + counts.no)
            how = "given" if known else "estimated"
            row(rate, how, f1, baseline, counts.decided, wrong, agreed, spent)


def union_f1(fragments: list[jc.Fragment], world: jc.simulate.World) -> float:
    """F1 of the union of all positive statements, closed: what Algorithm 3 does with statements."""
    position = {label: i for i, label in enumerate(world.labels)}
    relation = np.zeros((len(position), len(position)), dtype=bool)
    for fragment in fragments:
        where = [position[label] for label in fragment.labels]
        assert fragment.statements is not None
        relation[np.ix_(where, where)] |= fragment.statements.ancestor == YES
    closed = transitive_closure(relation)
    np.fill_diagonal(closed, False)
    pairs = {(world.labels[a], world.labels[d]) for a, d in zip(*np.nonzero(closed), strict=True)}
    return jc.metrics.global_f1(world.order, pairs)


if __name__ == "__main__":
    main()
