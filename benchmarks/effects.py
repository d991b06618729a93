"""Effects, edges and latents from hard interventions: how close are they to the truth?

    python benchmarks/effects.py --part study client --worlds 12 --seeds judge

Parts:

- population: exact moments of confounded worlds. Largest error of latents, total and direct
  effects, and pairs that some client sees together and that stay open (100 worlds).
- study: samples of several clients. E1 and decided pairs of the order, root mean square error and
  interval coverage of effects, F1 of direct edges (all, and those above 0.05).
- client: samples of one client that accesses every latent. Correlation of its latents with the true
  ones, and F1 of direct edges.
- claim: interventions that are said to be hard. Share of clients and of studies with the finding
  `not-hard`: power where they are soft, false alarms where they are hard.
- malice: a fifth of the sites sends wrong effects. Pooled effects that move by more than two of
  their standard errors, with and without anything said about it.

Worlds of `--seeds choose` are for choosing constants, those of `--seeds judge` for judging them.
`python benchmarks/pages.py run --only effects` makes tables of docs/calibration.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from lies import malice, malice_table
from records import Record, Table, by_cell, run
from reporting import markdown, options
from threadpoolctl import threadpool_limits

import jigsaw_crl as jc
from jigsaw_crl.assembly.graph import DirectEffects
from jigsaw_crl.assembly.verdict import NO
from jigsaw_crl.truth.metrics import EdgeCounts, EffectScores, VerdictCounts

# First seed of each family. No test, example or other benchmark uses seeds in these ranges.
SEEDS = {"choose": 4_000_000, "judge": 5_000_000}
# Size of a direct effect, in standard deviations, that an edge of the second F1 must exceed.
VISIBLE = 0.05


@dataclass(frozen=True)
class Cell:
    """One kind of world, and what its interventions are said to be; n = 0: exact moments."""

    part: str = "study"
    kind: str = "hard"
    shift: float = 1.0
    n: int = 10_000
    clients: int = 15
    latent: int = 20
    coverage: float = 0.6
    said: Literal["hard", "soft"] = "hard"

    def world(self, seed: int) -> jc.simulate.World:
        protocol = jc.simulate.Intervention.named(self.kind, shift=self.shift)
        return jc.simulate.random_world(
            self.latent, self.clients, self.coverage, seed, intervention=protocol
        )


SAID: tuple[Literal["hard", "soft"], ...] = ("hard", "soft")
CELLS = {
    "population": [Cell("population", shift=s, n=0, clients=5, latent=10) for s in (1.0, 0.0)],
    "study": [
        Cell(shift=shift, clients=k, said=said)
        for shift in (1.0, 0.0)
        for k in (15, 5, 3)
        for said in SAID
    ],
    "client": [
        Cell("client", shift=shift, n=n, clients=1, latent=10, coverage=1.0)
        for shift in (1.0, 0.0)
        for n in (1_000, 10_000, 100_000)
    ],
    "claim": [
        Cell("claim", kind=kind, n=n, clients=5, latent=10)
        for kind in ("hard", "paper", "mild", "shrink")
        for n in (1_000, 10_000)
    ],
    "malice": [Cell("malice")],
}
# Parts with more worlds than `--worlds` says, because their worlds are cheap.
LEAST = {"population": 100, "client": 24, "claim": 24}


def population(world: jc.simulate.World, result: jc.Result) -> Record:
    """Largest errors, wrong verdicts, and open pairs that some client sees together."""
    latents, total, direct, unread = [0.0], [0.0], [0.0], 0
    together: set[tuple[str, str]] = set()
    for k, view in enumerate(world.views):
        fragment = result.fragments[view.name]
        labels, p = fragment.labels, len(fragment.labels)
        together |= {(a, d) for a in labels for d in labels if a != d}
        true = world.effects(labels)
        assert fragment.hard is not None
        T = np.where(np.eye(p, dtype=bool), 1.0, fragment.hard.total.value)
        total.append(_gap(T, true.total, all(fragment.hard.moved)))
        if np.isnan(T).any():
            # Two lines that nothing tells apart: possible only without a shift.
            unread += 1
            continue
        A = np.eye(p) - np.linalg.inv(T)
        direct.append(_gap(A, true.direct, all(fragment.hard.moved)))
        latents.append(_latent_error(world.truth(k), fragment))
    order = result.order
    both = world.effects(order.labels)
    found, effects = order.direct_effects, order.effects
    assert found is not None
    assert effects is not None
    # Edges that rest on a pair that nobody has together are not known exactly.
    exact = (found.error == 0) & (found.carried == 0)
    signed = bool(effects.oriented.all())
    direct.append(_gap(found.weight[exact], both.direct[exact], signed))
    counts = jc.metrics.verdict_counts(world.order, order)
    return {
        "clients": world.n_clients,
        "unread": unread,
        "latents": max(latents),
        "total": max(total),
        "direct": max(direct),
        "open": len(order.undetermined() & together),
        "pairs": len(together),
        "edges": int((exact & (both.direct != 0)).sum()),
        "all_edges": int((both.direct != 0).sum()),
        "wrong": counts.wrong_yes + counts.wrong_no + _wrong_edges(found, both),
        "unsigned": int((~np.isnan(effects.unsigned)).sum()),
        "districts": sum(
            len(d) > 1 for k in range(world.n_clients) for d in world.truth(k).districts
        ),
    }


def _wrong_edges(found: DirectEffects, true: jc.simulate.TrueEffects) -> int:
    """Edges that are stated or excluded against the truth."""
    pairs = np.argwhere(~np.eye(len(found.labels), dtype=bool)).tolist()
    said = [(found.verdict(a, d), abs(float(true.direct[a, d]))) for a, d in pairs]
    return sum(v == ("direct" if size == 0 else "not direct") for v, size in said)


def _gap(found: np.ndarray, true: np.ndarray, signed: bool) -> float:
    """Largest difference; of sizes where directions are arbitrary."""
    return float(np.nanmax(np.abs(found - true if signed else np.abs(found) - np.abs(true))))


def _latent_error(truth: jc.simulate.Truth, fragment: jc.Fragment) -> float:
    """Largest coefficient error of the latents, as functions of the true ones in unit variance."""
    at = [truth.labels.index(label) for label in fragment.labels]
    assert fragment.basis is not None
    deviation = np.sqrt(np.diag(np.linalg.inv(truth.marginal.precision())))
    read = (fragment.basis @ truth.mixing * deviation)[:, at]
    return float(np.abs(np.abs(read) - np.eye(len(at))).max())


def study(world: jc.simulate.World, result: jc.Result) -> Record:
    """Scores of the order, of effects and of edges."""
    order = result.order
    true = world.effects(order.labels)
    return {
        "E1": jc.metrics.global_f1(world.order, order),
        "E1_together": _e1_together(world, result),
        "wrong_no": _wrong_no(world, true, order),
        "counts": asdict(jc.metrics.verdict_counts(world.order, order)),
        "effects": asdict(jc.metrics.effect_scores(true, order)),
        "edges": asdict(jc.metrics.edge_counts(true, order)),
        "visible": asdict(jc.metrics.edge_counts(true, order, VISIBLE)),
        "missed": _missed(true, order),
        "latents": jc.metrics.latent_correlation(
            [world.truth(k) for k in range(world.n_clients)], result.fragments
        ),
    }


def _e1_together(world: jc.simulate.World, result: jc.Result) -> float:
    """E1 of the pairs that some client has both of."""
    together = {
        (a, d) for f in result.fragments.values() for a in f.labels for d in f.labels if a != d
    }
    guess = jc.metrics.scored_pairs(result.order)
    return jc.metrics.global_f1(world.order.pairs() & together, guess & together)


def _wrong_no(
    world: jc.simulate.World, true: jc.simulate.TrueEffects, order: jc.GlobalOrder
) -> list[tuple[float, bool]]:
    """Size of the total effect of every wrong "no", and whether its bound excludes it."""
    out = []
    for a, d in np.argwhere((order.verdicts == NO) & (true.total != 0)).tolist():
        if a != d and world.order.is_ancestor(order.labels[a], order.labels[d]):
            size = abs(float(true.total[a, d]))
            bounds = order.table.bounds
            above = bool(bounds.units[a, d] and size > bounds.value[a, d])
            out.append((round(size, 4), above))
    return out


def _missed(true: jc.simulate.TrueEffects, order: jc.GlobalOrder) -> list[float]:
    """Sizes of the edges that are not stated."""
    found = order.direct_effects
    return [
        round(abs(float(true.direct[a, d])), 4)
        for a, d in np.argwhere(true.direct != 0).tolist()
        if found is None or found.verdict(a, d) != "direct"
    ]


def claim(world: jc.simulate.World, result: jc.Result) -> Record:
    """Clients and labels named by `not-hard`, by their own data and across sites."""
    named = [f for f in result.diagnostics if f.check == "not-hard"]
    across = {f.regime for f in named if f.client is None}
    order = result.order
    stated = 0 if order.effects is None else int(order.effects.known.sum())
    scores = jc.metrics.effect_scores(world.effects(order.labels), order)
    return {
        "clients": world.n_clients,
        "named": len({f.client for f in named if f.client is not None}),
        "across": len(across),
        "study": bool(named),
        "stated": stated,
        "effects": asdict(scores),
    }


MEASURES = {
    "population": population,
    "study": study,
    "client": study,
    "claim": claim,
    "malice": malice,
}


def run_world(cell: Cell, family: str, number: int) -> Record:
    """Recover one world and measure what the cell's part asks for."""
    seed = SEEDS[family] + number
    world = cell.world(seed)
    record: Record = {"cell": asdict(cell), "seeds": family, "world": number}
    start = time.perf_counter()
    with threadpool_limits(1):
        # Samples of different sizes are independent: the size is part of their seed.
        clients = world.clients(cell.n or None, seed=seed + cell.n)
        result = jc.recover(clients, interventions=cell.said)
        record |= MEASURES[cell.part](world, result)
    return {**record, "seconds": time.perf_counter() - start}


