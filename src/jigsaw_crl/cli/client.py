"""Commands that run where the rows are: `check`, `moments`, `fragment`.

What a command runs is imported inside it, for start-up time: `jigsaw COMMAND --help` and shell
completion load this module and should answer at once.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import check_output, is_document, write_text
from jigsaw_crl.base.terminal import note, print_json, say, working
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.cli import options as opt
from jigsaw_crl.cli.output import BLOCKS, print_findings, print_left_out, print_table

if TYPE_CHECKING:
    from jigsaw_crl.base.findings import Finding
    from jigsaw_crl.client.checks import Kinds
    from jigsaw_crl.client.client import Client
    from jigsaw_crl.fragment.fragment import Fragment, Outcome

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: jigsaw check study/")(check)
    app.command(epilog="Example: jigsaw moments lab-1.parquet -o lab-1.moments.npz")(moments)
    app.command(epilog="Example: jigsaw fragment lab-1.moments.npz -o lab-1.fragment.json")(
        fragment
    )


def check(
    study: opt.Study,
    interventions: opt.Interventions = None,
    regime: opt.Regime = None,
    control: opt.Control = None,
    batch: opt.Batch = None,
    group: opt.Group = None,
    trim: opt.Trim = None,
    drop_missing: opt.DropMissing = False,
    fill_missing: opt.FillMissing = False,
    ignore: opt.Ignore = None,
    as_json: opt.Json = False,
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
    from jigsaw_crl.pipeline import Options, recover_clients
    from jigsaw_crl.result.left_out import left_out
    from jigsaw_crl.study import read_any

    kinds = opt.kinds_of(interventions)
    reading = opt.reading(regime, control, batch, group, ignore, trim, drop_missing, fill_missing)
    with working("reading"):
        data = read_any(study, **reading)
    for kind in kinds:
        data = data.with_interventions(kind)
    with working("checking"):
        report = check_study(data)
    refusal: InputError | None = None
    outcomes: dict[str, Outcome] = {}
    try:
        with working("recovering"):
            recovered, report = recover_clients(data, report, Options())
            across = consider(read_fragments(r.fragment for r in recovered)).findings
        report = replace(report, across=(*about_clients(report.across), *across))
        outcomes = {r.fragment.client: r.fragment.outcome for r in recovered}
    except InputError as error:
        refusal = error
    parts = left_out(report.findings, outcomes)
    if as_json:
        print_json(
            {
                "study": data.name,
                "fit": refusal is None,
                "findings": [f.to_document() for f in report.findings],
                "left_out": [asdict(part) for part in parts],
                "outcomes": {name: asdict(outcome) for name, outcome in outcomes.items()},
                "clients": [summary.to_document() for summary in report.clients],
            }
        )
        if refusal is not None:
            raise refusal
        return
    columns = ["client", "latents", "features", "noise floor", "gap", "weakest", "rows"]
    print_table("Clients", columns, [s.to_row() for s in report.clients])
    print_findings(report.findings)
    if refusal is not None:
        typer.echo("The data cannot be used as they are.")
        raise refusal
    print_left_out(parts)
    for name, outcome in outcomes.items():
        if not outcome.ok:
            say(f"{name}: {outcome}")
    if all(outcome.code == "not-identified" for outcome in outcomes.values()):
        typer.echo("The data can be read, but they do not tell the order.")
    else:
        typer.echo(f"The data can be used{', without what is left out' if parts else ''}.")


def moments(
    table: opt.Table,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Moments file (.npz) to write.")
    ],
    interventions: opt.Interventions = None,
    regime: opt.Regime = None,
    control: opt.Control = None,
    batch: opt.Batch = None,
    group: opt.Group = None,
    trim: opt.Trim = None,
    drop_missing: opt.DropMissing = False,
    fill_missing: opt.FillMissing = False,
    ignore: opt.Ignore = None,
    name: opt.Name = None,
    n_latent: opt.NLatent = None,
    add_to: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Moments file whose rows these are added to."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Reduce a folder of Parquet files on the Dask cluster with this scheduler, each "
            "file by a worker that sees it.",
        ),
    ] = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
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
    kinds = opt.kinds_of(interventions)
    reading = opt.reading(regime, control, batch, group, ignore, trim, drop_missing, fill_missing)
    earlier = None if add_to is None else read_client_with_findings(add_to)[0]
    reading |= {"reduction": earlier and earlier.reduction, "cluster": cluster}
    client, _ = _read(table, kinds, name=name, n_latent=n_latent, **reading)
    if earlier is not None:
        if not kinds:
            # Nothing is said of the new rows: they are like the earlier ones.
            client = client.with_interventions(dict.fromkeys(earlier.hard, "hard"))
        client = merge_clients(earlier, client)
    write_moments(client, output, force=force)
    sizes = client.n_samples
    if as_json:
        print_json(
            {
                "client": client.name,
                "output": str(output),
                "labels": list(client.labels),
                "n_features": len(client.columns),
                "n_directions": None if client.reduction is None else client.n_features,
                "n_latent": client.n_latent,
                "n_samples": sizes,
                "hard": sorted(client.hard),
            }
        )
        return
    rows = "exact moments" if sizes is None else pluralise(sum(sizes.values()), "row")
    typer.echo(
        f"{client.name}: {rows}, {pluralise(len(client.columns), 'feature')}, "
        f"{pluralise(len(client.labels), 'label')} written to {output}"
    )
    if client.reduction is not None:
        typer.echo(client.reduction.message)
    if client.hard:
        typer.echo(f"hard interventions: {', '.join(sorted(client.hard))}")


def fragment(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A table or a moments file.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Fragment file to write.")
    ] = None,
    private: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write the site's own copy, with the latent directions; it is not shared.",
        ),
    ] = None,
    sign: Annotated[
        Path | None, typer.Option(metavar="KEY", help="Sign it with this site's private key.")
    ] = None,
    study: Annotated[
        str | None, typer.Option(metavar="NAME", help="Study that it is signed for.")
    ] = None,
    round_name: Annotated[
        str | None,
        typer.Option("--round", metavar="NAME", help="Round of the study that it is signed for."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print all that the fragment holds, for review.")
    ] = False,
    min_rows: Annotated[
        int, typer.Option(metavar="N", min=1, help="Refuse a regime with fewer rows.")
    ] = 1,
    full_precision: Annotated[
        bool,
        typer.Option(
            "--full-precision",
            help="Do not round the numbers to what their sampling error justifies. They then say "
            "more about single rows.",
        ),
    ] = False,
    method: opt.Method = "null-cone",
    tau: opt.Tau = None,
    confounding: opt.Confounding = "allow",
    rank_one: opt.RankOne = "no-ancestor",
    interventions: opt.Interventions = None,
    regime: opt.Regime = None,
    control: opt.Control = None,
    batch: opt.Batch = None,
    group: opt.Group = None,
    trim: opt.Trim = None,
    drop_missing: opt.DropMissing = False,
    fill_missing: opt.FillMissing = False,
    ignore: opt.Ignore = None,
    name: opt.Name = None,
    n_latent: opt.NLatent = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Recover one client's fragment: all that a site shares.

    The fragment holds labels, blocks, their order, evidence and sample sizes, but no rows and no
    moments.
    """
    from jigsaw_crl.federated.disclosure import check_rows, rounded, with_rows_left_out
    from jigsaw_crl.fragment.reading import is_fragment
    from jigsaw_crl.pipeline import recover_fragment

    options = opt.method_options(method, tau, confounding, rank_one)
    opt.null_cone_only(method, interventions=interventions)
    kinds = opt.kinds_of(interventions)
    if output is None and private is None and not show:
        raise InputError("no output is asked for", "Pass -o FILE, --show or both.")
    if output is not None:
        inputs = [table, sign]
        check_output(output, is_fragment, inputs=inputs, force=force, what="a fragment")
    if private is not None:
        own = is_document("private-fragment")
        check_output(private, own, inputs=[table, sign, output], force=force, what="of this kind")
    signed = opt.signer(sign, study, round_name)
    reading = opt.reading(regime, control, batch, group, ignore, trim, drop_missing, fill_missing)
    client, noticed = _read(table, kinds, name=name, n_latent=n_latent, **reading)
    with working("recovering"):
        piece = recover_fragment(client, **options)
    piece = with_rows_left_out(piece, noticed)
    if private is not None:
        from jigsaw_crl.fragment.reading import save_private

        save_private(piece, private, force=force)
    check_rows(piece, min_rows)
    if not full_precision:
        piece = rounded(piece)
    if output is not None:
        write_text(output, piece.to_json() if signed is None else signed(piece))
    if as_json:
        print_json(
            {
                "client": piece.client,
                "output": None if output is None else str(output),
                "private": None if private is None else str(private),
                "signed": signed is not None,
                **({"fragment": piece.to_document()} if show else {}),
                "labels": list(piece.labels),
                "blocks": [sorted(b) for b in piece.blocks],
                "hard": _hard(piece),
                "outcome": {"code": piece.outcome.code, "message": piece.outcome.message},
            }
        )
        return
    if show:
        from jigsaw_crl.federated.disclosure import shown

        say(shown(piece))
    blocks = " ".join("{" + ", ".join(sorted(b)) + "}" for b in piece.blocks)
    typer.echo(f"{piece.client}: {pluralise(len(piece.labels), 'label')} in blocks {blocks}")
    typer.echo(BLOCKS)
    say(f"outcome: {piece.outcome}")
    if _hard(piece):
        say(f"hard interventions: {', '.join(_hard(piece))}")
    if piece.findings:
        print_findings(piece.findings)
    if private is not None:
        typer.echo(f"the site's own copy, with the latent directions, written to {private}")
    if output is not None:
        typer.echo(f"{'signed and ' if signed is not None else ''}written to {output}")


def _hard(piece: Fragment) -> list[str]:
    """Labels whose interventions count as hard."""
    if piece.hard is None:
        return []
    return [label for label, hard in zip(piece.labels, piece.hard.hard, strict=True) if hard]


def _read(table: Path, kinds: list[Kinds], **options: Any) -> tuple[Client, list[Finding]]:
    """The client of a file; what was noticed about its columns and rows also goes to stderr."""
    from jigsaw_crl.study import read_client_with_findings
    from jigsaw_crl.study.manifest import MANIFEST

    if table.suffix != ".toml" and (table.parent / MANIFEST).is_file():
        note(f"{MANIFEST} in the folder of {table.name} says how it is read")
    with working(f"reading {table}"):
        client, findings = read_client_with_findings(table, **options)
    for kind in kinds:
        client = client.with_interventions(kind, strict=True)
    for finding in findings:
        note(str(finding))
    return client, findings
