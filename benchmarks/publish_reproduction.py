"""Put results of `jigsaw reproduce` into the documentation.

    jigsaw reproduce figures --out build/reproduce
    jigsaw reproduce tables --out build/reproduce
    python benchmarks/publish_reproduction.py build/reproduce

Published cells of the same scenario, sample size and method are replaced, and all others stay. So
one method can be run again alone (`--method null-cone`), or one table (`--only p`). The pages,
their pictures, and the table that the README and the overview show are made from the results files.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from jigsaw_crl.truth.experiments.pages import (
    PLACE,
    markdown,
    number,
    read_results,
    size,
    with_error,
    write_pages,
)
from jigsaw_crl.truth.experiments.plan import printed, tables

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = ROOT / "docs" / "reproduction"
# Pages with the table of `headline_table`, between these two comments.
SHOWN_IN = (ROOT / "README.md", PUBLISHED / "index.md")
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


def publish(source: Path, kind: str) -> None:
    """Add a results file to the published one, and write its page and pictures again."""
    kept, cells = PUBLISHED / kind / "results.csv", read_results(source)
    write_pages(updated(read_results(kept), cells), kind, kept.parent)


def main(folder: str) -> None:
    for kind in ("figures", "tables"):
        source = Path(folder) / kind / "results.csv"
        if source.exists():
            publish(source, kind)
            print(f"{PUBLISHED / kind} is written")
    table = headline_table(read_results(PUBLISHED / "tables" / "results.csv"))
    for page in SHOWN_IN:
        text = page.read_text(encoding="utf-8")
        page.write_text(BETWEEN.sub(rf"\g<1>{table}\g<2>", text), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