def population_table(records: Iterable[Record]) -> str:
    """Largest errors from exact moments, and what stays open."""
    names = ("latents", "total", "direct")
    more = ("open of pairs seen together", "edges known exactly", "effects without a sign", "wrong")
    rows = [
        (
            f"shift {cell.shift:g}",
            f"{max(r[name] for r in found for name in names):.1e}",
            f"{sum(r['open'] for r in found)}/{sum(r['pairs'] for r in found):,}",
            f"{sum(r['edges'] for r in found):,}/{sum(r['all_edges'] for r in found):,}",
            sum(r["unsigned"] for r in found),
            sum(r["wrong"] for r in found),
        )
        for cell, found in by_cell(Cell, records).items()
    ]
    return markdown(("exact moments", "largest error", *more), rows)


def study_table(records: Iterable[Record]) -> str:
    """Scores of orders, effects, edges and latents; beside E1 that of the data called soft."""
    cells = by_cell(Cell, records)
    rows = []
    for cell, found in cells.items():
        if cell.said == "soft":
            continue
        soft = cells.get(replace(cell, said="soft"), [])
        size = f"{cell.clients} clients" if cell.clients > 1 else f"n = {cell.n:,}"
        counts = sum((VerdictCounts(**r["counts"]) for r in found), VerdictCounts())
        effects = sum((EffectScores(**r["effects"]) for r in found), EffectScores())
        edges = sum((EdgeCounts(**r["edges"]) for r in found), EdgeCounts())
        rows.append(
            (
                f"shift {cell.shift:g}, {size}",
                f"{np.mean([r['E1'] for r in found]):.3f}",
                f"{np.mean([r['E1'] for r in soft]):.3f}" if soft else "–",
                f"{counts.decided:.2f}",
                f"{counts.wrong_yes}/{counts.yes:,}",
                f"{counts.wrong_no}/{counts.no:,}",
                f"{effects.rms:.4f}",
                f"{effects.coverage:.3f}",
                f"{edges.f1:.2f}",
                f"{edges.stated - edges.right}/{edges.stated}",
                f"{np.mean([r['latents'] for r in found]):.3f}",
            )
        )
    order = ("E1", "called soft", "decided", "wrong yes", "wrong no")
    effect = ("rms error", "coverage", "edge F1", "false edges", "latents")
    return markdown(("studies", *order, *effect), rows)


