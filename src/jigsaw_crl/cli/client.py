"""Commands that run where the rows are: `init`, `check`, `moments`, `fragment`, `latents`.

What a command runs is imported inside it, for start-up time: `jigsaw COMMAND --help` and shell
completion load this module and should answer at once.
"""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import typer

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import check_output, is_document, write_file, write_text
from jigsaw_crl.base.terminal import note, say, working
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.cli import options as opt
from jigsaw_crl.cli.output import (
    BLOCKS,
    emit,
    print_findings,
    print_left_out,
    print_outcomes,
    print_table,
)

if TYPE_CHECKING:
    from jigsaw_crl.base.findings import Finding
    from jigsaw_crl.client.client import Client
    from jigsaw_crl.fragment.fragment import Fragment, Outcome

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    opt.command(app, draft, "jigsaw init study/", name="init")
    opt.command(app, check, "jigsaw check study/")
    opt.command(app, moments, "jigsaw moments lab-1.parquet -o lab-1.moments.npz")
    opt.command(app, fragment, "jigsaw fragment lab-1.moments.npz -o lab-1.fragment.json")
    opt.command(app, latents, "jigsaw latents lab-1.private.json lab-1.csv -o latents.csv")


def draft(folder: Path, *, force: bool = False, as_json: bool = False) -> None:
    """Draft study.toml from the tables of a folder.

    Looks at all values of every table and writes what it finds: the column with the regime and the
    control, spellings of one label, values that stand for missing ones, columns that are no
    measurements. Every entry has a comment. Check the draft, then run `jigsaw check`.
    """
    from jigsaw_crl.study.drafting import draft_manifest
    from jigsaw_crl.study.manifest import MANIFEST

    output = folder / MANIFEST
    if output.exists() and not force:
        raise InputError("it exists already", "Edit it, or replace it with --force.", path=output)
    with working("looking at tables"):
        found = draft_manifest(folder)
    write_text(output, found.text)
    lines = [f"{output}: drafted from {pluralise(len(found.tables), 'table')}; check every line"]
    problems = [str(problem) for problem in found.problems]
    if problems:
        lines += ["not read yet:", *(f"  {problem}" for problem in problems)]
    document = {"output": str(output), "tables": list(found.tables), "problems": problems}
    emit(as_json, document, "\n".join(lines))


def check(
    study: Path,
    *,
    interventions: list[str] | None = None,
    reading: opt.Reading,
    as_json: bool = False,
) -> None:
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
    from jigsaw_crl.pipeline import Options, recover_study
    from jigsaw_crl.result.summary import left_out, summarise
    from jigsaw_crl.study import read_any

    kinds = opt.kinds_of(interventions)
    with working("reading"):
        data = read_any(study, **reading)
    for kind in kinds:
        data = data.with_interventions(kind)
    with working("checking"):
        report = check_study(data)
    refusal: InputError | None = None
    outcomes: dict[str, Outcome] = {}
    withheld: frozenset[str] = frozenset()
    try:
        with working("recovering"):
            recovered, report = recover_study(data, Options(), report)
            considered = consider(read_fragments(r.fragment for r in recovered))
        across = (*about_clients(report.across), *considered.findings)
        report, withheld = replace(report, across=across), considered.evidence.use.withheld
        outcomes = {r.fragment.client: r.fragment.outcome for r in recovered}
    except InputError as error:
        refusal = error
    parts = left_out(report.findings, outcomes)
    summary = summarise(outcomes, withheld, parts)

    def told() -> None:
        said = "The data cannot be used as they are." if refusal is not None else summary
        say(said)
        columns = ["client", "latents", "features", "noise floor", "gap", "weakest", "rows"]
        print_table("Clients", columns, [s.to_row() for s in report.clients])
        print_findings(report.findings)
        if refusal is None:
            print_left_out(parts)
            print_outcomes(outcomes)
        say(said)

    document = {
        "study": data.name,
        "fit": refusal is None,
        "summary": "" if refusal is not None else summary,
        "findings": [f.to_document() for f in report.findings],
        "left_out": [asdict(part) for part in parts],
        "outcomes": {name: asdict(outcome) for name, outcome in outcomes.items()},
        "clients": [summary.to_document() for summary in report.clients],
    }
    emit(as_json, document, told)
    if refusal is not None:
        raise refusal


