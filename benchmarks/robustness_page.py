"""Write docs/robustness.md and its picture from the records of robustness.py.

`docs/robustness/before.jsonl` has the worlds of the version before the remedies, `now.jsonl` those
of the present version, and `clean.jsonl` those of `--clean`. What the page says about a row follows
from its figures. A file that does not exist leaves out its part of the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from records import Record, by_cell, finished
from robustness import COLUMNS, ROWS, Cell, Score, alarms
from scipy.stats import beta

from jigsaw_crl.truth.simulate import DEPARTURES

__all__ = ["write_page"]

DOCS = Path(__file__).parents[1] / "docs"
# Makes the file reproducible: no random identifiers, text stored as text.
STYLE: Any = {"svg.hashsalt": "jigsaw-crl", "svg.fonttype": "none", "font.size": 10}
OLD, NEW = "#b0b0b0", "#1f5fa8"

# What is asked of every row, and of every finding on clean data.
GOOD_E1, FEW_YES, FEW_NO, FALSE_ALARMS = 0.95, 0.01, 0.005, 0.02
RIGHT = 0.95
# The columns of the page; which studies are refused is said below the table.
PERCENT = ("wrong yes", "wrong no", "right reason")
SHOWN = [f"{name}, %" if name in PERCENT else name for name in COLUMNS if name != "refused"]
# Below this share of verdicts a study counts as left open.
OPEN = 0.5

INTRODUCTION = """# Rows that depart from the model

Rows of a plant or a laboratory are not independent Gaussian draws of one linear system. This page,
written by `benchmarks/robustness.py`, shows what each departure does to the answer, and whether a
finding names it. A study has {latent} latents, {clients} clients and {n:,} rows per regime. Every
client has {features:g} features per latent and the paper's interventions. Numbers are means over
{worlds} per row, with standard errors. The picture also has E1 before the remedies.

- *E1* is the F1 score of the best guess of the order. *Decided* is the share of ordered pairs with
  a verdict. *Wrong yes* and *wrong no* are the shares of *ancestor* and *not ancestor* verdicts
  that are wrong.
- *Finding raised* is the share of studies with a warning or an error, or with an information that
  names the departure. *Right reason* is the share of these findings that name the departure,
  counted once per client; that noise is there, where it is uneven or sensors are not linear, is not
  counted.
- A row with a remedy in brackets is what the user gets who asks for it.
- `penetrance` mixes control rows into a regime. The order is unharmed, but such an intervention
  must not be called hard.

`jigsaw simulate --departure NAME=SIZE` writes a study with the same departure.

| name | what the rows do |
|---|---|
{kinds}
"""

RUN = """
## Run it

```sh
python benchmarks/robustness.py --seeds judge --worlds 4 --out docs/robustness/now.jsonl
python benchmarks/robustness.py --clean --seeds judge --worlds 50 --out docs/robustness/clean.jsonl
python benchmarks/robustness.py --page
```

