"""Commands that run where the rows are: `init`, `check`, `moments`, `fragment`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import check_output, write_text
from jigsaw_crl.base.terminal import Table, note, working
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.cli import options as opt

if TYPE_CHECKING:
    from jigsaw_crl.fragment.fragment import Fragment
    from jigsaw_crl.study import Study

# What the word means in what is told of a fragment.
BLOCKS = (
    "(labels are in one block if hidden causes join them at that client, which then cannot order "
    "all of them; another client may)"
)


@opt.command("jigsaw init study/", "init")
def draft(folder: Path) -> opt.Answers:
    """Draft study.toml from the tables of a folder.

    Looks at all values of every table and writes what it finds: the column with the regime and the
    control, spellings of one label, values that stand for missing ones, columns that are no
    measurements. Every entry has a comment. Check the draft, then run `jigsaw check`. A study.toml
    that is there is never replaced.
    """
    from jigsaw_crl.study.drafting import draft_manifest
    from jigsaw_crl.study.manifest import MANIFEST

    output = folder / MANIFEST
    with working("looking at tables"):
        found = draft_manifest(folder)
    write_text(output, found.text)
    told = f"{output}: drafted from {pluralise(len(found.tables), 'table')}; check every line"
    problems = [str(problem) for problem in found.unread]
    document = {"output": str(output), "tables": list(found.tables), "problems": problems}
    yield document, [told, *found.notes]


@opt.command("jigsaw check study/")
def check(study: Path, *, reading: opt.Reading) -> opt.Answers:
    """Is this data fit for the method, and if not, why not?

    Every client is checked and recovered, and nothing is assembled. The exit code is that of
    `jigsaw recover`: 0 when it gives a result, possibly without some labels or clients, and 2 when
    it refuses the data.

    Columns of the table: the noise floor is the variance that the sensors add in every direction;
    the gap is how many times larger the weakest latent direction is; weakest is the label whose
    regime is nearest to the control (1 is the edge of chance).
    """
    from jigsaw_crl.assembly.conclusion import about_clients, consider
    from jigsaw_crl.assembly.panel import read_fragments
    from jigsaw_crl.diagnostics import check_study
    from jigsaw_crl.pipeline import Options, only_usable, recover_clients
    from jigsaw_crl.report.lines import findings_table, left_out_lines, outcome_lines
    from jigsaw_crl.result.summary import left_out, summarise
    from jigsaw_crl.study import read_study

    said = opt.saying(reading)
    with working("reading"):
        data = said(read_study(study, **reading))
    with working("checking"):
        report = check_study(data)
    refusal: InputError | None = None
    fragments: dict[str, Fragment] = {}
    withheld: frozenset[str] = frozenset()
    try:
        with working("recovering"):
            recovered, report = recover_clients(data, Options(), report)
            left = only_usable(data, recovered, report)
            evidence, _, found = consider(read_fragments(r.fragment for r in left))
        across = (*about_clients(report.across), *found)
        report, withheld = replace(report, across=across), evidence.use.withheld
        fragments = {r.fragment.client: r.fragment for r in left}
    except InputError as error:
        refusal = error
    parts = left_out(report.findings, fragments)
    summary = summarise(fragments, withheld, parts)
    outcomes = {name: fragment.outcome for name, fragment in fragments.items()}

    head = "The data cannot be used as they are." if refusal is not None else summary
    columns = ["client", "latents", "features", "noise floor", "gap", "weakest", "rows"]
    told: list[str | Table] = [head]
    told.append(Table("Clients", columns, [s.to_row() for s in report.clients]))
    told.append(findings_table(report.findings))
    if refusal is None:
        told += [*left_out_lines(parts), *outcome_lines(outcomes)]
    document = {
        "study": data.name,
        "fit": refusal is None,
        "summary": "" if refusal is not None else summary,
        "findings": [f.to_document() for f in report.findings],
        "left_out": [asdict(part) for part in parts],
        "outcomes": {name: asdict(outcome) for name, outcome in outcomes.items()},
        "clients": [summary.to_document() for summary in report.clients],
    }
    yield document, told, head
    if refusal is not None:
        raise refusal


@opt.command("jigsaw moments lab-1.parquet -o lab-1.moments.npz")
def moments(
    table: Path,
    *,
    output: Path,
    reading: opt.Reading,
    name: str | None = None,
    n_latent: int | None = None,
    add_to: Path | None = None,
    cluster: str | None = None,
    force: bool = False,
) -> opt.Answers:
    """Turn rows into sufficient statistics.

    Reads the table once, in constant memory; one of 500 columns or more is read twice, and reduced
    to the directions that hold its latents. The file holds counts, means, covariances and higher
    moments, but no rows. Every other command accepts it in place of the table.
    """
    from jigsaw_crl.study import merge_clients, read_client, write_moments
    from jigsaw_crl.study.moments_file import is_moments

    # Moments that rows are added to may be replaced by the sum.
    check_output(output, is_moments, inputs=[table], force=force, what="a moments file")
    earlier = None if add_to is None else read_client(add_to)
    reading |= {"name": name, "n_latent": n_latent, "cluster": cluster}
    reading["reduction"] = earlier and earlier.reduction
    silent, said = "interventions" not in reading, opt.saying(reading)
    (client,) = _read(table, said, reading)
    if earlier is not None:
        if silent:
            # Nothing is said of the new rows: they are like the earlier ones.
            client = client.with_interventions(dict.fromkeys(earlier.hard, "hard"))
        client = merge_clients(earlier, client)
    write_moments(client, output, force=force)
    sizes = client.n_samples
    document = {
        "client": client.name,
        "output": str(output),
        "labels": list(client.labels),
        "n_features": len(client.columns),
        "n_directions": None if client.reduction is None else client.n_features,
        "n_latent": client.n_latent,
        "n_samples": sizes,
        "hard": sorted(client.hard),
    }
    rows = "exact moments" if sizes is None else pluralise(sum(sizes.values()), "row")
    told = [
        f"{client.name}: {rows}, {pluralise(len(client.columns), 'feature')}, "
        f"{pluralise(len(client.labels), 'label')} written to {output}",
        "" if client.reduction is None else client.reduction.message,
        f"hard interventions: {', '.join(sorted(client.hard))}" if client.hard else "",
    ]
    yield document, told


@opt.command("jigsaw fragment lab-1.moments.npz -o lab-1.fragment.json")
def fragment(
    table: Path,
    *,
    output: Path | None = None,
    sign: Path | None = None,
    study: str | None = None,
    round_name: str | None = None,
    show: bool = False,
    min_rows: int = 1,
    full_precision: bool = False,
    method: opt.Method = "null-cone",
    tau: float | None = None,
    confounding: Literal["allow", "none"] | None = None,
    rank_one: Literal["no-ancestor", "unsure"] | None = None,
    reading: opt.Reading,
    name: str | None = None,
    n_latent: int | None = None,
    force: bool = False,
) -> opt.Answers:
    """Recover one client's fragment: all that a site shares.

    The fragment holds labels, blocks, their order, evidence and sample sizes, but no rows and no
    moments.
    """
    from jigsaw_crl.federated.disclosure import check_rows, rounded, shown, with_rows_left_out
    from jigsaw_crl.federated.keys import read_private_key
    from jigsaw_crl.federated.signing import sign_fragment
    from jigsaw_crl.fragment.reading import is_fragment
    from jigsaw_crl.pipeline import recover_fragment
    from jigsaw_crl.report.lines import findings_table

    options = opt.asked(method=method, tau=tau, confounding=confounding, rank_one=rank_one)
    if output is None and not show:
        raise InputError("no output is asked for", "Pass -o FILE, --show or both.")
    if output is not None:
        inputs = [table, sign]
        check_output(output, is_fragment, inputs=inputs, force=force, what="a fragment")
    if len({not x for x in (sign, study, round_name)}) > 1:
        remedy = "Pass all of them, as the coordinator names study and round, or none."
        raise InputError("--sign, --study and --round belong together", remedy)
    key = None if sign is None else read_private_key(sign)
    said = opt.saying(reading, method)
    one = _read(table, said, {**reading, "name": name, "n_latent": n_latent})
    with working("recovering"):
        piece = recover_fragment(one.clients[0], **options)
    piece = with_rows_left_out(piece, one.findings)
    check_rows(piece, min_rows)
    if not full_precision:
        piece = rounded(piece)
    if output is not None:
        text = piece.to_json()
        if key is not None:
            text = sign_fragment(piece, key, study=study or "", round_name=round_name or "")
        write_text(output, text)
    hard = [] if piece.hard is None else piece.hard.hard
    hard_labels = [label for label, is_hard in zip(piece.labels, hard, strict=False) if is_hard]

    blocks = " ".join("{" + ", ".join(sorted(b)) + "}" for b in piece.blocks)
    signed = "signed and " if key is not None else ""
    told = [
        shown(piece) if show else "",
        f"{piece.client}: {pluralise(len(piece.labels), 'label')} in blocks {blocks}",
        f"{BLOCKS}\noutcome: {piece.outcome}",
        f"hard interventions: {', '.join(hard_labels)}" if hard_labels else "",
        findings_table(piece.findings) if piece.findings else "",
        "" if output is None else f"{signed}written to {output}",
    ]
    document = {
        "client": piece.client,
        "output": None if output is None else str(output),
        "signed": key is not None,
        **({"fragment": piece.to_document()} if show else {}),
        "labels": list(piece.labels),
        "blocks": [sorted(b) for b in piece.blocks],
        "hard": hard_labels,
        "outcome": {"code": piece.outcome.code, "message": piece.outcome.message},
    }
    yield document, told


def _read(table: Path, said: Callable[[Study], Study], reading: opt.Reading) -> Study:
    """The study of one file; what was noticed about its columns and rows also goes to stderr."""
    from jigsaw_crl.study import read_one
    from jigsaw_crl.study.manifest import MANIFEST

    if table.suffix != ".toml" and (table.parent / MANIFEST).is_file():
        note(f"{MANIFEST} in the folder of {table.name} says how it is read")
    with working(f"reading {table}"):
        one = said(read_one(table, **reading))
    for finding in one.findings:
        note(str(finding))
    return one
