"""What do departures of the rows from the model do to the answer, and are they named?

    python benchmarks/robustness.py --worlds 3 --seeds judge --out build/robustness.jsonl
    python benchmarks/robustness.py --departure autocorrelation=0.8 outliers=0.01x10
    python benchmarks/robustness.py --departure outliers=0.01x10 --asked none trim
    python benchmarks/robustness.py --clean --worlds 50 --out build/clean.jsonl
    python benchmarks/robustness.py --clean --graph star dense --worlds 200 --out build/graphs.jsonl
    python benchmarks/robustness.py --page

Without `--departure`, every departure of the page is run, at each of its sizes. `--asked` is what
the user asks for: `none`, or a remedy of `Client.from_table` (`trim`, `group`, `missing`, `em`).
`--clean` has no departure: it counts false alarms at several numbers of rows and of sensors; with
`--graph`, in full studies of these families of graphs, kinds of interventions and numbers of rows.
`--seeds tune` is for choosing constants, `--seeds judge` for judging them. Each finished world is
one line of JSON in the file `--out`, and a world that is there is not computed again: choose
another file after a change of the code. `--page` writes `docs/robustness.md` and its picture from
the files in `docs/robustness`.

Columns: E1 (mean and standard error over worlds), the share of ordered pairs with a verdict, the
share of "yes" and of "no" that are wrong, the share of worlds in which a finding was raised, and
the share of the findings that name the departure. A finding counts once per client; information
counts only if it names the departure.
"""

from __future__ import annotations

import inspect
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from records import Record, by_cell, cell_name, run
from reporting import header, mean_and_error, options, row
from threadpoolctl import threadpool_limits

import jigsaw_crl as jc
from jigsaw_crl.diagnostics import check_study
from jigsaw_crl.truth.metrics import VerdictCounts

# First seed of each family. No test, example or other benchmark uses seeds in these ranges.
SEEDS = {"tune": 6_000_000, "judge": 7_000_000}


@dataclass(frozen=True)
class Cell:
    """One kind of study: what departs, what the user asks for, and its size.

    Cells with the same number of the `first` world have the same worlds and the same noise.
    """

    departure: str = ""
    asked: str = "none"
    n: int = 10_000
    latent: int = 20
    clients: int = 15
    features: float = 1.5
    kind: str = "paper"
    shift: float = 0.0
    graph: str = "er"
    first: int = 0

    @property
    def departures(self) -> list[str]:
        return self.departure.split()

    def world(self, seed: int) -> jc.simulate.World:
        protocol = jc.simulate.Intervention.named(self.kind, shift=self.shift)
        return jc.simulate.random_world(
            self.latent,
            self.clients,
            0.6,
            seed,
            graph=self.graph,
            features=self.features,
            intervention=protocol,
        )

    def __str__(self) -> str:
        return cell_name(self, self.departure or "none", skip=("departure", "first"))


@dataclass(frozen=True)
class Remedy:
    """What a user passes to `Client.from_table`: the parameter and its value."""

    parameter: str
    value: Any

    @property
    def exists(self) -> bool:
        return self.parameter in inspect.signature(jc.Client.from_table).parameters


REMEDIES = {
    "trim": Remedy("trim", 0.05),
    "group": Remedy("group", "subject"),
    "missing": Remedy("missing", "drop"),
    "em": Remedy("missing", "em"),
}


@dataclass(frozen=True)
class Row:
    """A departure of the page.

    Parameters
    ----------
    name : str
    sizes : tuple of str
    reasons : tuple of str
        The findings that name it.
    remedy : str
        What the user can ask for; several are separated by spaces.
    also : tuple of str
        Findings that are true without naming it; they are not counted.
    """

    name: str
    sizes: tuple[str, ...]
    reasons: tuple[str, ...]
    remedy: str = ""
    also: tuple[str, ...] = ()


# `unclear-regime` names heavy tails or non-linear sensors among its reasons where tails say so.
# What a sensor bends is noise for a linear one.
NOISE = ("sensor-noise", "uneven-noise")
CURVED = ("not-linear", "leaning-lines", "light-tails", "excess-spread", "unclear-regime")
ROWS = (
    Row("autocorrelation", ("0.5", "0.7", "0.8", "0.9"), ("dependent-rows",)),
    Row("subjects", ("0.3x20", "0.5x20"), ("dependent-rows", "excess-spread"), "group"),
    Row("t-noise", ("5", "3"), ("heavy-tails", "unclear-regime")),
    Row("lognormal-noise", ("0.5", "1"), ("heavy-tails", "unclear-regime")),
    Row("outliers", ("0.001x10", "0.01x10"), ("outliers", "heavy-tails"), "trim"),
    Row("batch-offsets", ("0.1", "0.3"), ("batch-offset",)),
    Row("gain-drift", ("0.01", "0.05"), ("drifting-gains",)),
    Row("uneven-sensors", ("10x0.01", "100x0.01"), ("uneven-noise",), also=("sensor-noise",)),
    Row("off-target", ("0.1", "0.3", "1x0.1", "1x0.3"), ("several-targets", "off-target")),
    Row("penetrance", ("0.8", "0.5"), ("penetrance",)),
    Row("missing", ("0.01", "0.05", "0.2"), ("missing-values",), "missing em"),
    Row("nonlinear-system", ("0.25", "0.5"), CURVED, also=NOISE),
    Row("nonlinear-sensors", ("0.1", "0.25"), CURVED, also=NOISE),
    Row("other-label", ("2", "4"), ("label-differs",)),
    Row("lacks-edge", ("1", "3"), ("sites-differ",)),
)


