"""Every sentence that is printed about two real data sets, to be judged against what is known.

    python benchmarks/real_data.py tunnel
    python benchmarks/real_data.py screen thp1-screen.parquet

`tunnel` is the light tunnel of `jigsaw_crl.datasets`, seen through random mixings, with the shift
of each intervention as it was and doubled. `screen` reads a table of raw counts of genes, with the
columns `regime` and `replicate`: counts are divided by the depth of their cell, and log(1 + x) is
taken. Findings of one name are printed once, with the number of clients and regimes that have them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

import jigsaw_crl as jc
from jigsaw_crl.base.arrays import FloatArray

# The interferon pathway, and a gene outside it.
PATHWAY = ("IFNGR1", "IFNGR2", "JAK2", "STAT1", "IRF1", "SMAD4")

KINDS: tuple[Literal["hard"] | None, ...] = (None, "hard")


def tunnel(spare: int, times: float, seed: int = 0) -> jc.Client:
    """The tunnel's actuators through `spare` sensors more than actuators, shifts times a factor."""
    tables = jc.datasets.light_tunnel()
    rows = {name: table.to_numpy(dtype=np.float64) for name, table in tables.items()}
    control = rows.pop("control")
    G = np.random.default_rng(seed).normal(size=(control.shape[1], control.shape[1] + spare))
    moved = {x: v + (times - 1) * (v.mean(axis=0) - control.mean(axis=0)) for x, v in rows.items()}
    return jc.Client.from_samples(
        "tunnel", observational=control @ G, interventions={x: v @ G for x, v in moved.items()}
    )


def screen(path: Path, genes: int, labels: Iterable[str] | None) -> list[jc.Client]:
    """One client per replicate: the targets' own transcripts, then the genes that vary most."""
    frame = pd.read_parquet(path)
    counts = frame.drop(columns=["regime", "replicate"])
    values: FloatArray = counts.to_numpy(dtype=np.float64)
    depth = values.sum(axis=1, keepdims=True)
    logs = pd.DataFrame(np.log1p(values / depth * np.median(depth)), columns=counts.columns)
    sizes = frame["regime"].value_counts().drop("control")
    chosen = list(sizes.index[sizes >= 100]) if labels is None else list(labels)
    own = [x for x in chosen if x in logs]
    rest = [x for x in logs.var().sort_values(ascending=False).index if x not in own]
    table = logs[(own + rest)[:genes]].assign(regime=frame["regime"].to_numpy())
    return [
        jc.Client.from_table(
            table[
                (frame["replicate"] == name).to_numpy() & table["regime"].isin(["control", *chosen])
            ],
            regime="regime",
            control="control",
            name=str(name),
        )
        for name in sorted(frame["replicate"].unique())
    ]


def show(
    title: str,
    clients: list[jc.Client],
    kinds: Literal["hard"] | None = None,
    truth: jc.PartialOrder[str] | None = None,
) -> None:
    """Print verdicts, each kind of sentence once, and what is wrong if the truth is known."""
    print(f"\n{title}")
    try:
        result = jc.recover(clients, interventions=kinds)
    except jc.InputError as refusal:
        print(f"  refused: {refusal}")
        return
    counts: dict[str, int] = {}
    for finding in result.diagnostics:
        counts[finding.check] = counts.get(finding.check, 0) + 1
    for finding in {f.check: f for f in reversed(result.diagnostics)}.values():
        print(f"  {counts[finding.check]} × {finding.check}, such as {finding}")
    frame = result.order.to_frame()
    print(f"  verdicts: {frame['verdict'].value_counts().to_dict()}")
    print(f"  ancestors: {sorted(result.order.pairs())}")
    if truth is not None:
        told = jc.metrics.verdict_counts(truth, result.order)
        print(f"  wrong: {told.wrong_yes} of {told.yes} yes, {told.wrong_no} of {told.no} no")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", choices=["tunnel", "screen"])
    parser.add_argument("path", type=Path, nargs="?", help="the screen's table")
    given = parser.parse_args()
    if given.data == "tunnel":
        for spare in (0, 2):
            for times in (1.0, 2.0):
                for kinds in KINDS:
                    title = f"{spare} spare sensors, shift × {times:g}, {kinds or 'soft'}"
                    show(title, [tunnel(spare, times)], kinds, jc.datasets.light_tunnel_order())
        return
    for genes, labels in ((14, PATHWAY), (30, PATHWAY), (60, PATHWAY), (60, None)):
        asked = f"{len(labels)} labels" if labels else "all labels of 100 cells or more"
        show(f"{genes} genes, {asked}", screen(given.path, genes, labels))


if __name__ == "__main__":
    main()
