"""Put results of `jigsaw reproduce` into the documentation.

    jigsaw reproduce figures --out build/reproduce
    jigsaw reproduce tables --out build/reproduce
    python benchmarks/publish_reproduction.py build/reproduce

Published cells of the same scenario, sample size and method are replaced, and all others stay. So
one method can be run again alone (`--method null-cone`), or one table (`--only p`). The pages,
their pictures, and the table that the README shows are made from the results files.
"""

from __future__ import annotations

import re
import sys
from itertools import product
from math import nan, sqrt
from pathlib import Path
from typing import Any

import pandas as pd

from jigsaw_crl.truth.experiments.pages import (
    ERRORS,
    MINUS,
    NAMES,
    NONE,
    PLACE,
    line_of,
    markdown,
    number,
    places,
    size,
    unique,
    with_error,
    write_pages,
)
from jigsaw_crl.truth.experiments.plan import LARGE_CLIENT, LARGEST, printed, tables

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = ROOT / "docs" / "reproduction"
# The page with the table of `headline_table`, between these two comments.
SHOWN_IN = ROOT / "README.md"
# A mean differs from a printed number when it is farther away than this many standard deviations
# of a single run, and than the rounding of the printed number.
FAR = 2.0
ROUNDING = 0.005
BETWEEN = re.compile(r"(<!-- E1 of both methods -->\n).*?(\n<!-- end -->)", re.S)


def updated(old: Any, new: Any) -> Any:
    """Old cells, with new ones added or put in the place of their own."""
    both = pd.concat([old[~old.index.isin(new.index)], new])
    return both.sort_index(level=PLACE, ascending=[True, True, False])


def headline_table(cells: Any) -> str:
    """E1 of both methods at each p of Table 1, beside the printed numbers, in Markdown."""
    rows, many = [], {n: f"{size(n)} rows" for n in (10**4, 10**6)}
    for scenario in tables()["p"]:
        row = {"latents": str(scenario.n_latent)}
        for method, n in (("null-cone", 10**4), ("paper", 10**4), ("paper", 10**6)):
            name = "null-cone" if method == "null-cone" else "paper's method"
            row[f"{name}, {many[n]}"] = with_error(cells.loc[(scenario.key, n, method)], "e1")
        row |= {f"printed, {many[n]}": number(printed()[scenario.key, "e1", n]) for n in many}
        rows.append({name: text.replace("0.", ".") for name, text in row.items()})
    return "\n".join(markdown(pd.DataFrame(rows))[:-1]).replace(" --- |", "---|")


def spread(cell: Any, metric: str) -> float:
    """Standard deviation of the difference between our mean and one further run."""
    error = cell[f"{metric}_error"]
    return 0.0 if pd.isna(error) else float(error) * sqrt(cell["replicates"] + 1)


def _judged(cells: Any, key: str, metric: str, n: float) -> dict[str, Any]:
    """One line of the large table: that of the run, and how far the printed number is away."""
    line: dict[str, Any] = {}
    for name, text in line_of(cells, key, metric, n).items():
        line[name] = text
        if name.startswith("paper"):
            found = (key, n, "paper") in cells.index
            cell = cells.loc[(key, n, "paper")] if found else dict.fromkeys(cells.columns, nan)
            gap, unit = cell[metric] - printed().get((key, metric, n), nan), spread(cell, metric)
            early = f"{cell['stopped']:.0f} of {cell['clients']:.0f}" if cell["stopped"] else "0"
            line["difference"] = number(gap, "+.2f")
            line["in s.d. of a run"] = number(gap / unit if unit else nan, "+.1f")
            line["τ"] = number(cell["tau"], "g")
            line["stopped early"] = early if found else NONE
            line["far"] = nan if pd.isna(gap) else float(abs(gap) > FAR * unit + ROUNDING)
    return line