def page_cells(**changes: Any) -> list[Cell]:
    """The cells of the page: no departure, and each one at each size, asked for and not."""
    cells = [Cell(**changes)]
    for r in ROWS:
        for asked in ("none", *r.remedy.split()):
            if asked == "none" or REMEDIES[asked].exists:
                cells += [Cell(f"{r.name}={size}", asked, **changes) for size in r.sizes]
    return cells


def clean_cells() -> list[Cell]:
    """Small studies without a departure: rows and sensors vary, without and with sensor noise."""
    sizes = product(("", "sensor-noise=0.01"), (1.5, 10.0, 50.0), (300, 1_000, 10_000))
    # Each cell has worlds of its own, so that all cells together count as so many more studies.
    return [
        Cell(noise, n=n, latent=8, clients=4, features=features, first=1_000 * i)
        for i, (noise, features, n) in enumerate(sizes, 1)
    ]


def graph_cells(graphs: Iterable[str]) -> list[Cell]:
    """Full studies without a departure: families of graphs, kinds of interventions and rows."""
    kinds = (("paper", 0.0), ("hard", 0.0), ("hard", 1.0))
    sizes = product(graphs, kinds, (1_000, 10_000, 100_000))
    return [Cell(graph=graph, kind=kind, shift=shift, n=n) for graph, (kind, shift), n in sizes]


def client_of(cell: Cell, rows: jc.simulate.Rows) -> jc.Client:
    """The client as a user makes it: rows, the remedy that is asked for, no number of latents."""
    if cell.asked == "none":
        return jc.Client.from_samples(rows.client, **rows.arguments())
    remedy = REMEDIES[cell.asked]
    asked = {remedy.parameter: remedy.value}
    return jc.Client.from_table(table_of(rows, cell.asked == "group"), name=rows.client, **asked)


def table_of(rows: jc.simulate.Rows, subjects: bool) -> pa.Table:
    """The rows as one table, with the column of subjects where it is asked for."""
    regimes, columns = rows.regimes, dict[str, pa.Array]()
    columns["regime"] = pa.array(np.repeat(list(regimes), [len(x) for x in regimes.values()]))
    if subjects:
        assert rows.subject is not None  # the departure of this remedy
        columns["subject"] = pa.array(np.concatenate(rows.subject))
    X = np.vstack(list(regimes.values()))
    for i in range(X.shape[1]):
        columns[f"x{i + 1}"] = pa.array(X[:, i], from_pandas=True)
    return pa.table(columns)


def run_world(cell: Cell, family: str, number: int) -> Record:
    """Recover one world and score it; a study that is refused leaves every pair undecided."""
    seed = SEEDS[family] + cell.first + number
    world = cell.world(seed)
    labels = sorted({x for k in range(world.n_clients) for x in world.truth(k).labels})
    true = len(world.order.restrict(labels).pairs())
    record: Record = {"cell": asdict(cell), "seeds": family, "world": number, "E1": 0.0}
    record["counts"] = asdict(VerdictCounts(len(labels) * (len(labels) - 1), true))
    start, clients = time.perf_counter(), list[jc.Client]()
    with threadpool_limits(1):
        try:
            for k in range(world.n_clients):
                rows = world.sample(k, cell.n, seed=seed, departures=cell.departures)
                clients.append(client_of(cell, rows))
            result = jc.recover(clients)
            findings = result.diagnostics
            record["E1"] = jc.metrics.global_f1(world.order, result.order)
            record["counts"] = asdict(jc.metrics.verdict_counts(world.order, result.order, labels))
        except jc.InputError as error:
            whole = len(clients) == world.n_clients
            findings = check_study(clients).findings if whole else ()
            record["refused"] = str(error)
    found = {(f.check, f.severity, f.client) for f in findings}
    tally = Counter(f"{severity} {check}" for check, severity, _ in found)
    return {**record, "findings": dict(tally), "seconds": round(time.perf_counter() - start, 1)}


