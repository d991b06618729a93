"""Commands on simulated worlds: `demo`, `simulate`, `reproduce`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import sync_folder, writable, write_file, write_text
from jigsaw_crl.base.terminal import Table, working
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.cli import options as opt

if TYPE_CHECKING:
    from jigsaw_crl.base.arrays import FloatArray
    from jigsaw_crl.truth.simulate import World


@opt.command("jigsaw demo --out jigsaw-demo/")
def demo(*, out: Path = Path("jigsaw-demo"), force: bool = False) -> opt.Answers:
    """The main job on an embedded study: recover, explain, report."""
    from jigsaw_crl.report.contents import decided_across_clients
    from jigsaw_crl.report.lines import result_lines
    from jigsaw_crl.truth.demo import ROWS, SIMULATED, run_demo

    result, comparison = run_demo(out, force=force)
    order, report = result.order, out / "report.html"
    across = decided_across_clients(order)
    certificate = None if across is None else order.explain(*across)

    told: list[str | Table] = [
        f"{result.provenance['study']}: {pluralise(len(order.fragments), 'client')}, "
        f"{ROWS:,} rows in every regime. Each client sees only some of the\n"
        f"{len(order.labels)} labels, mixed by its own sensors; none shares its data.\n"
        f"{SIMULATED}\n",
        *result_lines(result),
    ]
    if across is not None:
        seen = order.panel.seen_by(*order.indices(*across))
        who = "No client could tell this alone" if seen else "No client has both labels"
        told.append(f"\n{who}; together they know:\n{certificate}\n")
    columns = ["method", "ancestor pairs found", "wrong", "missed", "F1"]
    rows = [[*list(row.values())[:-1], f"{row['f1']:.2f}"] for row in comparison]
    told.append(Table("Compared with the truth, which the simulator knows", columns, rows))
    told.append(f"Result folder: {out}\nReport:        {report.resolve()}\nOpen it in a browser.")
    document = {
        "study": result.provenance["study"],
        "hasse": [list(edge) for edge in sorted(order.hasse().edges)],
        "undetermined": sorted(list(pair) for pair in order.undetermined()),
        "across": None if across is None else list(across),
        "certificate": None if certificate is None else str(certificate),
        "comparison": comparison,
        "out": str(out),
        "report": str(report),
    }
    yield document, told


@opt.command("jigsaw simulate --setting A --samples 10000 --out study/")
def simulate(
    *,
    out: Path,
    setting: Literal["A", "B", "C"] | None = None,
    latent: int | None = None,
    clients: int | None = None,
    coverage: float | None = None,
    system: str = "linear",
    intervention: str = "paper",
    shift: float = 0.0,
    samples: int | None = None,
    noise: Literal["gaussian", "laplace"] = "gaussian",
    file_format: Literal["csv", "parquet"] | None = None,
    seed: int = 0,
) -> opt.Answers:
    """Write the study of a simulated world.

    One file per client, and the truth in truth/. In Python, `jc.simulate` has further worlds.
    """
    from jigsaw_crl.truth import simulate as worlds

    protocol = worlds.Intervention.named(intervention, shift=shift)
    if setting is not None:
        if not (latent is clients is coverage is None and system == "linear"):
            raise InputError(
                "--setting excludes --latent, --clients, --coverage and --system",
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
            latent, clients, coverage, seed, system=system, intervention=protocol
        )
    if samples is None and file_format is not None:
        raise InputError(f"exact moments are no {file_format} table", "Pass --samples as well.")
    with working("writing"):
        files = write_study(world, out, samples, noise, file_format or "parquet", seed=seed)
    document = {
        "out": str(out),
        "clients": {name: str(path) for name, path in files.items()},
        "truth": str(out / "truth" / "truth.json"),
        "labels": list(world.labels),
    }
    # A random world may have latents that no client accesses.
    seen = {node for k in range(len(files)) for node in world.view(k).nodes}
    size = f"{pluralise(len(files), 'client')}, {pluralise(len(seen), 'label')}"
    yield document, f"{size} written to {out}"


def write_study(
    world: World, out: Path, samples: int | None, noise: str, file_format: str, *, seed: int
) -> dict[str, Path]:
    """Write one file per client and `truth/truth.json`, all of them or none.

    Without a number of samples, the files hold exact moments.
    """
    from jigsaw_crl.study import write_moments

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError("it exists already", "Choose a new folder for the study.", path=out)
    files = {}
    with writable(out, "the folder"):
        out.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{out.name[:80]}-", dir=out.parent) as own:
            # A folder in it, so that the umask decides who may read the study.
            stage = Path(own) / "study"
            (stage / "truth").mkdir(parents=True)
            for k in range(world.n_clients):
                name = world.view(k).name
                if samples is None:
                    path = write_moments(world.client(k), stage / f"{name}.moments.npz")
                else:
                    regimes = world.sample(k, samples, noise, seed).regimes
                    path = write_table(regimes, stage / f"{name}.{file_format}", file_format)
                files[name] = out / path.name
            truth = json.dumps(_truth(world), ensure_ascii=False, indent=1)
            write_text(stage / "truth" / "truth.json", truth)
            # An empty folder may be replaced, but nothing that another run has written meanwhile.
            stage.replace(out)
        sync_folder(out.absolute().parent)
    return files


def write_table(regimes: Mapping[str, FloatArray], path: Path, file_format: str) -> Path:
    """Write the rows of all regimes as one table, `csv` or `parquet`."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    rows = np.vstack(list(regimes.values()))
    columns = {"regime": np.repeat(list(regimes), [len(x) for x in regimes.values()])}
    columns |= {f"x{i + 1}": x for i, x in enumerate(rows.T)}
    writer = pyarrow.csv.write_csv if file_format == "csv" else pyarrow.parquet.write_table
    return write_file(path, lambda file: writer(pa.table(columns), file))


def _truth(world: World) -> dict[str, Any]:
    """The truth as plain JSON values; recovery never reads it."""
    clients = {}
    for k in range(world.n_clients):
        truth = world.truth(k)
        clients[truth.client] = {
            "labels": list(truth.labels),
            "pairs": sorted([list(pair) for pair in truth.order.pairs()]),
            "blocks": [sorted(block) for block in truth.blocks],
            "districts": [sorted(district) for district in truth.districts],
            "mixing": truth.mixing.tolist(),
        }
    return {
        "format": "jigsaw-crl/truth",
        "version": 1,
        "labels": list(world.labels),
        "pairs": sorted([list(pair) for pair in world.order.pairs()]),
        "clients": clients,
    }


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
) -> opt.Answers:
    """Run the paper's experiments, beside its printed numbers.

    If it is killed, run it again: it resumes where it stopped.
    """
    from jigsaw_crl.truth.experiments.plan import plan_of
    from jigsaw_crl.truth.experiments.reproduce import METHODS, run_plan

    plan = plan_of(what, quick=quick, methods=tuple(method or METHODS), only=only or ())
    made = run_plan(plan, out / what, workers=workers or os.cpu_count() or 1, force=force)
    document = {"page": str(made.page), "pictures": [str(p) for p in made.pictures]}
    yield document, f"written to {made.page}"