Worlds that are in a file of results are not computed again: delete it after a change of the method.
Constants are chosen with `--seeds tune`; this page shows `--seeds judge`.
"""

Table = dict[Cell, list[Record]]


def write_page(docs: Path = DOCS) -> None:
    """Write the page, and the picture beside the others."""
    with plt.rc_context(STYLE):
        _write_page(docs)


def _write_page(docs: Path) -> None:
    results = docs / "robustness"
    before, now, clean = (
        by_cell(Cell, finished(results / f"{name}.jsonl")) for name in ("before", "now", "clean")
    )
    shown = now or before
    parts = [_introduction(shown), "\n## The answer\n", _table(shown)]
    parts += ["\n![E1 by departure](pictures/robustness.svg)\n"]
    parts += ["\n## How to read it\n", *_reading(shown)]
    if clean:
        parts += ["\n## False alarms\n", _alarms(clean)]
    parts.append(RUN)
    (docs / "robustness.md").write_text("\n".join(parts), encoding="utf-8")
    figure = _picture(before, shown)
    figure.savefig(docs / "pictures" / "robustness.svg", metadata={"Date": None})
    plt.close(figure)


def _introduction(table: Table) -> str:
    cell = next(iter(table))
    kinds = "\n".join(f"| `{name}` | {kind.what} |" for name, kind in DEPARTURES.items())
    return INTRODUCTION.format(
        latent=cell.latent,
        clients=cell.clients,
        n=cell.n,
        features=cell.features,
        worlds=_studies(table),
        kinds=kinds,
    )


def _studies(table: Table) -> str:
    """How many studies a row has."""
    most, fewest = (f(map(len, table.values())) for f in (max, min))
    return f"{most} studies" if most == fewest else f"{fewest} to {most} studies"


def _name(cell: Cell) -> str:
    asked = "" if cell.asked == "none" else f" ({cell.asked})"
    return (f"`{cell.departure}`" if cell.departure else "no departure") + asked


def _lines(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _ordered(table: Table) -> list[Cell]:
    """No departure first, then in the order of the benchmark."""
    cells = ["", *(f"{r.name}={size}" for r in ROWS for size in r.sizes)]
    known = [cell for cell in table if cell.departure in cells]
    return sorted(known, key=lambda c: (cells.index(c.departure), c.asked != "none"))


def _table(table: Table) -> str:
    rows = []
    for cell in _ordered(table):
        told = [x.removesuffix(" %") for x in Score.of(cell, table[cell]).texts()]
        rows.append([_name(cell), *told[: len(SHOWN)]])
    return _lines(["departure", *SHOWN], rows) + "\n"


def _reading(table: Table) -> list[str]:
    """Which rows are answered well, which are left open and why, and which are not good enough."""
    marks = f"at most {100 * FEW_YES:g} % wrong yes and {100 * FEW_NO:g} % wrong no"
    said = {
        "open": "Most pairs are left open, and the findings name the reason",
        "refused": "The study is refused when its rows are read, with the reason",
        "silent": "Most pairs are left open, and the findings name another reason or none",
        "cautious": f"E1 is lower than {GOOD_E1:g}, with {marks}",
        "wrong": "More verdicts are wrong than that",
    }
    groups: dict[str, list[str]] = {key: [] for key in (*said, "good")}
    for cell in _ordered(table):
        groups[_judged(Score.of(cell, table[cell]))].append(_name(cell))
    lines = [f"- {text}: {', '.join(groups[key])}." for key, text in said.items() if groups[key]]
    good = f"- In the {len(groups['good'])} other rows E1 is at least {GOOD_E1:g}, with {marks}."
    return [*lines, good]


def _judged(score: Score) -> str:
    c = score.counts
    if c.wrong_yes > FEW_YES * c.yes or c.wrong_no > FEW_NO * c.no:
        return "wrong"
    if sum(score.E1) >= GOOD_E1 * len(score.E1):
        return "good"
    if c.decided >= OPEN:
        return "cautious"
    if score.refused == len(score.E1) and not score.raised:
        return "refused"
    return "open" if score.raised and score.named >= RIGHT * score.raised else "silent"


def _alarms(table: Table) -> str:
    """Share of the clean studies with each warning or error."""
    rows = []
    for cell, found in table.items():
        count = alarms(cell, found).most_common()
        refused = sum("refused" in r for r in found)
        if not count and not refused:
            continue
        said = [f"`{check}` {100 * n / len(found):.0f} %" for check, n in count]
        noise = "1 %" if cell.departure else "none"
        rows.append(
            [
                f"{cell.n:,}",
                f"{cell.features:g}",
                noise,
                len(found),
                ", ".join(said) or "–",
                refused,
            ]
        )
    head = ["rows", "features per latent", "sensor noise", "studies", "raised in", "refused"]
    everything = sum((alarms(cell, found) for cell, found in table.items()), Counter())
    studies = sum(map(len, table.values()))
    total = [
        f"`{check}` in {n} ({100 * n / studies:.1f} %, at most {100 * _at_most(n, studies):.1f} %)"
        for check, n in everything.most_common()
    ]
    others = f"any other finding in none (at most {100 * _at_most(0, studies):.1f} %)"
    return (
        "Studies of four clients and eight latents without any departure but even sensor noise "
        "in some; that `sensor-noise` is raised there is no false alarm. No other finding should "
        f"be raised in more than {100 * FALSE_ALARMS:g} % of the studies. Raised in all {studies} "
        f'studies together: {", ".join([*total, others])}; "at most" is the upper end of a 95 % '
        "interval. The rows with some:\n\n" + _lines(head, rows) + "\n"
    )


def _at_most(count: int, studies: int) -> float:
    """Upper end of the exact 95 % interval of a share."""
    return float(beta.ppf(0.975, count + 1, studies - count))


def _picture(before: Table, now: Table) -> Figure:
    """E1 of each row, before in grey and now in blue."""
    cells = _ordered(now)[::-1]
    figure, ax = plt.subplots(figsize=(7, 0.24 * len(cells) + 1))
    for y, cell in enumerate(cells):
        old = before.get(replace(cell, asked="none"))
        new = Score.of(cell, now[cell]).E1
        if old and now is not before:
            was = _mean(Score.of(cell, old).E1)
            ax.plot([was, _mean(new)], [y, y], color=OLD, lw=1, zorder=1)
            ax.scatter(was, y, color=OLD, zorder=2)
        ax.scatter(_mean(new), y, color=NEW, zorder=3)
    ax.axvline(GOOD_E1, color="#8a8a8a", lw=0.8, ls=":")
    ax.set_yticks(range(len(cells)), [_name(c).replace("`", "") for c in cells], fontsize=8)
    label = "E1 (grey: before the remedies, blue: now)" if before and now is not before else "E1"
    ax.set(xlabel=label, xlim=(-0.02, 1.02), ylim=(-1, len(cells)))
    ax.set_title("F1 of the order when an assumption fails", fontsize=10)
    figure.tight_layout()
    return figure


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
