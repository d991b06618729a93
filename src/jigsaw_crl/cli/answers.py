"""Commands that ask a result: `explain`, `predict`, `diff`, `design`, `verify`."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.labels import normal_label
from jigsaw_crl.base.terminal import Table, note, working
from jigsaw_crl.base.text import chance, few, pluralise, signed
from jigsaw_crl.cli.options import Answers, command
from jigsaw_crl.cli.output import records

if TYPE_CHECKING:
    from jigsaw_crl.result.difference import Answer


@command("jigsaw explain result/ pump valve")
def explain(folder: Path, ancestor: str, descendant: str) -> Answers:
    """Why is this the verdict on a pair of labels?"""
    from jigsaw_crl.result.folder import load_result

    result = load_result(folder)
    order, pair = result.order, (normal_label(ancestor), normal_label(descendant))
    for label in pair:
        if label in result.lost_labels:
            why = "; ".join(str(part) for part in result.lost_labels[label])
            raise InputError(
                f"the label {label!r} is missing from the order; left out were {why[:400]}",
                "See the findings for what to do about it.",
            )
    certificate = order.explain(*pair)
    document = {
        "ancestor": pair[0],
        "descendant": pair[1],
        "verdict": order.verdict(*pair).name.lower(),
        # Algorithm 3 gives none.
        "probability": None if order.mode == "paper" else float(order.probability(*pair)),
        "excludes_above": certificate.bound,
        "excludes_unit": certificate.bound_unit,
        "effect": certificate.effect,
        "contested": list(certificate.contested_by),
        "rests_on": certificate.rests_on or None,
        "witnesses": certificate.witnesses or None,
        "certificate": str(certificate),
    }
    yield document, str(certificate)


@command("jigsaw predict result/ pump=+1.0")
def predict(folder: Path, shifts: list[str]) -> Answers:
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
        for label, change, low, high in frame.itertuples(index=False)
    ]
    title, columns = "Expected change in standard deviations", ["label", "change", "95 % interval"]
    yield {"changes": records(frame)}, Table(title, columns, rows)


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


@command("jigsaw diff before/ after/")
def diff(old: Path, new: Path) -> Answers:
    """What changed between two results, and because of which clients?

    Lists the verdicts, total effects and direct edges that changed, and the clients that joined,
    left or changed and have both labels.
    """
    from jigsaw_crl.result.difference import KINDS, difference
    from jigsaw_crl.result.folder import load_result

    found = difference(load_result(old), load_result(new))
    told: list[str | Table] = [f"{found.summary}."]
    for what, labels in (("new labels", found.new_labels), ("labels gone", found.lost_labels)):
        told += [f"{what}: {few(labels)}"] if labels else []
    for what in KINDS:
        rows = [
            (
                x.ancestor,
                x.descendant,
                *(_answer_in_words(what, answer) for answer in (x.before, x.after)),
                few(x.because) or "other pairs",
            )
            for x in found.of(what)
        ]
        columns = ["ancestor", "descendant", "before", "after", "because of"]
        told += [Table(f"Another {what}", columns, rows)] if rows else []
    if len(found.of("verdict")) < len(found.changes):
        told.append(
            "An effect counts if its 95 % interval excludes zero, an edge if it is decided. They "
            "changed if they came, went, or moved by more than their earlier standard error."
        )
    yield asdict(found), told


def _answer_in_words(what: str, answer: Answer | None) -> str:
    """An answer with its probability or size."""
    if answer is None:
        return "none"
    number = chance(answer.number, 2) if what == "verdict" else signed(answer.number)
    return f"{answer.says} ({number})"


@command("jigsaw design result/")
def design(
    folder: Path,
    *,
    size: int | None = None,
    cost: list[str] | None = None,
    cannot: list[str] | None = None,
    seed: int = 0,
) -> Answers:
    """Propose the next experiment: a new client, or more rows.

    Prints the labels, which interventions should be hard, and the pairs that are likely settled;
    then where more rows may settle open pairs.
    """
    from jigsaw_crl.assembly.design import next_client
    from jigsaw_crl.result.folder import load_result

    order = load_result(folder).order
    known = len(order.labels)
    if size is not None and size > known:
        note(f"--size {size}: the order has {pluralise(known, 'label')}, so at most that")
    costs = _amounts(cost or [], "cost")
    with working("weighing clients"):
        found = next_client(order, size, seed=seed, cost=costs, cannot=cannot or ())
    document = asdict(found)
    if not found.undetermined:
        yield document, str(found)
        return
    pairs = zip(found.settles, found.chances, strict=True)
    lines = [(a, d, f"{chance:.2f}") for (a, d), chance in pairs]
    columns = ["ancestor?", "descendant?", "chance"]
    settled = Table("Pairs that it settles more likely than not", columns, lines, long=True)
    told = [
        found.kinds,
        f"labels: {', '.join(found.labels)}",
        f"why this many: {found.reason}",
        f"such a client {found.expects}",
    ]
    yield document, told, [settled] if lines else "", found.more_rows


@command("jigsaw verify result/ --keys site-keys.toml --fragment lab-1.fragment.json")
def verify(
    folder: Path,
    *,
    keys: Path | None = None,
    fragment: list[Path] | None = None,
    log: Path | None = None,
) -> Answers:
    """Check who signed a result, and whether it follows.

    The fragments are assembled again. The digest that is printed is the same for everybody who was
    shown the same result. Exit code 0 means that every check was made and none failed; only the log
    need not be given.
    """
    from jigsaw_crl.federated.keys import KeyList
    from jigsaw_crl.federated.ledger import LogLine
    from jigsaw_crl.federated.verifying import verify_result

    listed = None if keys is None else KeyList.from_toml(keys)
    with working("checking"):
        found = verify_result(folder, keys=listed, fragments=fragment or [], log=log)
    rows = [(check.what, check.outcome, check.detail) for check in found.checks]
    checks = [asdict(check) for check in found.checks]
    ok = found.state == "verified"
    document = {"ok": ok, "state": found.state, "digest": found.digest, "checks": checks}
    last = f"{found.state}; digest of the result: {found.digest}"
    yield document, Table("Checks", ["what", "outcome", "detail"], rows), last
    if ok:
        return
    lacking = found.state == "not verified"
    wanted = "not checked" if lacking else "failed"
    # What the log says is told above; it need not be given.
    told = [check.what for check in found.checks if check.outcome == wanted]
    named = ", ".join(what for what in told if not (lacking and what == LogLine.kind))
    remedy = "Pass --keys with the public keys of the sites and the coordinator."
    raise InputError(
        f"not verified: {named}" if lacking else f"the result is not what it claims to be: {named}",
        remedy if lacking else "Ask the coordinator for the original.",
        path=folder,
    )
