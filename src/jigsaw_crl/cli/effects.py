"""Effects on the command line: the table of `recover`, its JSON, and the command `predict`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.cli import options as opt
from jigsaw_crl.cli.output import emit, print_table

if TYPE_CHECKING:
    import pandas as pd

    from jigsaw_crl.result.result import Result

__all__ = ["effects_document", "predict", "print_effects", "records"]

# Effects that are printed for people, the largest first.
MOST_EFFECTS = 15


def predict(
    folder: opt.ResultFolder,
    shifts: Annotated[
        list[str],
        typer.Argument(
            metavar="LABEL=AMOUNT",
            help="How far a label is moved, in its standard deviations: pump=+1.0",
        ),
    ],
    as_json: opt.Json = False,
) -> None:
    """What changes if some labels are moved?

    Needs hard interventions. Each label is moved by its amount while everything else goes on as in
    the control; the changes of several labels add up.
    """
    # Imported here for start-up time.
    from jigsaw_crl.result.folder import load_result

    amounts = _shifts(shifts)
    _print_shifts(load_result(folder).predict_shift(amounts), as_json)


def effects_document(result: Result) -> dict[str, Any]:
    """Total effects and direct edges as JSON values; empty without hard interventions."""
    if not len(result.effects) and result.order.effects is None:
        return {}
    edges = [{"cause": a, "effect": d, **about} for a, d, about in result.graph.edges(data=True)]
    return {"effects": records(result.effects), "direct_edges": edges}


def print_effects(result: Result) -> None:
    """Print the largest effects and the number of direct edges, if there are hard interventions."""
    from jigsaw_crl.evidence.effects import AT_DOSE  # here for start-up time

    frame = result.effects[result.effects.verdict == "ancestor"]
    if not len(frame) and result.order.effects is None:
        return
    frame = frame.reindex(frame.total.abs().sort_values(ascending=False, kind="stable").index)
    edges = result.graph.edges(data=True)
    direct: dict[Any, str] = {(a, d): about["verdict"] for a, d, about in edges}
    rows = [
        (
            row.cause,
            row.effect,
            f"{row.total:+.3f}",
            f"{row.low:+.3f} to {row.high:+.3f}",
            row.sites,
            "at this dose"
            if row.kind == AT_DOSE
            else direct.get((row.cause, row.effect), "not direct"),
        )
        for row in frame.head(MOST_EFFECTS).itertuples()
    ]
    columns = ["cause", "effect", "total", "95 % interval", "sites", "edge"]
    bent = len(frame) > 0 and (frame.kind == AT_DOSE).all()
    print_table(f"{'Average' if bent else 'Total'} effects in standard deviations", columns, rows)
    if len(frame) > MOST_EFFECTS:
        typer.echo(f"and {len(frame) - MOST_EFFECTS} smaller ones (--json and --out have them all)")
    stated = sum(verdict == "direct" for verdict in direct.values())
    opened = len(direct) - stated
    typer.echo(f"graph: {pluralise(stated, 'direct edge')}, {opened} undetermined")


def _shifts(given: list[str]) -> dict[str, float]:
    """Amounts by label from texts such as pump=+1.0."""
    out: dict[str, float] = {}
    for text in given:
        label, _, amount = text.rpartition("=")
        try:
            size = float(amount)
        except ValueError:
            size = math.nan
        if not label or not math.isfinite(size):
            raise InputError(f"{text!r} is no shift", "Write LABEL=AMOUNT, such as pump=+1.0.")
        if label in out:
            raise InputError(f"two amounts are given for {label!r}", "Give one.")
        out[label] = size
    return out


def _print_shifts(frame: pd.DataFrame, as_json: bool) -> None:
    """Print the changes that `Result.predict_shift` expects."""
    rows = [
        (label, "undetermined", "")
        if math.isnan(change)
        else (label, f"{change:+.3f}", f"{low:+.3f} to {high:+.3f}")
        for label, change, low, high in zip(
            frame.label, frame.change, frame.low, frame.high, strict=True
        )
    ]
    title, columns = "Expected change in standard deviations", ["label", "change", "95 % interval"]
    emit(as_json, {"changes": records(frame)}, lambda: print_table(title, columns, rows))


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain JSON values; None for what is missing."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [{str(key): value for key, value in row.items()} for row in plain.to_dict("records")]
