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

The first table holds E1 (mean and standard error over worlds), the share of ordered pairs with a
verdict, and the "yes" and "no" that are wrong. A "no" comes with a bound: the size of effect that
it excludes. Wrong "no" are counted twice, all of them and those whose true effect is larger than
the bound. The second table has, for each bin of stated probability, the share of pairs that are
true beside the mean stated probability.
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
from reporting import markdown, mean_and_error, options
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
# The cells of docs/calibration.md, by section.
PAGE = {
    "Kinds of interventions": [
        *(Cell(k, s) for k in ("paper", "hard", "mild", "shrink") for s in (0.0, 0.3, 1.0, 3.0)),
        Cell("hard", 2.0, strength=0.4),
        Cell("hard", 2.0, n=1_000),
    ],
    "One client": [
        *(Cell(**x, clients=1, coverage=1.0) for x in BOTH),
        Cell("knock-down", n=100_000, clients=1, latent=10, coverage=1.0),
        *(Cell("hard", 2.0, 500, clients=1, latent=p, coverage=1.0) for p in (30, 60)),
    ],
    "Five clients": [Cell(**x, clients=5) for x in BOTH],
    "Number of rows": [Cell(**x, n=n) for x in BOTH for n in (100, 300, 1_000, 100_000)],
    "Laplace noise": [Cell(**x, noise="laplace") for x in BOTH],
    "Families of graphs": [Cell(n=n, graph=g) for n in (1_000, 10_000) for g in FAMILIES],
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

    A "no" without a bound, and an effect that no client shows, count as above.
    """
    wrong = [
        (a, d)
        for a, d in world.order.restrict(order.labels).pairs()
        if order.verdict(a, d) is jc.Verdict.NOT_ANCESTOR
    ]
    if not wrong:
        return 0
    shares = true_shares(world)
    return sum(not shares.get(pair, np.inf) <= order.bound(*pair) for pair in wrong)


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


def verdict_table(records: Iterable[Record]) -> str:
    """E1, wrong verdicts of all worlds and of the worst, and wrong "no" above their bound."""
    rows = []
    for cell, found in by_cell(Cell, records).items():
        each = [VerdictCounts(**r["counts"]) for r in found]
        counts = sum(each, VerdictCounts())
        worst = max((c.wrong_yes / c.yes for c in each if c.yes), default=0.0)
        rows.append(
            (
                cell,
                len(found),
                mean_and_error([r["E1"] for r in found]),
                counts.decided,
                f"{counts.wrong_yes} of {counts.yes:,}",
                f"{100 * worst:.1f} %" if counts.wrong_yes else "–",
                f"{counts.wrong_no} of {counts.no:,}",
                sum(r["above"] for r in found),
                raised(found),
            )
        )
    wrong = ("wrong yes", "worst world", "wrong no", "above bound")
    return markdown(("worlds", "number", "E1", "decided", *wrong, "findings"), rows)


def raised(records: Iterable[Record]) -> str:
    """In how many worlds each finding that is more than information was raised."""
    count = Counter(name for r in records for name in r["findings"])
    return ", ".join(f"`{name}` {n}" for name, n in count.most_common()) or "–"


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


PUBLISHED = (
    *(published(section.lower(), cells, verdict_table) for section, cells in PAGE.items()),
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