def claim_table(records: Iterable[Record]) -> str:
    """How often a claim of "hard" is doubted, and what is stated then."""
    rows = []
    for cell, found in by_cell(Cell, records).items():
        effects = sum((EffectScores(**r["effects"]) for r in found), EffectScores())
        rows.append(
            (
                f"{cell.kind}, n = {cell.n:,}",
                f"{sum(r['named'] for r in found)}/{sum(r['clients'] for r in found)}",
                f"{sum(r['study'] for r in found)}/{len(found)}",
                f"{np.mean([r['stated'] for r in found]):.1f}",
                effects.coverage,
            )
        )
    names = ("clients named", "studies named", "effects left a study", "coverage of these")
    return markdown(("called hard", *names), rows)


SHOWN: dict[str, Callable[[list[Record]], str]] = {
    "population": population_table,
    "study": study_table,
    "client": study_table,
    "claim": claim_table,
    "malice": malice_table,
}
WORLDS = 12


def tasks_of(part: str, worlds: int = WORLDS) -> tuple[tuple[Cell, int], ...]:
    """The cells of a part, with their number of worlds."""
    return tuple((cell, max(worlds, LEAST.get(part, 0))) for cell in CELLS[part])


# The parts "population", which tests check too, and "malice" are on no page.
PUBLISHED = tuple(
    Table(f"effects: {part}", "docs/calibration.md", tasks_of(part), SHOWN[part])
    for part in CELLS
    if part not in ("population", "malice")
)


def main() -> None:
    parser = options(__doc__, worlds=WORLDS, jobs=2)
    parser.add_argument("--part", nargs="+", choices=CELLS, default=list(CELLS))
    parser.add_argument("--seeds", choices=SEEDS, default="choose")
    parser.add_argument("--out", type=Path, default=Path("build/effects.jsonl"))
    given = parser.parse_args()
    for part in given.part:
        tasks = tasks_of(part, given.worlds)
        records = run(Cell, run_world, tasks, given.seeds, given.jobs, given.out)
        print(SHOWN[part](records), end="\n\n")


if __name__ == "__main__":
    main()
