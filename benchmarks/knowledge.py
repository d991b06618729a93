"""What does it gain to say what is known before the data, and is wrong knowledge named?

    python benchmarks/pages.py try --only knowledge --worlds 2
    python benchmarks/pages.py run --only knowledge

Worlds of the paper's sensitivity study: 15 clients, 20 latents, each client with a share of .6 of
them. Three tiers of about the same size are given that agree with the truth: labels by the number
of their ancestors. The columns are E1, the share of ordered pairs with a verdict and the share of
verdicts that are wrong, over all pairs and over those that the tiers do not state. Then a pair that
is true is said the other way round, four pairs a world: a sentence says how often
`knowledge-contradicted` names it, of all such pairs and of those that the data alone decide.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

import numpy as np
from records import Record, Table, by_cell
from reporting import markdown
from threadpoolctl import threadpool_limits

import jigsaw_crl as jc
from jigsaw_crl.assembly.conclusion import conclude
from jigsaw_crl.assembly.order import GlobalOrder, Options

# First seed of each family. No test, example or other benchmark uses seeds in these ranges.
SEEDS = {"choose": 7_350_000, "judge": 7_300_000}
PAIRS = 4
WORLDS = 8


@dataclass(frozen=True)
class Cell:
    """Rows per regime."""

    rows: int


CELLS = [Cell(rows) for rows in (100, 300)]


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
    out = [float(jc.metrics.global_f1(truth, order))]
    for some in (~np.eye(len(true), dtype=bool), ~np.eye(len(true), dtype=bool) & ~stated):
        verdicts = order.verdicts[some]
        decided = verdicts != -1
        wrong = (verdicts == 1) != true[some]
        out += [float(decided.mean()), float(wrong[decided].mean())]
    return out


def run_world(cell: Cell, family: str, number: int) -> Record:
    """Scores with and without tiers, and whether knowledge that is wrong is named."""
    seed = SEEDS[family] + number
    world = jc.simulate.random_world(20, 15, 0.6, seed=seed)
    with threadpool_limits(1):
        plain = jc.recover(world.clients(n_samples=cell.rows, seed=seed)).order
        known = jc.Knowledge(tiers_of(world.order.restrict(plain.labels)))
        stated = known.facts(plain.labels)[1]
        told = conclude(plain.fragments, options=Options(knowledge=known)).order
        pairs = sorted(world.order.restrict(plain.labels).pairs())
        drawn = np.random.default_rng(seed).choice(len(pairs), min(PAIRS, len(pairs)), False)
        named = []
        for a, d in (pairs[k] for k in drawn):
            wrong = Options(knowledge=jc.Knowledge(ancestor=[(d, a)]))
            found = conclude(plain.fragments, options=wrong).findings
            hit = any(f.check == "knowledge-contradicted" for f in found)
            named.append([hit, plain.verdict(a, d) is jc.Verdict.ANCESTOR])
    return {
        "cell": asdict(cell),
        "seeds": family,
        "world": number,
        "not given": scores(plain, world.order, stated),
        "given": scores(told, world.order, stated),
        "named": named,
    }


def gain_table(records: Iterable[Record]) -> str:
    """Scores with and without tiers."""
    rows = [
        (cell.rows, word, *np.mean([r[word] for r in found], axis=0))
        for cell, found in by_cell(Cell, records).items()
        for word in ("not given", "given")
    ]
    rest = ("decided of the rest", "wrong of the rest")
    return markdown(("rows per regime", "tiers", "E1", "decided", "wrong", *rest), rows)


def page_table(records: list[Record]) -> str:
    """Scores, and below them how often wrong knowledge is named."""
    cases = {
        cell.rows: [pair for r in found for pair in r["named"]]
        for cell, found in by_cell(Cell, records).items()
    }
    told = ", and ".join(
        f"with {rows:,} rows in {sum(hit for hit, _ in named)} of {len(named)} cases "
        f"({sum(hit for hit, firm in named if firm)} of the {sum(firm for _, firm in named)} that "
        "the data alone decide)"
        for rows, named in cases.items()
    )
    return (
        f"{gain_table(records)}\n\nA true pair that was said the other way round was named {told}."
    )


PUBLISHED = (
    Table("knowledge", "docs/howto/knowledge.md", tuple((c, WORLDS) for c in CELLS), page_table),
)
