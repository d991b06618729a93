"""Commands on simulated worlds: `demo`, `simulate`, `reproduce`.

What a command runs is imported inside it, for start-up time: `jigsaw COMMAND --help` and shell
completion load this module and should answer at once.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.terminal import working
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.cli import options as opt
from jigsaw_crl.cli.order import result_told
from jigsaw_crl.cli.output import Table, emit

Setting = Literal["A", "B", "C"]
Format = Literal["csv", "parquet", "moments"]


@opt.command("jigsaw demo --out jigsaw-demo/")
def demo(
    *,
    out: Path = Path("jigsaw-demo"),
    force: bool = False,
    as_json: bool = False,
) -> None:
    """The main job on an embedded study: recover, explain, report."""
    from jigsaw_crl.truth.demo import ROWS, SIMULATED, run_demo

    made = run_demo(out, force=force)
    order, report = made.result.order, made.folder / "report.html"
    certificate = None if made.across is None else order.explain(*made.across)

    told: list[str | Table] = [
        f"{made.result.provenance['study']}: {pluralise(len(order.fragments), 'client')}, "
        f"{ROWS:,} rows in every regime. Each client sees only some of the\n"
        f"{len(order.labels)} labels, mixed by its own sensors; none shares its data.\n"
        f"{SIMULATED}\n"
    ]
    told += [] if as_json else result_told(made.result)
    if made.across is not None:
        seen = order.panel.seen_by(*order.indices(*made.across))
        who = "No client could tell this alone" if seen else "No client has both labels"
        told.append(f"\n{who}; together they know:\n{certificate}\n")
    columns = ["method", "ancestor pairs found", "wrong", "missed", "F1"]
    rows = [(r.method, r.right, r.wrong, r.missed, f"{r.f1:.2f}") for r in made.comparison]
    told.append(Table("Compared with the truth, which the simulator knows", columns, rows))
    told.append(f"Result folder: {made.folder}\nReport:        {report.resolve()}")
    told.append(f"Done in {made.seconds:.1f} s. Open the report in a browser.")
    document = {
        "study": made.result.provenance["study"],
        "hasse": [list(edge) for edge in sorted(order.hasse().edges)],
        "undetermined": sorted(list(pair) for pair in order.undetermined()),
        "across": None if made.across is None else list(made.across),
        "certificate": None if certificate is None else str(certificate),
        "comparison": [asdict(row) for row in made.comparison],
        "out": str(made.folder),
        "report": str(report),
        "seconds": round(made.seconds, 2),
    }
    emit(as_json, document, told)


@opt.command("jigsaw simulate --setting A --samples 10000 --out study/")
def simulate(
    *,
    out: Path,
    setting: Setting | None = None,
    latent: int | None = None,
    clients: int | None = None,
    coverage: float | None = None,
    graph: str = "er",
    system: str = "linear",
    intervention: str = "paper",
    shift: float = 0.0,
    samples: int | None = None,
    noise: Literal["gaussian", "laplace"] = "gaussian",
    file_format: Format | None = None,
    seed: int = 0,
    as_json: bool = False,
) -> None:
    """Write the study of a simulated world.

    One file per client, and the truth in truth/. In Python, `jc.simulate` has further worlds.
    """
    from jigsaw_crl.cli.simulated import write_study
    from jigsaw_crl.truth import simulate as worlds

    protocol = worlds.Intervention.named(intervention, shift=shift)
    if setting is not None:
        if not (latent is clients is coverage is None and (graph, system) == ("er", "linear")):
            raise InputError(
                "--setting excludes --latent, --clients, --coverage, --graph and --system",
                "Choose a world of the paper or describe a random one.",
            )
        world = worlds.setting(setting, seed, intervention=protocol)
    elif latent is None or clients is None or coverage is None:
        raise InputError(
            "the world is not described",
            "Pass --setting A, or all of --latent, --clients and --coverage.",
        )
    else:
        world = worlds.random_world(
            latent, clients, coverage, seed, graph=graph, system=system, intervention=protocol
        )
    kind = file_format or ("moments" if samples is None else "parquet")
    if samples is None and kind != "moments":
        raise InputError(
            f"exact moments cannot be written as {kind}", "Pass --samples, or --format moments."
        )
    with working("writing"):
        files = write_study(world, out, samples, noise, kind, seed=seed)
    document = {
        "out": str(out),
        "clients": {name: str(path) for name, path in files.items()},
        "truth": str(out / "truth" / "truth.json"),
        "labels": list(world.labels),
    }
    size = f"{pluralise(len(files), 'client')}, {pluralise(len(world.labels), 'label')}"
    emit(as_json, document, f"{size} written to {out}")


@opt.command("jigsaw reproduce tables --quick --out reproduce/")
def reproduce(
    what: Literal["figures", "tables"],
    *,
    only: list[str] | None = None,
    method: list[str] | None = None,
    quick: bool = False,
    workers: int | None = None,
    out: Path = Path("reproduce"),
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Run the paper's experiments, beside its printed numbers.

    If it is killed, run it again: it resumes where it stopped.
    """
    from jigsaw_crl.truth.experiments.reproduce import run

    made = run(
        what,
        out=out,
        quick=quick,
        workers=workers or os.cpu_count() or 1,
        methods=tuple(method or ("paper", "null-cone")),
        only=only or (),
        force=force,
    )
    document = {"page": str(made.page), "pictures": [str(p) for p in made.pictures]}
    emit(as_json, document, f"written to {made.page}")
