"""Write the study of a simulated world as files, in any format that can be read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jigsaw_crl.base.arrays import AnyArray, FloatArray
from jigsaw_crl.base.errors import InputError, import_optional
from jigsaw_crl.base.files import (
    new_stage,
    sync_file,
    sync_folder,
    writable,
    write_file,
    write_text,
)
from jigsaw_crl.client.client import CONTROL, Client
from jigsaw_crl.study import write_moments

if TYPE_CHECKING:
    from jigsaw_crl.truth.simulate import Departure, World

__all__ = ["write_study", "write_table"]


def write_study(
    world: World,
    out: Path,
    samples: int | None,
    noise: str,
    file_format: str,
    *,
    seed: int,
    departures: Sequence[Departure] = (),
) -> dict[str, Path]:
    """Write one file per client and `truth/truth.json`, all of them or none."""
    if samples is None and departures:
        raise InputError(f"{departures[0].name} needs rows", "Pass --samples.")
    departed = _departed(world, departures)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError("it exists already", "Choose a new folder for the study.", path=out)

    def write(k: int, folder: Path) -> Path:
        name = world.view(k).name
        if samples is None:
            return write_moments(world.client(k), folder / f"{name}.moments.npz")
        drawn = world.sample(k, samples, noise, seed, departures=departures)
        regimes = drawn.regimes
        if file_format == "moments":
            # Labels are sorted, as in clients read from tables.
            control, others = regimes.pop(CONTROL), dict(sorted(regimes.items()))
            client = Client.from_samples(name, observational=control, interventions=others)
            return write_moments(client, folder / f"{name}.moments.npz")
        subject = None if drawn.subject is None else np.concatenate(drawn.subject)
        return write_table(regimes, folder / f"{name}.{file_format}", file_format, subject)

    stage: Path | None = None
    files = {}
    try:
        with writable(out, "the folder"):
            out.parent.mkdir(parents=True, exist_ok=True)
            stage = new_stage(out.parent, f".{out.name[:80]}-")
            for k in range(world.n_clients):
                files[world.view(k).name] = out / write(k, stage).name
            (stage / "truth").mkdir()
            write_text(
                stage / "truth" / "truth.json",
                json.dumps(_truth(world) | departed, ensure_ascii=False, indent=1),
            )
            # An empty folder may be replaced, but nothing that another run has written meanwhile.
            stage.replace(out)
            stage = None
            sync_folder(out.absolute().parent)
    finally:
        if stage is not None:
            shutil.rmtree(stage, ignore_errors=True)
    return files


def write_table(
    regimes: dict[str, FloatArray],
    path: Path,
    file_format: str,
    subject: AnyArray | None = None,
) -> Path:
    """Write the rows of all regimes as one table in the format of a client's file.

    `subject` is the subject of each row; cells that are nan are written as missing.
    """
    labels = np.repeat(list(regimes), [len(x) for x in regimes.values()])
    more: dict[str, Any] = {} if subject is None else {"subject": subject}
    rows = np.vstack(list(regimes.values()))
    features = [f"x{i + 1}" for i in range(rows.shape[1])]
    if file_format == "npz":
        arrays: dict[str, Any] = {"X": rows, "regime": labels, "features": np.array(features)}
        return write_file(path, lambda file: np.savez(file, **arrays, **more))
    if file_format == "h5ad":
        _write_h5ad(path, rows, {"perturbation": labels, **more}, features)
        sync_file(path)
    else:
        # Imported here for start-up time: exact moments need no table.
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet

        columns = {
            name: pa.array(values.tolist(), pa.string())
            for name, values in {"regime": labels, **more}.items()
        }
        columns |= {f: pa.array(rows[:, i], from_pandas=True) for i, f in enumerate(features)}
        writer = pyarrow.csv.write_csv if file_format == "csv" else pyarrow.parquet.write_table
        return write_file(path, lambda file: writer(pa.table(columns), file))
    return path


def _write_h5ad(
    path: Path, rows: FloatArray, columns: dict[str, AnyArray], names: list[str]
) -> None:
    # Imported here because pandas takes half a second to load.
    import pandas as pd

    anndata = import_optional("anndata", "anndata", "anndata")
    obs = pd.DataFrame({name: pd.Categorical(values) for name, values in columns.items()})
    obs.index = obs.index.astype(str)
    anndata.AnnData(rows, obs=obs, var=pd.DataFrame(index=names)).write_h5ad(path)


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


def _departed(world: World, departures: Sequence[Departure]) -> dict[str, Any]:
    """What departs from the model, at which client, as plain JSON values."""
    # Here because `truth` takes time to load.
    from jigsaw_crl.truth.simulate.departures import site

    if not departures:
        return {}
    at = {}
    for k, view in enumerate(world.views):
        here = site(world, k, departures)
        at[view.name] = {
            "departures": [str(departure) for departure in here.departures.values()],
            "label_means": dict(here.means),
            "lacks_edges": [list(edge) for edge in here.lacks],
        }
    return {"departures": [str(d) for d in departures], "departed": at}
