"""How often are the verdicts and probabilities of an order right? One table, from samples.

    python benchmarks/calibration.py --kind paper hard mild --shift 0 0.3 3 --worlds 12
    python benchmarks/calibration.py --graph chain root-hub --n 1e3 1e4 --seeds judge
    python benchmarks/calibration.py --kind hard --shift 1 --batches own apart --offset 0 0.1 0.3 \\
        --column yes no
    python benchmarks/pages.py run --only calibration

The last line runs the cells of `docs/calibration.md`. Every option that describes a world
takes several values, and a cell is one combination of them. Worlds of `--seeds choose` are for
choosing constants, those of `--seeds judge` for judging them; no world is in both. Each finished
world is one line of JSON in the file `--out`; what this code has measured is not measured again.

The first table holds E1 (mean over worlds), the share of ordered pairs with a verdict, and the
"yes" and "no" that are wrong. A "no" comes with a bound: the size of effect that
it excludes. Wrong "no" are counted twice, all of them and those whose true effect is larger than
the bound. A line below it names the world with the largest share of wrong "yes", and the findings.
The second table has, for each bin of stated probability, the share of pairs that are true beside
the mean stated probability.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from itertools import chain, product
from pathlib import Path
from typing import Any, Literal

import numpy as np
from records import Record, Table, by_cell, cell_name, run
from reporting import markdown, options
from threadpoolctl import threadpool_limits

import jigsaw_crl as jc
from jigsaw_crl.client.white import whiten
from jigsaw_crl.nullcone.reading import read, see
from jigsaw_crl.truth.metrics import VerdictCounts

# First seed of each family; no test, example or other benchmark uses seeds in these ranges. Those
# of `never_wrong.py` are "mend" and "fresh".
SEEDS = {"choose": 2_000_000, "judge": 3_000_000, "mend": 5_500_000, "fresh": 9_500_000}
# Findings that withhold verdicts although they are only told.
TOLD = {"nonlinear-response", "more-latents"}
BINS = ("below 1 %", "1–5 %", "5–20 %", "20–80 %", "80–95 %", "95–99 %", "above 99 %")


@dataclass(frozen=True)
class Cell:
    """One kind of world; the fields are the options of the command line."""

    kind: str = "paper"
    shift: float = 0.0
    n: int = 10_000
    clients: int = 15
    latent: int = 20
    coverage: float = 0.6
    graph: str = "er"
    strength: float = 1.0
    noise: str = "gaussian"
    penetrance: float = 1.0
    off_target: float = 0.0
    batches: str = "none"
    offset: float = 0.0
    column: str = "yes"
    claim: Literal["soft", "hard"] = "soft"
    read: str = "moments"
    features: float = 1.5
    sensor_noise: float = 0.0

    def layout(self) -> jc.simulate.Batches | None:
        """The batches of rows; `column` says whether the learner knows them."""
        if self.batches == "none":
            return None
        return jc.simulate.Batches(self.offset, self.batches, told=self.column == "yes")

    def world(self, seed: int) -> jc.simulate.World:
        protocol = jc.simulate.Intervention.named(
            self.kind,
            shift=self.shift,
            penetrance=self.penetrance,
            off_target=self.off_target,
        )
        return jc.simulate.random_world(
            self.latent,
            self.clients,
            self.coverage,
            seed,
            graph=self.graph,
            strength=self.strength,
            features=self.features,
            intervention=protocol,
        )

    def sites(self, world: jc.simulate.World, seed: int) -> list[jc.Client]:
        """Its clients: by "moments" drawn as those of rows, or by "rows", which are checked too.

        "rounded" rows have steps of a third of each feature's standard deviation. The noise of the
        sensors is a share of the features' spread.
        """
        noisy = [f"sensor-noise={self.sensor_noise**2}"] if self.sensor_noise else []
        if self.read == "moments":
            return world.clients(self.n, self.noise, seed, batches=self.layout(), departures=noisy)
        out = []
        for k in range(world.n_clients):
            control, regimes = world.rows(k, self.n, self.noise, seed)
            if self.read == "rounded":
                step = control.std(axis=0) / 3
                control, regimes = (
                    np.round(control / step),
                    {x: np.round(rows / step) for x, rows in regimes.items()},
                )
            out.append(
                jc.Client.from_samples(f"c{k}", observational=control, interventions=regimes)
            )
        return out

    def __str__(self) -> str:
        """The fields that differ from the defaults, after kind, shift and n."""
        first = f"{self.kind}, shift {self.shift:g}, n = {self.n:,}"
        return cell_name(self, first, skip=("kind", "shift", "n"))


# Without and with a shift of the mean.
BOTH: tuple[dict[str, Any], ...] = ({"kind": "paper"}, {"kind": "hard", "shift": 1.0})
FAMILIES = ("sparse", "dense", "chain", "tree", "mid-hub", "root-hub", "layered")
# Fields that `pooled_table` pools, or shows in columns of their own or in the words of the page.
POOLED = ("n", "latent", "coverage", "sensor_noise", "shift")
# The cells of docs/calibration.md, by section.
KINDS, FAMILIES_OF = "Kinds of interventions", "Families of graphs"
PAGE = {
    KINDS: [
        *(Cell(k, s) for k in ("paper", "hard", "mild", "shrink") for s in (0.0, 0.3, 1.0, 3.0)),
        Cell("hard", 2.0, strength=0.4),
        Cell("hard", 2.0, n=1_000),
    ],
    "Clients, rows, noise": [
        *(Cell(**x, clients=1, coverage=1.0) for x in BOTH),
        Cell("knock-down", n=100_000, clients=1, latent=10, coverage=1.0),
        *(Cell("hard", 2.0, 500, clients=1, latent=p, coverage=1.0) for p in (30, 60)),
        *(Cell(**x, clients=5) for x in BOTH),
        *(Cell(**x, n=n) for x in BOTH for n in (100, 300, 1_000, 100_000)),
        *(Cell(**x, noise="laplace") for x in BOTH),
    ],
    FAMILIES_OF: [Cell(n=n, graph=g) for n in (1_000, 10_000) for g in FAMILIES],
}
WORLDS = 12


def true_shares(world: jc.simulate.World) -> dict[tuple[str, str], float]:
    """The size of each effect in the unit of a bound, from exact moments.

    It is the mean of |⟨q_a, c_d⟩| / ‖c_d‖ over the clients that have both labels, and not in one
    district, where it cannot be told from hidden common causes.
    """
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for k in range(world.n_clients):
        client, truth = world.client(k), world.truth(k)
        district = {label: i for i, d in enumerate(truth.districts) for label in d}
        shares = np.abs(read(see(whiten(client)), len(client.labels)).sizes[0])
        for a, d in truth.order.pairs():
            share = float(shares[client.labels.index(a), client.labels.index(d)])
            if district[a] != district[d] and not np.isnan(share):
                found[a, d].append(share)
    return {pair: float(np.mean(shares)) for pair, shares in found.items()}


def above_bound(world: jc.simulate.World, order: jc.GlobalOrder) -> int:
    """How many wrong "no" have a true effect above their bound.

    Each is compared in the unit of its bound: as a total effect in standard deviations, or as a
    share of a change. A "no" without a bound, and an effect that no client shows, count as above.
    """
    wrong = [
        (a, d)
        for a, d in world.order.restrict(order.labels).pairs()
        if order.verdict(a, d) is jc.Verdict.NOT_ANCESTOR
    ]
    if not wrong:
        return 0
    shares, effects = true_shares(world), world.effects(order.labels)
    totals = dict(zip(product(effects.labels, repeat=2), effects.total.ravel(), strict=True))
    units = order.table.bounds.units

    def size(pair: tuple[str, str]) -> float:
        in_sd = units[order.indices(*pair)] > 0
        return abs(float(totals[pair])) if in_sd else shares.get(pair, np.inf)

    return sum(not size(pair) <= order.bound(*pair) for pair in wrong)


def run_world(cell: Cell, family: str, number: int) -> Record:
    """Recover one world and score it; clients that cannot be used leave every pair undecided."""
    seed = SEEDS[family] + number
    world = cell.world(seed)
    labels = sorted({x for k in range(world.n_clients) for x in world.truth(k).labels})
    record: Record = {"cell": asdict(cell), "seeds": family, "world": number}
    start = time.perf_counter()
    with threadpool_limits(1):
        try:
            result = jc.recover(cell.sites(world, seed), interventions=cell.claim)
        except jc.InputError as error:
            pairs = len(labels) * (len(labels) - 1)
            true = len(world.order.restrict(labels).pairs())
            return {
                **record,
                "E1": jc.metrics.global_f1(world.order, ()),
                "counts": asdict(VerdictCounts(pairs, true)),
                "above": 0,
                "bins": np.zeros((len(BINS), 3)).tolist(),
                "findings": ["refused"],
                "refused": str(error),
                "seconds": time.perf_counter() - start,
            }
        order = result.order
        return {
            **record,
            "E1": jc.metrics.global_f1(world.order, order),
            "counts": asdict(jc.metrics.verdict_counts(world.order, order, labels)),
            "above": above_bound(world, order),
            "bins": jc.metrics.reliability(world.order, order).tolist(),
            # What removes or withholds something, and what makes a client be read in another way.
            "findings": sorted(
                {f.check for f in result.diagnostics if f.severity != "info" or f.check in TOLD}
            ),
            "seconds": time.perf_counter() - start,
        }


def short_name(cell: Cell, without: Iterable[str] = ()) -> str:
    """A cell as the tables name it: its kind, and the fields that are not the usual ones."""
    return cell_name(cell, cell.kind, ("kind", "claim", "read", "coverage", *without))


def verdict_table(records: list[Record]) -> str:
    """E1, wrong verdicts, and wrong "no" above their bound; below it the worst world."""
    rows = []
    for cell, found in by_cell(Cell, records).items():
        counts = sum((VerdictCounts(**r["counts"]) for r in found), VerdictCounts())
        rows.append(
            (
                short_name(cell),
                f"{np.mean([r['E1'] for r in found]):.3f}",
                f"{counts.decided:.2f}",
                f"{counts.wrong_yes}/{counts.yes:,}",
                f"{counts.wrong_no}/{counts.no:,}",
                sum(r["above"] for r in found),
            )
        )
    table = markdown(("worlds", "E1", "decided", "wrong yes", "wrong no", "above bound"), rows)
    return f"{table}\n\n{worst_world(records)} Findings: {raised(records)}."


def wrong_yes(record: Record) -> float:
    """The share of the "yes" of one world that are wrong."""
    counts = VerdictCounts(**record["counts"])
    return counts.wrong_yes / counts.yes if counts.yes else 0.0


def worst_world(records: Iterable[Record]) -> str:
    """The world with the largest share of wrong "yes", in a sentence."""
    worst = max(records, key=wrong_yes)
    if not wrong_yes(worst):
        return "No *yes* is wrong."
    kind = short_name(Cell(**worst["cell"]))
    return f"In the worst world {100 * wrong_yes(worst):.1f} % of the *yes* are wrong ({kind})."


def raised(records: Iterable[Record]) -> str:
    """In how many worlds each finding that is more than information was raised."""
    count = Counter(name for r in records for name in r["findings"])
    return ", ".join(f"`{name}` in {n} worlds" for name, n in count.most_common()) or "none"


def total(records: Iterable[Record]) -> VerdictCounts:
    """The verdicts of several studies together."""
    return sum((VerdictCounts(**r["counts"]) for r in records), VerdictCounts())


def pooled_table(records: list[Record]) -> str:
    """E1 for each number of rows, and all wrong verdicts; sensor noise and rows are pooled."""
    pooled: dict[str, list[Record]] = {}
    for cell, found in by_cell(Cell, records).items():
        pooled.setdefault(short_name(cell, POOLED), []).extend(found)
    sizes = sorted({r["cell"]["n"] for r in records})
    rows = []
    for name, found in pooled.items():
        counts, above = total(found), sum(r["above"] for r in found)
        e1 = {n: [r["E1"] for r in found if r["cell"]["n"] == n] for n in sizes}
        rows.append(
            (
                name,
                len(found),
                *(f"{np.mean(e1[n]):.3f}" if e1[n] else "–" for n in sizes),
                f"{counts.decided:.2f}",
                f"{counts.wrong_yes}/{counts.yes:,}",
                f"{100 * max(map(wrong_yes, found)):.1f} %",
                f"{counts.wrong_no}/{counts.no:,}",
                f"{100 * above / max(counts.ancestors, 1):.1f} %",
            )
        )
    wrong = ("wrong yes", "worst study", "wrong no", "denied above the bound")
    scores = (*(f"E1, n = {n:,}" for n in sizes), "decided")
    return markdown(("studies", "number", *scores, *wrong), rows)


def bins_table(records: Iterable[Record]) -> str:
    """Stated probabilities and how many of these pairs are true, over all records."""
    bins = np.sum([r["bins"] for r in records], axis=0)
    rows = [
        (name, f"{n:,.0f}", f"{100 * stated / n:.2f} %", f"{100 * true / n:.2f} %")
        for name, (n, stated, true) in zip(BINS, bins, strict=True)
        if n
    ]
    return markdown(("stated probability", "pairs", "mean stated", "true"), rows)


SIMULATIONS = """\
# Verdicts that were wrong in simulations, in percent of their kind: the tables of
# docs/calibration.md, made with them by benchmarks/pages.py
kind,clients,rows,wrong_yes,wrong_no,worlds
"""


def write_more(records: list[Record], root: Path) -> None:
    """The pictures of the page, and the figures from which a report says how far to trust it."""
    from calibration_plots import save_pictures  # it loads matplotlib

    save_pictures(records, root / "docs" / "pictures")
    lines = []
    for cell, found in by_cell(Cell, records).items():
        c = sum((VerdictCounts(**r["counts"]) for r in found), VerdictCounts())
        kind = "hard" if cell.kind == "hard" else "soft"
        yes, no = (
            f"{100 * part / max(whole, 1):.1f}"
            for part, whole in ((c.wrong_yes, c.yes), (c.wrong_no, c.no))
        )
        lines.append(f'{kind},{cell.clients},{cell.n},{yes},{no},"{cell}"\n')
    path = root / "src" / "jigsaw_crl" / "report" / "simulations.csv"
    path.write_text(SIMULATIONS + "".join(lines), encoding="utf-8")


def published(name: str, cells: Iterable[Cell], show: Callable[[list[Record]], str]) -> Table:
    """A table of the page."""
    tasks = tuple((cell, WORLDS) for cell in cells)
    return Table(f"calibration {name}", "docs/calibration.md", tasks, show)


def shown(section: str) -> Table:
    """The table of a section; of the shifts it shows none and 1, and the picture has the others."""
    cells = [c for c in PAGE[section] if c.shift in (0.0, 1.0) or section != KINDS]
    return published(section.lower(), cells, verdict_table)


# Families of graphs are in the table of probabilities alone: `never_wrong.py` has more of them.
PUBLISHED = (
    *(shown(section) for section in PAGE if section != FAMILIES_OF),
    published("probabilities", chain.from_iterable(PAGE.values()), bins_table),
)


def main() -> None:
    parser = options(__doc__, worlds=WORLDS, jobs=2)
    for f in fields(Cell):
        parser.add_argument(
            f"--{f.name.replace('_', '-')}",
            nargs="+",
            default=[f.default],
            type=(lambda x: int(float(x))) if isinstance(f.default, int) else type(f.default),
            help=f"default: {f.default}",
        )
    parser.add_argument("--seeds", choices=SEEDS, default="choose")
    parser.add_argument("--out", type=Path, default=Path("build/calibration.jsonl"))
    given = vars(parser.parse_args())
    cells = [Cell(*values) for values in product(*(given[f.name] for f in fields(Cell)))]
    tasks = [(cell, given["worlds"]) for cell in cells]
    records = run(Cell, run_world, tasks, given["seeds"], given["jobs"], given["out"])
    print(verdict_table(records), bins_table(records), sep="\n\n")


if __name__ == "__main__":
    main()
