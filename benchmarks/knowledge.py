"""What does it gain to say what is known before the data, and is wrong knowledge named?

    python benchmarks/knowledge.py --n 100 300 --worlds 8

Worlds of the paper's sensitivity study: 15 clients, 20 latents, each client with a share of .6 of
them. Three tiers of about the same size are given that agree with the truth: labels by the number
of their ancestors. The columns are E1, the share of ordered pairs with a verdict and the share of
verdicts that are wrong, over all pairs and over those that the tiers do not state. Then a pair that
is true is said the other way round, four pairs a world: the last columns say how often
`knowledge-contradicted` names it, of all such pairs and of those that the data alone decide.
"""

from __future__ import annotations

import argparse

import numpy as np

import jigsaw_crl as jc
from jigsaw_crl.assembly.conclusion import conclude
from jigsaw_crl.assembly.order import GlobalOrder, Options

# No test, example or other benchmark uses seeds from here on.
FIRST_SEED = 7_300_000
PAIRS = 4


def tiers_of(order: jc.PartialOrder[str]) -> list[list[str]]:
    """Three tiers that agree with an order."""
    depth = order.matrix.sum(axis=0)
    ranked = [order.elements[i] for i in np.argsort(depth, kind="stable")]
    cuts = [len(ranked) // 3, 2 * len(ranked) // 3]
    return [ranked[: cuts[0]], ranked[cuts[0] : cuts[1]], ranked[cuts[1] :]]


def scores(order: GlobalOrder, truth: jc.PartialOrder[str], stated: np.ndarray) -> list[float]:
    """E1, share decided and share wrong, of all pairs and of those that are not stated."""
    at = [truth.index(label) for label in order.labels]
    true = truth.matrix[np.ix_(at, at)]
    out = [jc.metrics.global_f1(truth, order)]
    for some in (~np.eye(len(true), dtype=bool), ~np.eye(len(true), dtype=bool) & ~stated):
        verdicts = order.verdicts[some]
        decided = verdicts != -1
        wrong = (verdicts == 1) != true[some]
        out += [float(decided.mean()), float(wrong[decided].mean())]
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, nargs="+", default=[100, 300])
    parser.add_argument("--worlds", type=int, default=8)
    given = parser.parse_args()
    print("| rows | tiers | E1 | decided | wrong | decided of the rest | wrong of the rest |")
    print("|---|---|---|---|---|---|---|")
    named: dict[int, list[bool]] = {}
    firm: dict[int, list[bool]] = {}
    for n in given.n:
        rows: dict[str, list[list[float]]] = {"not given": [], "given": []}
        for seed in range(FIRST_SEED, FIRST_SEED + given.worlds):
            world = jc.simulate.random_world(20, 15, 0.6, seed=seed)
            plain = jc.recover(world.clients(n_samples=n, seed=seed)).order
            known = jc.Knowledge(tiers_of(world.order.restrict(plain.labels)))
            stated = known.facts(plain.labels)[1]
            told = conclude(plain.fragments, options=Options(knowledge=known)).order
            rows["not given"].append(scores(plain, world.order, stated))
            rows["given"].append(scores(told, world.order, stated))
            rng = np.random.default_rng(seed)
            pairs = sorted(world.order.restrict(plain.labels).pairs())
            for k in rng.choice(len(pairs), size=min(PAIRS, len(pairs)), replace=False):
                a, d = pairs[k]
                wrong = jc.Knowledge(ancestor=[(d, a)])
                found = conclude(plain.fragments, options=Options(knowledge=wrong)).findings
                hit = any(f.check == "knowledge-contradicted" for f in found)
                named.setdefault(n, []).append(hit)
                if plain.verdict(a, d) is jc.Verdict.ANCESTOR:
                    firm.setdefault(n, []).append(hit)
        for word, values in rows.items():
            mean = " | ".join(f"{x:.3f}" for x in np.mean(values, axis=0))
            print(f"| {n} | {word} | {mean} |", flush=True)
    for n in given.n:
        print(f"{n} rows: named {np.mean(named[n]):.2f} of {len(named[n])}; of those that the data "
              f"alone decide {np.mean(firm[n]):.2f} of {len(firm[n])}")  # fmt: skip


if __name__ == "__main__":
    main()
