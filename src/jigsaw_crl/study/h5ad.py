"""AnnData files: rows are cells, `obs["perturbation"]` is the regime, variables are features."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jigsaw_crl.base.errors import InputError, import_optional
from jigsaw_crl.base.files import open_regular, readable
from jigsaw_crl.moments.accumulator import Coded
from jigsaw_crl.study.collected import is_wide
from jigsaw_crl.study.data_file import fits
from jigsaw_crl.study.manifest import Reading
from jigsaw_crl.study.table import (
    Chunk,
    Table,
    choose_columns,
    chunk_rows,
    few_valued,
    is_sparse,
    plain_rows,
)

# The regime column if the user names none.
REGIME = "perturbation"


def h5ad_table(path: Path, reading: Reading) -> Table:
    """Rows of an AnnData file, read in chunks.

    Sparse matrices become dense chunk by chunk; those of wide tables stay sparse.
    """
    # Imported here because pandas takes half a second to load.
    import pandas as pd

    data = _open(path, reading)
    with closing(data.file):
        names, obs = [str(v) for v in data.var_names], data.obs
        if data.X is None or not names or data.n_obs == 0:
            raise reading.fail("the file has no matrix X", "Store rows in X.")
        kind = np.dtype(data.X.dtype)
        if kind.kind not in "fiu":
            raise reading.fail(f"X has type {kind}", "Store real numbers in X.")
        likely = {}
        if (reading.regime or REGIME) not in obs:
            # Decimal numbers and truth values are no regimes.
            texts = [name for name in obs if obs[name].dtype.kind not in "fb"]
            likely = {str(name): obs[name].astype(str).tolist() for name in texts}
        table = choose_columns(
            reading,
            names,
            not_numbers={},
            texts=[str(name) for name in obs],
            regime=REGIME,
            candidates=few_valued(likely, reading.control),
        )
        coded: dict[str, Coded] = {}
        for what, column in table.reading.columns(REGIME).items():
            codes, values = pd.factorize(obs[column])
            coded[what] = [str(v) for v in values], codes
    wide, step, n = is_wide(len(table.features), reading), chunk_rows(len(names)), data.n_obs

    def chunks() -> Iterator[Chunk]:
        data = _open(path, reading)
        with closing(data.file):
            for start in range(0, n, step):
                part = slice(start, min(start + step, n))
                with readable(path):
                    rows = data.X[part]
                if not is_sparse(rows):
                    rows = np.asarray(rows)
                else:
                    rows = rows.tocsr() if wide else rows.toarray()
                own = {what: (names, codes[part]) for what, (names, codes) in coded.items()}
                yield Chunk(plain_rows(rows), own)

    return replace(table, features=tuple(names), chunks=chunks).choose(table.features)


def _open(path: Path, reading: Reading) -> Any:
    anndata = import_optional("anndata", "anndata", "anndata")
    with readable(path):
        open_regular(path).close()
        try:
            _check_parts(path, reading)
            with warnings.catch_warnings():
                # anndata warns of files written by other versions.
                warnings.simplefilter("ignore")
                return anndata.read_h5ad(path, backed="r")
        except (InputError, MemoryError, PermissionError):
            raise
        except Exception as error:
            # anndata and h5py raise many types for a broken file.
            raise reading.fail(
                f"the file cannot be read as AnnData ({str(error)[:150]})",
                "Write it again with write_h5ad; it may be truncated.",
            ) from None


def _check_parts(path: Path, reading: Reading) -> None:
    """Refuse a file that refers to other files, or that claims far more than it holds.

    anndata reads everything but X as a whole, and X in chunks of rows.
    """
    h5py = import_optional("h5py", "h5py", "anndata")
    again = "Write the data into one file with write_h5ad; it may be damaged."
    size, seen = path.stat().st_size, set[Any]()
    with h5py.File(path, "r") as file:
        left = [(file, "")]
        while left:
            group, place = left.pop()
            for name in group:
                where = f"{place}/{name}"
                elsewhere = isinstance(group.get(name, getlink=True), h5py.ExternalLink)
                part = None if elsewhere else group.get(name)
                if isinstance(part, h5py.Dataset):
                    elsewhere = bool(part.external) or part.is_virtual
                if elsewhere:
                    what = f"{where[:100]!r} refers to another file, which is not read"
                    raise reading.fail(what, again)
                address = None if part is None else h5py.h5o.get_info(part.id).addr
                if address is None or address in seen:
                    continue  # a link to nothing, or to a part that was checked already
                seen.add(address)
                if isinstance(part, h5py.Group):
                    left.append((part, where))
                elif isinstance(part, h5py.Dataset):
                    streamed = where in ("/X", "/X/data", "/X/indices")
                    if not streamed and not fits(part.size * part.dtype.itemsize, size):
                        what = f"{where[:100]!r} claims shape {part.shape}, in a file of {size} "
                        raise reading.fail(f"{what}bytes", again)
