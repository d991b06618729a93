"""The command `design`: a new site, more rows, or other interventions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from jigsaw_crl.base.terminal import note, print_json, say, working
from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.cli import options as opt
from jigsaw_crl.cli.effects import records
from jigsaw_crl.cli.output import print_table

if TYPE_CHECKING:
    from jigsaw_crl.assembly.plan import Design

__all__ = ["design"]

# Lines of each table that are printed for people.
MOST_LINES = 15


def design(
    folder: opt.ResultFolder,
    size: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=2, help="Latents the next client accesses; by default as many as pay."
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=2, help="Its rows per regime; by default as many as a site has."
        ),
    ] = None,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
) -> None:
    """Propose the next experiment: a new client, or more rows.

    Prints the labels and the chance that each open pair is settled, then the rows that would settle
    open pairs at the sites that are there. With hard interventions, it also says what narrows each
    effect.
    """
    # Imported here for start-up time.
    from jigsaw_crl.result.folder import load_result

    result = load_result(folder)
    known = len(result.order.labels)
    if size is not None and size > known:
        note(f"--size {size}: the order has {pluralise(known, 'label')}, so at most that")
    with working("weighing clients"):
        found = result.design(size, rows=rows, seed=seed)
    if as_json:
        _print_document(found)
        return
    _print_site(found)
    _print_rows(found)
    _print_effects(found)


def _print_document(found: Design) -> None:
    proposal = found.proposal
    print_json(
        {
            "labels": list(proposal.labels),
            "reason": proposal.reason,
            "expected_gain": float(proposal.expected_gain),
            "expected_settled": proposal.expected,
            "undetermined": proposal.undetermined,
            "rows": proposal.rows,
            "settles": sorted(list(pair) for pair in proposal.settles),
            "pairs": records(found.to_frame()),
            "effects": records(found.effects_frame()),
        }
    )


def _print_site(found: Design) -> None:
    proposal = found.proposal
    if not proposal.undetermined:
        say(str(proposal))
        return
    say(f"labels: {', '.join(proposal.labels)}")
    typer.echo(f"why so many: {proposal.reason}")
    each = "" if proposal.rows is None else f" with {proposal.rows:,} rows per regime"
    typer.echo(
        f"expected to settle {proposal.expected:.1f} of "
        f"{pluralise(proposal.undetermined, 'open pair')}{each} ({proposal.expected_gain:.2g} bits)"
    )
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
    helped = [m for m in found.more_rows if m.site is not None]
    lines = [
        (
            m.ancestor,
            m.descendant,
            m.site,
            *(f"{n:,}" if n else "–" for n in (m.rows, m.even, m.good)),
        )
        for m in helped
    ]
    columns = ["ancestor?", "descendant?", "site", "rows now", "even chance", "chance of 0.8"]
    if lines:
        _print_some("Rows per regime that would settle a pair", columns, lines)
    unsure = [f"{m.ancestor}–{m.descendant}" for m in helped if m.joined]
    if unsure:
        say(
            "confounded at every site as far as the present rows tell, which more rows may change: "
            + few(unsure)
        )
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
    columns = ["cause", "effect", "total", "error", "with new site", "with twice the rows", "at"]
    columns += ["edge", "what is missing"]
    if lines:
        _print_some("Effects in standard deviations, and their standard errors", columns, lines)


def _print_some(title: str, columns: list[str], lines: Sequence[Sequence[object]]) -> None:
    """Print the first lines of a table, and how many more there are."""
    print_table(title, columns, lines[:MOST_LINES])
    if len(lines) > MOST_LINES:
        typer.echo(f"and {len(lines) - MOST_LINES} more (--json has them all)")
