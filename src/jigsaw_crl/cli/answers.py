"""Commands that ask a result: `explain`, `predict`, `diff`, `design`, `verify`.

What a command runs is imported inside it, for start-up time.
"""

from __future__ import annotations

import math
from collections import Counter
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

    from jigsaw_crl.assembly.plan import Design
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
    rows: int | None = None,
    cost: list[str] | None = None,
    cannot: list[str] | None = None,
    seed: int = 0,
    as_json: bool = False,
) -> None:
    """Propose the next experiment: a new client, or more rows.

    Prints the labels, which interventions should be hard, and the chance that each open pair is
    settled; then where more rows may settle open pairs. With hard interventions, it also says what
    narrows each effect.
    """
    from jigsaw_crl.result.folder import load_result

    result = load_result(folder)
    known = len(result.order.labels)
    if size is not None and size > known:
        note(f"--size {size}: the order has {pluralise(known, 'label')}, so at most that")
    with working("weighing clients"):
        found = result.design(
            size, rows=rows, seed=seed, cost=_amounts(cost or [], "cost"), cannot=cannot or ()
        )
    proposal = found.proposal

    def document() -> dict[str, Any]:
        return {
            "labels": list(proposal.labels),
            "hard": list(proposal.hard),
            "reason": proposal.reason,
            "interventions": found.interventions,
            "expected_gain": float(proposal.expected_gain),
            "expected_settled": proposal.expected,
            "undetermined": proposal.undetermined,
            "rows": proposal.rows,
            "settles": sorted(list(pair) for pair in proposal.settles),
            "pairs": _records(found.to_frame()),
            "effects": _records(found.effects_frame()),
        }

    def told() -> None:
        if found.interventions:
            say(found.interventions)
        _print_site(found)
        _print_rows(found)
        _print_effects(found)

    emit(as_json, document, told)


def _print_site(found: Design) -> None:
    proposal = found.proposal
    if not proposal.undetermined:
        say(str(proposal))
        return
    say(f"labels: {', '.join(proposal.labels)}")
    typer.echo(f"why so many: {proposal.reason}")
    typer.echo(f"such a client {proposal.expects}")
    frame = found.to_frame()
    frame = frame[~frame.chance_new_site.lt(0.05)]
    lines = [
        (a, d, f"{chance:.2f}")
        for a, d, chance in zip(
            frame.ancestor, frame.descendant, frame.chance_new_site, strict=True
        )
    ]
    columns = ["ancestor?", "descendant?", "chance"]
    _print_some("Chance that the new client settles a pair", columns, lines)


def _print_rows(found: Design) -> None:
    helped = Counter(site for m in found.more_rows for site in m.sites)
    if helped:
        title, columns = "Where more rows may settle open pairs", ["client", "open pairs"]
        _print_some(title, columns, helped.most_common())
    for reason, count in Counter(m.reason for m in found.more_rows if m.reason).most_common():
        typer.echo(f"not by more rows, {pluralise(count, 'pair')}: {reason}")


def _print_effects(found: Design) -> None:
    # Undetermined edges first, and among them what more data help most.
    ranked = sorted(found.effects, key=lambda e: (e.edge != "undetermined", -(e.error or 1e9)))
    lines = [
        (
            e.cause,
            e.effect,
            *(
                "–" if x is None else f"{x:.3f}"
                for x in (e.total, e.error, e.error_new_site, e.error_more_rows)
            ),
            e.site or "–",
            e.edge if e.factor is None else f"decided with {e.factor:g} times the rows",
            e.missing,
        )
        for e in ranked
    ]
    columns = ["cause", "effect", "total", "error", "with new client", "with twice the rows", "at"]
    columns += ["edge", "what is missing"]
    if lines:
        _print_some("Effects in standard deviations, and their standard errors", columns, lines)


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
