"""Write the study of a simulated world as files, in any format that can be read."""

from __future__ import annotations

import json
import shutil
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
    from jigsaw_crl.truth.simulate import World

__all__ = ["write_study", "write_table"]

_SENSORS = 104


def write_study(
    world: World,
    out: Path,
    samples: int | None,
    noise: str,
    file_format: str,
    *,
    seed: int,
    sensor_noise: float = 0.0,
) -> dict[str, Path]:
    """Write one file per client and `truth/truth.json`, all of them or none."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError("it exists already", "Choose a new folder for the study.", path=out)
    stage: Path | None = None
    files = {}
    try:
        with writable(out, "the folder"):
            out.parent.mkdir(parents=True, exist_ok=True)
            stage = new_stage(out.parent, f".{out.name[:80]}-")
            for k in range(world.n_clients):
                path = _write_client(
                    world, k, stage, samples, noise, file_format, seed, sensor_noise
                )
                files[world.view(k).name] = out / path.name
            (stage / "truth").mkdir()
            write_text(
                stage / "truth" / "truth.json",
                json.dumps(_truth(world), ensure_ascii=False, indent=1),
            )
            # An empty folder may be replaced, but nothing that another run has written meanwhile.
            stage.replace(out)
            stage = None
            sync_folder(out.absolute().parent)
    finally:
        if stage is not None:
            shutil.rmtree(stage, ignore_errors=True)
    return files


def _write_client(
    world: World,
    k: int,
    folder: Path,
    samples: int | None,
    noise: str,
    file_format: str,
    seed: int,
    sensor_noise: float,
) -> Path:
    name = world.view(k).name
    if samples is None:
        client = world.client(k)
        if sensor_noise:
            raise InputError("sensor noise needs rows", "Pass --samples.", client=name)
        return write_moments(client, folder / f"{name}.moments.npz")
    control, interventions = world.rows(k, samples, noise, seed)
    regimes = {CONTROL: control, **interventions}
    if sensor_noise:
        rng = np.random.default_rng([seed, world.seed, _SENSORS, k])
        scale = np.sqrt(sensor_noise * np.mean(np.var(control, axis=0)))
        regimes = {r: x + scale * rng.standard_normal(x.shape) for r, x in regimes.items()}
    if file_format == "moments":
        client = Client.from_samples(
            name,
            observational=regimes.pop(CONTROL),
            # Sorted, as in clients read from tables.
            interventions=dict(sorted(regimes.items())),
        )
        return write_moments(client, folder / f"{name}.moments.npz")
    return write_table(regimes, folder / f"{name}.{file_format}", file_format)


def write_table(regimes: dict[str, FloatArray], path: Path, file_format: str) -> Path:
    """Write the rows of all regimes as one table in the format of a client's file."""
    labels = np.repeat(list(regimes), [len(x) for x in regimes.values()])
    rows = np.vstack(list(regimes.values()))
    features = [f"x{i + 1}" for i in range(rows.shape[1])]
    if file_format == "npz":
        columns = np.array(features)
        return write_file(
            path, lambda file: np.savez(file, X=rows, regime=labels, features=columns)
        )
    if file_format == "h5ad":
        _write_h5ad(path, rows, labels, features)
        sync_file(path)
    else:
        # Imported here for start-up time: exact moments need no table.
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet

        arrays = {"regime": pa.array(labels.tolist(), pa.string())}
        arrays |= {f: pa.array(rows[:, i]) for i, f in enumerate(features)}
        writer = pyarrow.csv.write_csv if file_format == "csv" else pyarrow.parquet.write_table
        return write_file(path, lambda file: writer(pa.table(arrays), file))
    return path


def _write_h5ad(path: Path, rows: FloatArray, labels: AnyArray, names: list[str]) -> None:
    # Imported here because pandas takes half a second to load.
    import pandas as pd

    anndata = import_optional("anndata", "anndata", "anndata")
    obs = pd.DataFrame({"perturbation": pd.Categorical(labels)})
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
