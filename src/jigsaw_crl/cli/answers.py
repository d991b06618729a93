"""Commands that ask a result: `explain`, `predict`, `diff`, `design`, `verify`.

What a command runs is imported inside it, for start-up time.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.labels import normal_label
from jigsaw_crl.base.terminal import note, working
from jigsaw_crl.base.text import chance, few, pluralise, signed
from jigsaw_crl.cli.options import command
from jigsaw_crl.cli.output import Table, emit, records


@command("jigsaw explain result/ pump valve")
def explain(folder: Path, ancestor: str, descendant: str, *, as_json: bool = False) -> None:
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
        "excludes_above": certificate.bound if certificate.excluded else None,
        "excludes_unit": certificate.bound_unit if certificate.excluded else "",
        "effect": None if certificate.effect is None else asdict(certificate.effect),
        "contested": certificate.contested,
        "rests_on": certificate.rests_on or None,
        "witnesses": certificate.witnesses or None,
        "certificate": str(certificate),
    }
    emit(as_json, document, str(certificate))


@command("jigsaw predict result/ pump=+1.0")
def predict(folder: Path, shifts: list[str], *, as_json: bool = False) -> None:
    """What changes if some labels are moved?

    Needs hard interventions. Each label is moved by its amount while everything else goes on as in
    the control; the changes of several labels add up.
    """
    from jigsaw_crl.result.folder import load_result

    frame = load_result(folder).predict_shift(_amounts(shifts, "shift"))
    changes = ("label", "change", "low", "high")
    rows = [
        (label, "undetermined", "")
        if math.isnan(change)
        else (label, f"{change:+.3f}", f"{low:+.3f} to {high:+.3f}")
        for label, change, low, high in zip(*(frame[x] for x in changes), strict=True)
    ]
    title, columns = "Expected change in standard deviations", ["label", "change", "95 % interval"]
    emit(as_json, {"changes": records(frame)}, Table(title, columns, rows))


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
def diff(old: Path, new: Path, *, as_json: bool = False) -> None:
    """What changed between two results, and because of which clients?

    Lists the verdicts and effects that changed, and the clients that joined, left or changed and
    have both labels.
    """
    from jigsaw_crl.result import load_result
    from jigsaw_crl.result.difference import difference

    found = difference(load_result(old), load_result(new))
    told: list[str | Table] = [f"{found.summary}."]
    for what, labels in (("new labels", found.new_labels), ("labels gone", found.lost_labels)):
        told += [f"{what}: {few(labels)}"] if labels else []
    if found.turned:
        told.append(f"counted as growing in the other direction than before: {few(found.turned)}")
    columns = ["before", "after", "because of"]
    if found.verdicts:
        rows = [
            (
                v.ancestor,
                v.descendant,
                f"{v.before} ({chance(v.probability_before)})",
                f"{v.after} ({chance(v.probability_after)})",
                few(v.because) or "other pairs",
            )
            for v in found.verdicts
        ]
        told.append(Table("Verdicts (probability)", ["ancestor", "descendant", *columns], rows))
    if found.effects:
        changes = [
            (
                e.cause,
                e.effect,
                *("none" if x is None else signed(x) for x in (e.before, e.after)),
                few(e.because) or "other pairs",
            )
            for e in found.effects
        ]
        told.append(Table("Total effects", ["cause", "effect", *columns], changes))
    emit(as_json, asdict(found), told)


@command("jigsaw design result/")
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
    document = {**asdict(found), "kinds": found.kinds, "expects": found.expects}
    if not found.undetermined:
        emit(as_json, document, str(found))
        return
    told: list[str | Table] = [found.kinds] if found.kinds else []
    told += [
        f"labels: {', '.join(found.labels)}",
        f"why so many: {found.reason}",
        f"such a client {found.expects}",
    ]
    pairs = zip(found.settles, found.chances, strict=True)
    lines = [(a, d, f"{chance:.2f}") for (a, d), chance in pairs]
    if lines:
        title, columns = "Pairs that it settles more likely than not", ["ancestor?", "descendant?"]
        told.append(Table(title, [*columns, "chance"], lines, long=True))
    told += [found.more_rows] if found.more_rows else []
    emit(as_json, document, told)


@command("jigsaw verify result/ --keys site-keys.toml --fragment lab-1.fragment.json")
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
    rows = [(check.what, check.outcome, check.detail) for check in found.checks]
    checks = [asdict(check) for check in found.checks]
    ok = found.state == "verified"
    document = {"ok": ok, "state": found.state, "digest": found.digest, "checks": checks}
    last = f"{found.state}; digest of the result: {found.digest}"
    emit(as_json, document, Table("Checks", ["what", "outcome", "detail"], rows), last)
    if ok:
        return
    lacking = found.state == "not verified"
    wanted = "not checked" if lacking else "failed"
    named = ", ".join(check.what for check in found.checks if check.outcome == wanted)
    remedy = "Pass --keys with the public keys of the sites and the coordinator, and recompute."
    raise InputError(
        f"not verified: {named}" if lacking else f"the result is not what it claims to be: {named}",
        remedy if lacking else "Ask the coordinator for the original.",
        path=folder,
    )
