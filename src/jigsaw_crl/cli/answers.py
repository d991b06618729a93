"""Commands that ask a result: `explain`, `predict`, `diff`, `design`, `verify`.

What a command runs is imported inside it, for start-up time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.labels import normal_label
from jigsaw_crl.base.terminal import note, say, working
from jigsaw_crl.base.text import chance, few, pluralise, signed
from jigsaw_crl.cli import options as opt
from jigsaw_crl.cli.output import emit, print_table

if TYPE_CHECKING:
    import pandas as pd

    from jigsaw_crl.result.result import Result

__all__ = ["effects_document", "print_effects", "register"]

# Lines of each table that are printed for people.
MOST_LINES = 15


def register(app: typer.Typer) -> None:
    opt.command(app, explain, "jigsaw explain result/ pump valve")
    opt.command(app, predict, "jigsaw predict result/ pump=+1.0")
    opt.command(app, diff, "jigsaw diff before/ after/")
    opt.command(app, design, "jigsaw design result/")
    keys = "--keys site-keys.toml --fragment lab-1.fragment.json"
    opt.command(app, verify, f"jigsaw verify result/ {keys}")


# -- explain --------------------------------------------------------------------------------------


def explain(folder: Path, ancestor: str, descendant: str, *, as_json: bool = False) -> None:
    """Why is this the verdict on a pair of labels?"""
    from jigsaw_crl.result.folder import load_result

    result = load_result(folder)
    order = result.order
    ancestor, descendant = normal_label(ancestor), normal_label(descendant)
    for label in (ancestor, descendant):
        if label in result.lost_labels:
            why = "; ".join(str(part) for part in result.lost_labels[label])
            raise InputError(
                f"the label {label!r} is missing from the order; left out were {why[:400]}",
                "See the findings for what to do about it.",
            )
    certificate = order.explain(ancestor, descendant)
    emit(
        as_json,
        {
            "ancestor": ancestor,
            "descendant": descendant,
            "verdict": order.verdict(ancestor, descendant).name.lower(),
            # Algorithm 3 gives none.
            "probability": None
            if order.mode == "paper"
            else float(order.probability(ancestor, descendant)),
            "excludes_above": certificate.bound if certificate.excluded else None,
            "excludes_unit": certificate.bound_unit if certificate.excluded else "",
            "effect": None if certificate.effect is None else asdict(certificate.effect),
            "contested": certificate.contested,
            "rests_on": certificate.rests_on or None,
            "witnesses": certificate.witnesses or None,
            "certificate": str(certificate),
        },
        str(certificate),
    )


# -- predict, and the effects of a result ---------------------------------------------------------


def predict(folder: Path, shifts: list[str], *, as_json: bool = False) -> None:
    """What changes if some labels are moved?

    Needs hard interventions. Each label is moved by its amount while everything else goes on as in
    the control; the changes of several labels add up.
    """
    from jigsaw_crl.result.folder import load_result

    frame = load_result(folder).predict_shift(_amounts(shifts, "shift"))
    rows = [
        (label, "undetermined", "")
        if math.isnan(change)
        else (label, f"{change:+.3f}", f"{low:+.3f} to {high:+.3f}")
        for label, change, low, high in zip(
            frame.label, frame.change, frame.low, frame.high, strict=True
        )
    ]
    title, columns = "Expected change in standard deviations", ["label", "change", "95 % interval"]
    emit(as_json, {"changes": _records(frame)}, lambda: print_table(title, columns, rows))


def effects_document(result: Result) -> dict[str, Any]:
    """Total effects and direct edges as JSON values; empty without hard interventions."""
    if not len(result.effects) and result.order.effects is None:
        return {}
    edges = [{"cause": a, "effect": d, **about} for a, d, about in result.graph.edges(data=True)]
    return {"effects": _records(result.effects), "direct_edges": edges}


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
        for row in frame.head(MOST_LINES).itertuples()
    ]
    columns = ["cause", "effect", "total", "95 % interval", "clients", "edge"]
    bent = len(frame) > 0 and (frame.kind == AT_DOSE).all()
    print_table(f"{'Average' if bent else 'Total'} effects in standard deviations", columns, rows)
    if len(frame) > MOST_LINES:
        typer.echo(f"and {len(frame) - MOST_LINES} smaller ones (--json and --out have them all)")
    stated = sum(verdict == "direct" for verdict in direct.values())
    opened = len(direct) - stated
    typer.echo(f"graph: {pluralise(stated, 'direct edge')}, {opened} undetermined")


def _amounts(given: list[str], what: str) -> dict[str, float]:
    """Amounts by label from texts such as pump=+1.0."""
    out: dict[str, float] = {}
    for text in given:
        label, _, amount = text.rpartition("=")
        try:
            size = float(amount)
        except ValueError:
            size = math.nan
        if not label or not math.isfinite(size):
            raise InputError(f"{text!r} is no {what}", "Write LABEL=AMOUNT, such as pump=+1.0.")
        if label in out:
            raise InputError(f"two amounts are given for {label!r}", "Give one.")
        out[label] = size
    return out


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain JSON values; None for what is missing."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [{str(key): value for key, value in row.items()} for row in plain.to_dict("records")]


# -- diff -----------------------------------------------------------------------------------------


def diff(old: Path, new: Path, *, as_json: bool = False) -> None:
    """What changed between two results, and because of which sites?

    Lists the verdicts and effects that changed, and the sites that joined, left or changed and have
    both labels.
    """
    from jigsaw_crl.result import load_result
    from jigsaw_crl.result.difference import difference

    found = difference(load_result(old), load_result(new))
    verdicts = [
        (
            v.ancestor,
            v.descendant,
            f"{v.before} ({chance(v.probability_before)})",
            f"{v.after} ({chance(v.probability_after)})",
            few(v.because) or "other pairs",
        )
        for v in found.verdicts
    ]
    effects = [
        (
            e.cause,
            e.effect,
            *("none" if x is None else signed(x) for x in (e.before, e.after)),
            few(e.because) or "other pairs",
        )
        for e in found.effects
    ]

    def told() -> None:
        typer.echo(f"{found.summary}.")
        for what, labels in (("new labels", found.new_labels), ("labels gone", found.lost_labels)):
            if labels:
                typer.echo(f"{what}: {few(labels)}")
        columns = ["before", "after", "because of"]
        if verdicts:
            print_table("Verdicts (probability)", ["ancestor", "descendant", *columns], verdicts)
        if effects:
            print_table("Total effects", ["cause", "effect", *columns], effects)

    emit(as_json, asdict(found), told)


# -- design ---------------------------------------------------------------------------------------


def design(
    folder: Path,
    *,
    size: int | None = None,
    cost: list[str] | None = None,
    cannot: list[str] | None = None,
    seed: int = 0,
    as_json: bool = False,
) -> None:
    """Propose the next experiment: a new client, or more rows.

    Prints the labels, which interventions should be hard, and the pairs that are likely settled;
    then where more rows may settle open pairs.
    """
    from jigsaw_crl.assembly import next_client
    from jigsaw_crl.result.folder import load_result

    order = load_result(folder).order
    known = len(order.labels)
    if size is not None and size > known:
        note(f"--size {size}: the order has {pluralise(known, 'label')}, so at most that")
    costs = _amounts(cost or [], "cost")
    with working("weighing clients"):
        found = next_client(order, size, seed=seed, cost=costs, cannot=cannot or ())

    def document() -> dict[str, Any]:
        return {**asdict(found), "kinds": found.kinds, "expects": found.expects}

    def told() -> None:
        if not found.undetermined:
            say(str(found))
            return
        if found.kinds:
            say(found.kinds)
        say(f"labels: {', '.join(found.labels)}")
        typer.echo(f"why so many: {found.reason}")
        typer.echo(f"such a client {found.expects}")
        pairs = zip(found.settles, found.chances, strict=True)
        lines = [(a, d, f"{chance:.2f}") for (a, d), chance in pairs]
        columns = ["ancestor?", "descendant?", "chance"]
        if lines:
            _print_some("Pairs that it settles more likely than not", columns, lines)
        for sentence in found.more_rows:
            typer.echo(sentence)

    emit(as_json, document, told)


def _print_some(title: str, columns: list[str], lines: Sequence[Sequence[object]]) -> None:
    """Print the first lines of a table, and how many more there are."""
    print_table(title, columns, lines[:MOST_LINES])
    if len(lines) > MOST_LINES:
        typer.echo(f"and {len(lines) - MOST_LINES} more (--json has them all)")


# -- verify ---------------------------------------------------------------------------------------


def verify(
    folder: Path,
    *,
    keys: Path | None = None,
    fragment: list[Path] | None = None,
    log: Path | None = None,
    recompute: bool = True,
    as_json: bool = False,
) -> None:
    """Check who signed a result, and whether it follows.

    The fragments are assembled again. The digest that is printed is the same for everybody who was
    shown the same result. Exit code 0 means that every check was made and none failed; only the log
    need not be given.
    """
    from jigsaw_crl.federated.keys import read_key_list
    from jigsaw_crl.federated.verifying import verify_result

    listed = None if keys is None else read_key_list(keys)
    with working("checking"):
        found = verify_result(
            folder, keys=listed, fragments=fragment or [], log=log, recompute=recompute
        )

    def told() -> None:
        rows = [(check.what, check.outcome, check.detail) for check in found.checks]
        print_table("Checks", ["what", "outcome", "detail"], rows)
        typer.echo(f"{found.state}; digest of the result: {found.digest}")

    checks = [asdict(check) for check in found.checks]
    ok = found.state == "verified"
    document = {"ok": ok, "state": found.state, "digest": found.digest, "checks": checks}
    emit(as_json, document, told)
    if ok:
        return
    lacking = "not checked" if found.state == "not verified" else "failed"
    named = ", ".join(check.what for check in found.checks if check.outcome == lacking)
    if found.state == "not verified":
        raise InputError(
            f"not verified: {named}",
            "Pass --keys with the public keys of the sites and the coordinator, and recompute.",
            path=folder,
        )
    raise InputError(
        f"the result is not what it claims to be: {named}",
        "Ask the coordinator for the original.",
        path=folder,
    )
