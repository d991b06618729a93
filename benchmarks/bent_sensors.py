"""Is a sensor that bends found, and is no other one dropped?

    python benchmarks/pages.py try --only bent_sensors --worlds 2
    python benchmarks/pages.py run --only bent_sensors

One client with 6 latents and 12 sensors; the number of latents is not given. Where one sensor
bends, columns are: how often that sensor alone is named, another one or none; and E1, wrong "yes"
and wrong "no" of a client without a bend, of the bent one read with all sensors, and of the same
one without the sensors that are named. Where no sensor bends, the column is in how many worlds some
sensor is dropped. `--seeds tune` is for choosing constants, `--seeds judge` for judging them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from records import Record, Table, by_cell
from reporting import markdown
from threadpoolctl import threadpool_limits

import jigsaw_crl as jc
from jigsaw_crl.base.frozen import FrozenMapping
from jigsaw_crl.client.noise import count_latents
from jigsaw_crl.truth.metrics import VerdictCounts
from jigsaw_crl.truth.simulate import Intervention, random_world

# First seed of each family. No test, example or other benchmark uses seeds in these ranges.
SEEDS = {"tune": 9_600_000, "judge": 9_700_000}
LATENT = 6
KINDS = {
    "soft": Intervention("additive"),
    "hard": Intervention("hard"),
    "hard, shift 1": Intervention("hard", shift=1.0),
}
READ = ("no bend", "all sensors", "without it")


@dataclass(frozen=True)
class Cell:
    """One kind of client: interventions, what departs, and how much one sensor bends.

    Without a bend, the kinds of interventions take turns, and so do 9 and 12 sensors. Departures
    are those of `jigsaw_crl.truth.simulate`, and two more: `rounded=STEP`, to a step in standard
    deviations of each sensor, and `other-noise=SD`, noise of one sensor more in each regime.
    """

    kind: str = "soft"
    bend: float = 0.0
    departure: str = "sensor-noise=0.02"
    system: str = "linear"
    n: int = 10_000
    hidden: int = 0  # latents without a label

    def rows(self, seed: int) -> tuple[jc.simulate.World, jc.simulate.Rows]:
        """The world of a seed and the rows of its client, without the bend."""
        kind, features = self.kind, 2.0
        if not self.bend:
            kind, features = list(KINDS)[seed % 3], (1.5, 2.0)[seed // 3 % 2]
        world = random_world(
            LATENT, 1, 1.0, seed, features=features, intervention=KINDS[kind], system=self.system
        )
        named = {x.partition("=")[0]: x for x in self.departure.split()}
        own = {x: float(named.pop(x).partition("=")[2]) for x in MORE if x in named}
        rows = world.sample(
            0,
            self.n,
            seed=seed,
            labels=world.labels[self.hidden :],
            departures=list(named.values()),
        )
        spread, rng = rows.tables[0].std(axis=0), np.random.default_rng(seed)
        tables = list(rows.tables)
        if "other-noise" in own:
            for x in tables:
                k = int(rng.integers(len(spread)))
                x[:, k] += own["other-noise"] * spread[k] * rng.standard_normal(len(x))
        if "rounded" in own:
            step = own["rounded"] * spread
            tables = [np.round(x / step) * step for x in tables]
        return world, replace(rows, tables=tuple(tables))


MORE = ("rounded", "other-noise")


def bent(rows: jc.simulate.Rows, k: int, bend: float) -> jc.simulate.Rows:
    """The rows with sensor k read as `tanh(B x) / B`, x in standard deviations about its mean."""
    centre, spread = rows.tables[0][:, k].mean(), rows.tables[0][:, k].std()
    tables = [x.copy() for x in rows.tables]
    for x in tables:
        x[:, k] = centre + spread * np.tanh(bend * (x[:, k] - centre) / spread) / bend
    return replace(rows, tables=tuple(tables))


def client_of(rows: jc.simulate.Rows, missing: Any = "refuse") -> jc.Client:
    """The client as a user makes it, without the number of latents."""
    return jc.Client.from_samples(rows.client, missing=missing, **rows.arguments())


def with_all_sensors(client: jc.Client) -> jc.Client:
    """The client as it was read if no sensor was known to bend."""
    counted = count_latents(client.control, client.regimes, len(client.labels))
    return replace(client, bent=FrozenMapping({}), counted=counted, n_latent=counted.used)


def score(world: jc.simulate.World, client: jc.Client, hard: bool) -> dict[str, Any]:
    """E1 and verdicts of one client, and the findings; E1 is 0 of one that is refused."""
    labels = list(world.truth(0).labels)
    true = len(world.order.restrict(labels).pairs())
    counts, e1, refused = VerdictCounts(len(labels) * (len(labels) - 1), true), 0.0, False
    try:
        result = jc.recover([client], interventions="hard" if hard else "soft")
        e1 = jc.metrics.global_f1(world.order, result.order)
        counts = jc.metrics.verdict_counts(world.order, result.order, labels)
    except jc.InputError:
        refused = True
    return {"E1": e1, "counts": asdict(counts), "refused": refused}


def run_world(cell: Cell, family: str, number: int) -> Record:
    """Draw one client, and read it in each way if a sensor bends."""
    seed = SEEDS[family] + number
    record: Record = {"cell": asdict(cell), "seeds": family, "world": number}
    with threadpool_limits(1):
        world, rows = cell.rows(seed)
        if not cell.bend:
            client = client_of(rows, "em" if "missing" in cell.departure else "refuse")
            return {**record, "dropped": len(client.bent)}
        k = seed % rows.tables[0].shape[1]
        client = client_of(bent(rows, k, cell.bend))
        named = set(client.bent)
        record["right"] = named == {f"x{k + 1}"}
        record["wrong"] = bool(named - {f"x{k + 1}"})
        each = (client_of(rows), with_all_sensors(client), client)
        hard = cell.kind != "soft"
        for how, one in zip(READ, each, strict=True):
            record[how] = score(world, one, hard)
    return record


def bent_table(records: Iterable[Record]) -> str:
    """One row a cell: what is named, and the answer of each reading."""
    rows = []
    for cell, found in by_cell(Cell, records).items():
        right, wrong = (sum(r[x] for r in found) for x in ("right", "wrong"))
        line = [cell.kind, cell.departure or "none", f"{cell.bend:g}"]
        line.append(f"{right} / {wrong} / {len(found) - right - wrong}")
        for how in READ:
            c = sum((VerdictCounts(**r[how]["counts"]) for r in found), VerdictCounts())
            e1 = np.mean([r[how]["E1"] for r in found])
            refused = sum(r[how]["refused"] for r in found)
            text = f"{e1:.2f}; {c.wrong_yes}/{c.yes:,}; {c.wrong_no}/{c.no:,}"
            line.append(text + (f" ({refused} refused)" if refused else ""))
        rows.append(line)
    return markdown(("interventions", "noise", "B", "right / wrong / none", *READ), rows)


def sound_table(records: Iterable[Record]) -> str:
    """One row a departure: in how many worlds a sensor is dropped."""
    rows = []
    for cell, found in by_cell(Cell, records).items():
        name = f"`{cell.departure}`" if cell.departure else "none"
        name += f", {cell.system}" if cell.system != "linear" else ""
        name += f", {cell.n:,} rows" if cell.n != Cell.n else ""
        name += f", {cell.hidden} latents without a label" if cell.hidden else ""
        rows.append((name, f"{sum(r['dropped'] > 0 for r in found)} of {len(found)}"))
    return markdown(("departure", "sensors dropped"), rows)


NOISE = "sensor-noise=0.05"
BENDS = tuple(
    (Cell(kind, bend, noise), 20)
    for noise in ("", Cell.departure)
    for kind in KINDS
    for bend in (0.3, 0.5, 1.0)
)
SOUND = tuple(
    (cell, 200)
    for cell in (
        Cell(departure=""),
        *(Cell(departure=x) for x in (NOISE, "sensor-noise=0.3", "uneven-sensors=100x0.03")),
        *(Cell(departure=NOISE, n=n) for n in (1_000, 50_000)),
        *(Cell(departure=x, hidden=2) for x in ("", NOISE)),
        *(
            Cell(departure=f"{x} {NOISE}")
            for x in (
                "t-noise=3",
                "lognormal-noise=1",
                "outliers=0.01x10",
                "autocorrelation=0.9",
                "subjects=0.5x20",
                "missing=0.05",
                "off-target=0.3",
                "penetrance=0.5",
                "nonlinear-system=0.5",
                "batch-offsets=0.1",
                "gain-drift=0.01",
                "gain-drift=0.05",
                "rounded=0.5",
                "other-noise=0.3",
            )
        ),
        *(
            Cell(departure=NOISE, system=x)
            for x in ("tanh", "relu", "sine", "squares", "products", "mixed", "noise")
        ),
    )
)
PUBLISHED = (
    Table("bent-sensors", "docs/robustness.md", BENDS, bent_table),
    Table("sound-sensors", "docs/robustness.md", SOUND, sound_table),
)