def moments(
    table: Path,
    *,
    output: Path,
    interventions: list[str] | None = None,
    reading: opt.Reading,
    name: str | None = None,
    n_latent: int | None = None,
    add_to: Path | None = None,
    cluster: str | None = None,
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Turn rows into sufficient statistics.

    Reads the table once, in constant memory; one of 500 columns or more is read twice, and reduced
    to the directions that hold its latents. The file holds counts, means, covariances and higher
    moments, but no rows. Every other command accepts it in place of the table.
    """
    from jigsaw_crl.study import merge_clients, read_client_with_findings, write_moments
    from jigsaw_crl.study.moments_file import is_moments

    # Moments that rows are added to may be replaced by the sum.
    check_output(output, is_moments, inputs=[table], force=force, what="a moments file")
    earlier = None if add_to is None else read_client_with_findings(add_to)[0]
    reading |= {"name": name, "n_latent": n_latent, "cluster": cluster}
    reading["reduction"] = earlier and earlier.reduction
    client, _ = _read(table, interventions, reading)
    if earlier is not None:
        if not interventions:
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
    lines = [
        f"{client.name}: {rows}, {pluralise(len(client.columns), 'feature')}, "
        f"{pluralise(len(client.labels), 'label')} written to {output}"
    ]
    if client.reduction is not None:
        lines.append(client.reduction.message)
    if client.hard:
        lines.append(f"hard interventions: {', '.join(sorted(client.hard))}")
    emit(as_json, document, "\n".join(lines))


def fragment(
    table: Path,
    *,
    output: Path | None = None,
    private: Path | None = None,
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
    interventions: list[str] | None = None,
    reading: opt.Reading,
    name: str | None = None,
    n_latent: int | None = None,
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Recover one client's fragment: all that a site shares.

    The fragment holds labels, blocks, their order, evidence and sample sizes, but no rows and no
    moments.
    """
    from jigsaw_crl.federated.disclosure import check_rows, rounded, shown, with_rows_left_out
    from jigsaw_crl.fragment.reading import is_fragment, save_private
    from jigsaw_crl.pipeline import recover_fragment

    opt.method_options(method, interventions=interventions)
    options = opt.method_options(method, tau, confounding=confounding, rank_one=rank_one)
    if output is None and private is None and not show:
        raise InputError("no output is asked for", "Pass -o FILE, --show or both.")
    if output is not None:
        inputs = [table, sign]
        check_output(output, is_fragment, inputs=inputs, force=force, what="a fragment")
    if private is not None:
        own = is_document("private-fragment")
        check_output(private, own, inputs=[table, sign, output], force=force, what="of this kind")
    signed = opt.signer(sign, study, round_name)
    client, noticed = _read(table, interventions, {**reading, "name": name, "n_latent": n_latent})
    with working("recovering"):
        piece = recover_fragment(client, **options)
    piece = with_rows_left_out(piece, noticed)
    if private is not None:
        save_private(piece, private, force=force)
    check_rows(piece, min_rows)
    if not full_precision:
        piece = rounded(piece)
    if output is not None:
        write_text(output, piece.to_json() if signed is None else signed(piece))
    hard = [] if piece.hard is None else piece.hard.hard
    hard_labels = [label for label, is_hard in zip(piece.labels, hard, strict=False) if is_hard]

    def told() -> None:
        if show:
            say(shown(piece))
        blocks = " ".join("{" + ", ".join(sorted(b)) + "}" for b in piece.blocks)
        typer.echo(f"{piece.client}: {pluralise(len(piece.labels), 'label')} in blocks {blocks}")
        typer.echo(BLOCKS)
        say(f"outcome: {piece.outcome}")
        if hard_labels:
            say(f"hard interventions: {', '.join(hard_labels)}")
        if piece.findings:
            print_findings(piece.findings)
        if private is not None:
            typer.echo(f"the site's own copy, with the latent directions, written to {private}")
        if output is not None:
            typer.echo(f"{'signed and ' if signed is not None else ''}written to {output}")

    document = {
        "client": piece.client,
        "output": None if output is None else str(output),
        "private": None if private is None else str(private),
        "signed": signed is not None,
        **({"fragment": piece.to_document()} if show else {}),
        "labels": list(piece.labels),
        "blocks": [sorted(b) for b in piece.blocks],
        "hard": hard_labels,
        "outcome": {"code": piece.outcome.code, "message": piece.outcome.message},
    }
    emit(as_json, document, told)


def latents(
    private: Path,
    table: Path,
    *,
    output: Path,
    regime: str | None = None,
    ignore: list[str] | None = None,
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Write the latents of each row of a table.

    The table has the regime column and the features that the fragment was recovered from. The
    latents are as private as the rows.
    """
    import numpy as np

    from jigsaw_crl.fragment.reading import load_private
    from jigsaw_crl.study.reading import open_rows
    from jigsaw_crl.study.source import is_sparse

    # A table of latents has nothing that shows who wrote it.
    check_output(output, lambda _: False, inputs=[private, table], force=force, what="ours")
    fragment: Fragment = load_private(private)
    if not fragment.features:
        raise InputError("the features have no names", "Recover it from a table.", path=private)
    n = 0
    with (
        working(f"reading {table}"),
        open_rows(table, fragment.features, regime=regime, ignore=ignore or ()) as source,
    ):

        def write(file: BinaryIO) -> None:
            nonlocal n
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            writer = csv.writer(text)
            writer.writerow(["regime", *fragment.labels])
            for chunk in source.chunks():
                rows: Any = chunk.rows
                x = rows.toarray() if is_sparse(rows) else rows
                z = fragment.transform(np.asarray(x, dtype=np.float64))
                regimes, codes = chunk.beside["regime"]
                names = ["" if code < 0 else regimes[code] for code in codes.tolist()]
                writer.writerows([name, *row] for name, row in zip(names, z.tolist(), strict=True))
                n += len(names)
            text.flush()
            text.detach()

        write_file(output, write, private=True)
    client, labels = fragment.client, list(fragment.labels)
    size = f"{pluralise(len(labels), 'latent')} of {pluralise(n, 'row')}"
    document = {"client": client, "output": str(output), "n": n, "labels": labels}
    emit(as_json, document, f"{client}: {size} written to {output}")


def _read(
    table: Path, interventions: list[str] | None, reading: opt.Reading
) -> tuple[Client, list[Finding]]:
    """The client of a file; what was noticed about its columns and rows also goes to stderr."""
    from jigsaw_crl.study import read_client_with_findings
    from jigsaw_crl.study.manifest import MANIFEST

    kinds = opt.kinds_of(interventions)
    if table.suffix != ".toml" and (table.parent / MANIFEST).is_file():
        note(f"{MANIFEST} in the folder of {table.name} says how it is read")
    with working(f"reading {table}"):
        client, findings = read_client_with_findings(table, **reading)
    for kind in kinds:
        client = client.with_interventions(kind, strict=True)
    for finding in findings:
        note(str(finding))
    return client, findings