def _summary(cells: Any, every: pd.DataFrame) -> pd.DataFrame:
    """Means over all families of worlds, and how many cells differ from the printed number."""
    means = cells.groupby(["n", "method"])[ERRORS].mean()
    values = printed()[printed().index.get_level_values(0).isin(unique(cells, "scenario"))]
    rows = []
    for metric, n in product(ERRORS, sorted(unique(cells, "n"))):
        known = values[(values.index.get_level_values(1) == metric)]
        row = {"metric": NAMES[metric], "n": size(n)}
        row["printed"] = number(known[known.index.get_level_values(2) == n].mean())
        for method in unique(cells, "method"):
            row[method] = number(means[metric].get((n, method), nan))
            if method == "paper":
                own = every[(every["metric"] == NAMES[metric]) & (every["n"] == size(n))]["far"]
                judged = own.dropna()
                row["cells that differ"] = (
                    f"{judged.sum():.0f} of {len(judged)}" if len(judged) else NONE
                )
        rows.append(row)
    return pd.DataFrame(rows)


def _intro(cells: Any) -> list[str]:
    methods = unique(cells, "method")
    days = cells["date"].groupby("method", sort=False).max()
    lines = [
        "Every cell is a mean over runs ± its standard error. The paper prints one run per cell. "
        "All methods get the same data. Last run: "
        f"{'; '.join(f'{m} on {d}' for m, d in days.items())}. Runtimes depend on the machine; "
        "those of the paper's method are of our fast search, not of the printed lines. "
        f"A cell differs when the printed number is more than {FAR:g} standard deviations of a run "
        "away from our mean.",
        "",
    ]
    if "paper" in methods:
        ours = cells.xs("paper", level="method").iloc[-1]
        lines += [
            "“difference” is our mean for the paper's method minus the printed number: as it is, "
            "and in standard deviations of a single run, because the printed number is one. τ was "
            f"chosen for each family of worlds and n on {ours['tuned_on']} extra runs from "
            f"{ours['candidates']} candidates (from the {LARGEST} largest where a client has more "
            f"than {LARGE_CLIENT:g} latents on average) by E1 {MINUS} E2 {MINUS} E3. The paper's "
            f"search may try {ours['budget']:,} label sets per client; “stopped early” counts the "
            "clients where that was not enough.",
            "",
        ]
    missing = [
        f"{key} by {method} at n = {size(n)}"
        for key, method, n in product(unique(cells, "scenario"), methods, unique(cells, "n"))
        if (key, n, method) not in cells.index
    ]
    return [*lines, f"Not run: {'; '.join(missing)}.", ""] if missing else lines


def page_of(made: Any, cells: Any) -> str:
    """The page of a finished run, with a summary and a judgement of every cell."""
    title, *drawn = (x for x in made.page.read_text("utf-8").splitlines() if x[:2] in ("# ", "!["))
    every = pd.DataFrame(_judged(cells, *place) for place in places(cells))
    shown = every.drop(columns=["far"], errors="ignore")
    pictures = [line for picture in drawn for line in (picture, "")]
    head = [title, "", *_intro(cells), *pictures, "## Summary", ""]
    return "\n".join(
        [*head, *markdown(_summary(cells, every)), "## All cells", "", *markdown(shown)]
    )


def publish(source: Path, kind: str) -> None:
    """Add a results file to the published one, and write its page and pictures again."""
    kept = PUBLISHED / kind / "results.csv"
    cells = updated(*(pd.read_csv(path).set_index(PLACE) for path in (kept, source)))
    made = write_pages(cells, kind, kept.parent)
    made.page.write_text(page_of(made, cells), encoding="utf-8")


def main(folder: str) -> None:
    for kind in ("figures", "tables"):
        source = Path(folder) / kind / "results.csv"
        if source.exists():
            publish(source, kind)
            print(f"{PUBLISHED / kind} is written")
    table = headline_table(pd.read_csv(PUBLISHED / "tables" / "results.csv").set_index(PLACE))
    text = SHOWN_IN.read_text(encoding="utf-8")
    SHOWN_IN.write_text(BETWEEN.sub(rf"\g<1>{table}\g<2>", text), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