def raised(record: Record, reasons: Iterable[str], also: Iterable[str] = ()) -> tuple[int, int]:
    """How many findings were raised in a world, and how many of them name the departure."""
    named, every = 0, 0
    for key, count in record["findings"].items():
        severity, check = key.split(" ")
        named += count * (check in reasons)
        every += count * (check in reasons or (severity != "info" and check not in also))
    return every, named


def percent(part: int, whole: int) -> str:
    """`part / whole` in percent; a dash when there is nothing to divide by."""
    return f"{100 * part / whole:.1f} %" if whole else "–"


@dataclass(frozen=True)
class Score:
    """One row of the table.

    Parameters
    ----------
    E1 : list of float
        One number a world.
    counts : VerdictCounts
    alarmed : float
        Share of the worlds in which a finding was raised.
    raised, named : int
        Findings that were raised, and those of them that name the departure.
    refused : int
        Worlds without an answer.
    """

    E1: list[float]
    counts: VerdictCounts
    alarmed: float
    raised: int
    named: int
    refused: int

    @classmethod
    def of(cls, cell: Cell, records: list[Record]) -> Score:
        own = [r for r in ROWS if r.name in {d.split("=")[0] for d in cell.departures}]
        reasons, also = {x for r in own for x in r.reasons}, {x for r in own for x in r.also}
        found = np.array([raised(r, reasons, also) for r in records])
        every, named = (int(x) for x in found.sum(axis=0))
        return cls(
            [r["E1"] for r in records],
            sum((VerdictCounts(**r["counts"]) for r in records), VerdictCounts()),
            float(np.mean(found[:, 0] > 0)),
            every,
            named,
            sum("refused" in r for r in records),
        )

    def texts(self) -> list[str]:
        """The figures, in the order of `COLUMNS`."""
        c = self.counts
        return [
            mean_and_error(self.E1),
            f"{c.decided:.3f}",
            percent(c.wrong_yes, c.yes),
            percent(c.wrong_no, c.no),
            f"{self.alarmed:.2f}",
            percent(self.named, self.raised),
            str(self.refused),
        ]


COLUMNS = ("E1", "decided", "wrong yes", "wrong no", "finding raised", "right reason", "refused")


def print_table(records: Iterable[Record]) -> None:
    """One row a cell."""
    header("departure", "worlds", *COLUMNS, "commonest findings", "s a world")
    for cell, found in by_cell(Cell, records).items():
        total: Counter[str] = sum((Counter(r["findings"]) for r in found), Counter())
        row(
            cell,
            len(found),
            *Score.of(cell, found).texts(),
            ", ".join(f"{key} {n}" for key, n in total.most_common(4)),
            f"{np.mean([r['seconds'] for r in found]):.1f}",
        )


def alarms(cell: Cell, records: Iterable[Record]) -> Counter[str]:
    """In how many studies each warning or error was raised; what is there is no false alarm."""
    true = {d.split("=")[0] for d in cell.departures}
    return Counter(
        check
        for record in records
        for check in {x.split(" ")[1] for x in record["findings"] if not x.startswith("info")}
        if check not in true
    )


def print_alarms(records: Iterable[Record]) -> None:
    """Share of the studies in which each warning or error was raised, one row a cell."""
    for cell, found in by_cell(Cell, records).items():
        refused = sum("refused" in r for r in found)
        raised_in = alarms(cell, found).most_common()
        shares = [f"{check} {n / len(found):.2f}" for check, n in raised_in]
        row(cell, len(found), f"{refused} refused", ", ".join(shares) or "no alarm")


def main() -> None:
    parser = options(__doc__, worlds=3, jobs=1, n=10_000)
    parser.add_argument("--departure", nargs="+", help="default: those of the page")
    parser.add_argument("--asked", nargs="+", default=["none"], choices=["none", *REMEDIES])
    parser.add_argument("--clean", action="store_true", help="false alarms without a departure")
    parser.add_argument("--graph", nargs="+", help="with --clean: families of graphs")
    parser.add_argument("--seeds", choices=SEEDS, default="tune")
    parser.add_argument("--out", type=Path, default=Path("build/robustness.jsonl"))
    parser.add_argument("--page", action="store_true", help="write the page from finished worlds")
    given = parser.parse_args()
    if given.page:
        from robustness_page import write_page  # it loads matplotlib

        write_page()
        return
    if given.clean:
        cells = graph_cells(given.graph) if given.graph else clean_cells()
    elif given.departure:
        cells = [Cell(d, a, n=given.n) for d, a in product(given.departure, given.asked)]
    else:
        cells = page_cells(n=given.n)
    tasks = [(cell, given.worlds) for cell in cells]
    records = run(Cell, run_world, tasks, given.seeds, given.jobs, given.out)
    (print_alarms if given.clean else print_table)(records)


if __name__ == "__main__":
    main()
