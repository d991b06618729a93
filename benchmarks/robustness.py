"""What do departures of the rows from the model do to the answer, and are they named?

    python benchmarks/robustness.py --departure autocorrelation=0.8 outliers=0.01x10 --worlds 3
    python benchmarks/robustness.py --departure outliers=0.01x10 --asked none trim
    python benchmarks/pages.py run --only robustness

`--asked` is what the user asks for: `none`, or a remedy of `Client.from_table` (`trim`, `group`,
`missing`, `em`). The last line runs every departure of docs/robustness.md at each of its sizes, and
makes the tables and the picture of the page. `--seeds tune` is for choosing constants, `--seeds
judge` for judging them.

Columns: E1 (or that all worlds were refused), the share of ordered pairs with a verdict, the "yes"
and "no" that are wrong, and the findings that name the departure, of all. A finding counts once per
client; information counts only if it names the departure.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
from records import Record, Table, by_cell, cell_name, run
from reporting import markdown, options
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
    first: int = 0

    @property
    def departures(self) -> list[str]:
        return self.departure.split()

    def world(self, seed: int) -> jc.simulate.World:
        features = self.features
        return jc.simulate.random_world(self.latent, self.clients, 0.6, seed, features=features)


# What a user passes to `Client.from_table`.
REMEDIES: dict[str, dict[str, Any]] = {
    "trim": {"trim": 0.05},
    "group": {"group": "subject"},
    "missing": {"missing": "drop"},
    "em": {"missing": "em"},
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
            cells += [Cell(f"{r.name}={size}", asked, **changes) for size in r.sizes]
    return cells


def client_of(cell: Cell, rows: jc.simulate.Rows) -> jc.Client:
    """The client as a user makes it: rows, the remedy that is asked for, no number of latents."""
    if cell.asked == "none":
        return jc.Client.from_samples(rows.client, **rows.arguments())
    table = table_of(rows, cell.asked == "group")
    return jc.Client.from_table(table, name=rows.client, **REMEDIES[cell.asked])


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


@dataclass(frozen=True)
class Score:
    """One row of the table.

    Parameters
    ----------
    E1 : list of float
        One number a world.
    counts : VerdictCounts
    raised, named : int
        Findings that were raised, and those of them that name the departure.
    refused : int
        Worlds without an answer.
    """

    E1: list[float]
    counts: VerdictCounts
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
            every,
            named,
            sum("refused" in r for r in records),
        )

    def __str__(self) -> str:
        """E1; in bold what is not good enough, or too often wrong."""
        if self.refused == len(self.E1):
            return "refused"
        c, e1 = self.counts, float(np.mean(self.E1))
        wrong = c.wrong_yes > FEW_YES * c.yes or c.wrong_no > FEW_NO * c.no
        return f"**{e1:.2f}**" if wrong or e1 < GOOD_E1 else f"{e1:.2f}"


# What is asked of every row.
GOOD_E1, FEW_YES, FEW_NO = 0.95, 0.01, 0.005


def name_of(cell: Cell) -> str:
    """A cell as the tables name it."""
    return cell_name(
        cell, f"`{cell.departure}`" if cell.departure else "none", ("departure", "first")
    )


def answer_table(records: Iterable[Record]) -> str:
    """One row a departure and remedy, its sizes together; E1 for each size."""
    groups: dict[tuple[str, str], list[tuple[Cell, list[Record]]]] = {}
    for cell, found in by_cell(Cell, records).items():
        name = "+".join(d.split("=")[0] for d in cell.departures)
        groups.setdefault((name, cell.asked), []).append((cell, found))
    rows = []
    for (name, asked), cells in groups.items():
        scores = [Score.of(cell, found) for cell, found in cells]
        c = sum((score.counts for score in scores), VerdictCounts())
        sizes = [cell.departure.partition("=")[2] for cell, _ in cells]
        raised, named = (sum(getattr(s, x) for s in scores) for x in ("raised", "named"))
        rows.append(
            (
                ", ".join([f"`{name}`" if name else "none", *([asked] if asked != "none" else [])]),
                " ".join(sizes) or "–",
                " ".join(map(str, scores)),
                f"{c.wrong_yes}/{c.yes:,}",
                f"{c.wrong_no}/{c.no:,}",
                f"{named}/{raised}",
            )
        )
    columns = ("departure", "sizes", "E1", "wrong yes", "wrong no", "right reason")
    return markdown(columns, rows)


PAGE = tuple((cell, 20) for cell in page_cells())
PUBLISHED = (Table("robustness", "docs/robustness.md", PAGE, answer_table),)


def write_more(records: list[Record], root: Path) -> None:
    """The picture: E1 of each row."""
    page = {cell for cell, _ in PAGE}
    cells = {cell: found for cell, found in by_cell(Cell, records).items() if cell in page}
    # No random identifiers, text stored as text.
    style: Any = {"svg.hashsalt": "jigsaw-crl", "svg.fonttype": "none", "font.size": 10}
    with plt.rc_context(style):
        figure, ax = plt.subplots(figsize=(7, 0.24 * len(cells) + 1))
        names = [name_of(cell).replace("`", "") for cell in cells]
        ax.scatter([np.mean([r["E1"] for r in found]) for found in cells.values()], names)
        ax.axvline(GOOD_E1, color="#8a8a8a", lw=0.8, ls=":")
        ax.tick_params("y", labelsize=8)
        ax.set(xlabel="E1", xlim=(-0.02, 1.02), ylim=(len(cells), -1))
        ax.set_title("F1 of the order when an assumption fails", fontsize=10)
        figure.tight_layout()
        picture = root / "docs" / "pictures" / "robustness.svg"
        figure.savefig(picture, metadata={"Date": None})
        plt.close(figure)


def main() -> None:
    parser = options(__doc__, worlds=3, jobs=1, n=10_000)
    parser.add_argument("--departure", nargs="+", help="default: those of the page")
    parser.add_argument("--asked", nargs="+", default=["none"], choices=["none", *REMEDIES])
    parser.add_argument("--seeds", choices=SEEDS, default="tune")
    parser.add_argument("--out", type=Path, default=Path("build/robustness.jsonl"))
    given = parser.parse_args()
    cells = page_cells(n=given.n)
    if given.departure:
        cells = [Cell(d, a, n=given.n) for d, a in product(given.departure, given.asked)]
    tasks = [(cell, given.worlds) for cell in cells]
    records = run(Cell, run_world, tasks, given.seeds, given.jobs, given.out)
    print(answer_table(records))


if __name__ == "__main__":
    main()
