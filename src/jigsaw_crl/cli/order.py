"""Commands that make a global order and report it: `recover`, `assemble`, `report`."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import check_output, locked
from jigsaw_crl.base.terminal import working
from jigsaw_crl.cli import options as opt
from jigsaw_crl.cli.output import records

if TYPE_CHECKING:
    from jigsaw_crl.base.knowledge import Knowledge
    from jigsaw_crl.result.result import Result


@opt.command("jigsaw recover study/ --out result/")
def recover(
    study: Path,
    *,
    out: Path | None = None,
    method: opt.Method = "null-cone",
    tau: float | None = None,
    confounding: Literal["allow", "none"] | None = None,
    rank_one: Literal["no-ancestor", "unsure"] | None = None,
    smallest_effect: float | None = None,
    witnesses: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    reading: opt.Reading,
    force: bool = False,
) -> opt.Answers:
    """Recover the global order of a study.

    Recovers every client's fragment, then assembles the fragments.
    """
    from jigsaw_crl.pipeline import recover as recover_study
    from jigsaw_crl.result.folder import check_folder
    from jigsaw_crl.study import read_study

    if out is not None:
        check_folder(out, inputs=[study], force=force)
        if out.resolve() == study.resolve():
            what = "the result would be written among the study's files"
            raise InputError(what, "Pass another folder as --out.", path=out)
    said = opt.saying(reading, method)
    options = opt.asked(
        method=method,
        tau=tau,
        confounding=confounding,
        rank_one=rank_one,
        smallest_effect=smallest_effect,
        witnesses=witnesses,
    )
    with working("reading"):
        data = said(read_study(study, **reading))
    with working("recovering"):
        result = recover_study(data, seed=seed, n_jobs=jobs, **options)
    yield _answer(result, out, force)


@opt.command(
    "jigsaw assemble *.fragment.json --out result/ (a later client: jigsaw assemble "
    "new.fragment.json --into result/; corrected data: --replace)"
)
def assemble(
    fragments: list[Path] | None = None,
    *,
    out: Path | None = None,
    into: Path | None = None,
    corrected: bool = False,
    remove: list[str] | None = None,
    keys: Path | None = None,
    round_name: str | None = None,
    again: bool = False,
    sign: Path | None = None,
    method: opt.Method = "null-cone",
    smallest_effect: float | None = None,
    knowledge: Path | None = None,
    witnesses: int | None = None,
    seed: int = 0,
    force: bool = False,
) -> opt.Answers:
    """Assemble fragments into one global order.

    Needs the fragment files only, not the clients' data.
    """
    from jigsaw_crl.adding import assembled, changed
    from jigsaw_crl.assembly.order import Options
    from jigsaw_crl.fragment.reading import fragment_paths, read_fragment_files
    from jigsaw_crl.result.folder import check_folder, load_result

    options = opt.asked(
        method=method, smallest_effect=smallest_effect, knowledge=knowledge, witnesses=witnesses
    )
    given, out = out, into if out is None else out
    files, gone = fragments or [], remove or []
    if into is None and (corrected or gone):
        raise InputError("--replace and --remove change a result", "Pass --into RESULT as well.")
    if not files and not gone:
        raise InputError("no fragment is given", "Name fragment files, or folders of them.")
    if out is not None:
        check_folder(out, inputs=[*files, keys, sign, knowledge], force=force)
    if (keys is None) != (round_name is None):
        raise InputError("--keys and --round belong together", "Pass both, or none of them.")
    if keys is not None and seed:
        raise InputError("a round has one seed, which nobody can choose", "Drop --seed.")
    if sign is not None and out is None:
        raise InputError("there is no result folder to sign", "Pass --out DIR as well.")
    if into is not None and (seed or options != {"method": "null-cone"}):
        raise InputError(
            "--method, --smallest-effect, --knowledge, --witnesses and --seed cannot be changed "
            "with --into",
            "Drop them: the result keeps its own.",
        )
    paths = fragment_paths(files)
    options["seed"] = seed
    if keys is not None and method == "null-cone":
        options.setdefault("witnesses", "fifth")
    if knowledge is not None:
        options["knowledge"] = _knowledge(knowledge)
    with ExitStack() as stack:
        if into is not None and given is None and into.is_dir():
            # From reading to writing: what another run adds meanwhile would be lost.
            stack.enter_context(locked(into))
        provenance: dict[str, Any] = {}
        if keys is not None and round_name is not None:
            from jigsaw_crl.federated.ledger import receive_signed

            receiving = receive_signed(paths, keys, round_name, again=again)
            pieces, provenance = stack.enter_context(receiving)
        else:
            pieces = read_fragment_files(paths)
        sources = zip(pieces, paths, strict=True)
        provenance = {"fragments": {name: str(path) for name, path in sources}, **provenance}
        with working("assembling"):
            if into is None:
                result = assembled(pieces, Options(**options), provenance)
            else:
                earlier = load_result(into)
                result = changed(earlier, pieces, gone, provenance, replace=corrected)
        yield _answer(result, out, force)
        if sign is not None and out is not None:
            from jigsaw_crl.federated.keys import read_private_key
            from jigsaw_crl.federated.verifying import sign_result

            sign_result(out, read_private_key(sign))


def _knowledge(path: Path) -> Knowledge:
    """What the table [knowledge] of a file says."""
    from jigsaw_crl.base.knowledge import Knowledge
    from jigsaw_crl.study.manifest import read_manifest

    found = read_manifest(path).get("knowledge")
    if not isinstance(found, Knowledge):
        raise InputError(
            "the file has no table [knowledge]",
            'Write [knowledge] and below it ancestor = ["LABEL -> LABEL"].',
            path=path,
        )
    return found


@opt.command("jigsaw report result/ -o report.html")
def report(folder: Path, *, output: Path | None = None, force: bool = False) -> opt.Answers:
    """Write the one-file HTML report of a result.

    By default into the result folder. Which sensors carry which label is known only to `jigsaw
    recover`, which reads the rows: this page does not show it.
    """
    from jigsaw_crl.result.folder import REPORT, is_report, load_result

    target = folder / REPORT if output is None else output
    check_output(target, is_report, inputs=[folder], force=force, what="a report")
    load_result(folder).report(target, force=force)
    lacks = "the page has no section Sensors, which only `jigsaw recover` can write"
    yield {"output": str(target)}, [f"written to {target}", f"note: {lacks}"]


def _answer(result: Result, out: Path | None, force: bool) -> tuple[Any, ...]:
    """What is printed of a result; it is written as well if a folder is given."""
    from jigsaw_crl.report.lines import result_lines
    from jigsaw_crl.result.document import order_document

    if out is not None:
        # Writing only writes, so the proposal comes first.
        with working("searching for the next client"):
            result = result.with_proposal()
        result.save(out, force=force)
    order = result.order

    def document() -> dict[str, Any]:
        effects = {}
        if len(result.effects) or order.effects is not None:
            edges = result.graph.edges(data=True)
            direct = [{"cause": a, "effect": d, **about} for a, d, about in edges]
            effects = {"effects": records(result.effects), "direct_edges": direct}
        return {
            "summary": result.summary,
            "order": order_document(order),
            "pairs": sorted([list(pair) for pair in order.pairs()]),
            "best_guess": sorted([list(pair) for pair in order.best_guess().pairs()]),
            "hasse": [list(edge) for edge in sorted(order.hasse().edges)],
            **effects,
            "clients": {
                name: {
                    "outcome": piece.outcome.code,
                    "message": str(piece.outcome),
                    "labels": list(piece.labels),
                    "blocks": [sorted(block) for block in piece.blocks],
                }
                for name, piece in result.fragments.items()
            },
            "left_out": [asdict(part) for part in result.left_out],
            "lost_labels": list(result.lost_labels),
            "findings": [f.to_document() for f in result.diagnostics],
            "out": None if out is None else str(out),
        }

    since, written = str(result.provenance.get("since", "")), f"written to {out}" if out else ""
    return document, since, result_lines(result), written
