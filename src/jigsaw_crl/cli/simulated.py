"""Write the study of a simulated world as files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import new_stage, sync_folder, writable, write_file, write_text
from jigsaw_crl.client.client import CONTROL, Client
from jigsaw_crl.study import write_moments

if TYPE_CHECKING:
    from jigsaw_crl.truth.simulate import World


def write_study(
    world: World, out: Path, samples: int | None, noise: str, file_format: str, *, seed: int
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
                name = world.view(k).name
                regimes = {} if samples is None else world.sample(k, samples, noise, seed).regimes
                if file_format == "moments":
                    client = _client(name, regimes) if regimes else world.client(k)
                    path = write_moments(client, stage / f"{name}.moments.npz")
                else:
                    path = write_table(regimes, stage / f"{name}.{file_format}", file_format)
                files[name] = out / path.name
            (stage / "truth").mkdir()
            truth = json.dumps(_truth(world), ensure_ascii=False, indent=1)
            write_text(stage / "truth" / "truth.json", truth)
            # An empty folder may be replaced, but nothing that another run has written meanwhile.
            stage.replace(out)
            stage = None
            sync_folder(out.absolute().parent)
    finally:
        if stage is not None:
            shutil.rmtree(stage, ignore_errors=True)
    return files


def _client(name: str, regimes: dict[str, FloatArray]) -> Client:
    """The client of these rows; labels are sorted, as in clients read from tables."""
    others = {label: rows for label, rows in sorted(regimes.items()) if label != CONTROL}
    return Client.from_samples(name, observational=regimes[CONTROL], interventions=others)


def write_table(regimes: dict[str, FloatArray], path: Path, file_format: str) -> Path:
    """Write the rows of all regimes as one table, `csv` or `parquet`."""
    # Imported here for start-up time: exact moments need no table.
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    labels = np.repeat(list(regimes), [len(x) for x in regimes.values()])
    rows = np.vstack(list(regimes.values()))
    columns = {"regime": pa.array(labels.tolist(), pa.string())}
    columns |= {f"x{i + 1}": pa.array(rows[:, i]) for i in range(rows.shape[1])}
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
