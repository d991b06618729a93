"""AnnData files: rows are cells, `obs["perturbation"]` is the regime, variables are features."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from jigsaw_crl.base.errors import InputError, import_optional
from jigsaw_crl.base.files import open_regular, readable
from jigsaw_crl.moments.accumulator import Coded
from jigsaw_crl.study.data_file import DataFile, fits
from jigsaw_crl.study.manifest import Reading
from jigsaw_crl.study.table import Chunk, Table, choose_columns, chunk_rows, is_sparse

# The regime column if the user names none.
REGIME = "perturbation"


def h5ad_table(file: DataFile, reading: Reading) -> Table:
    """Rows of an AnnData file, read in chunks.

    Sparse matrices become dense chunk by chunk; those of wide tables stay sparse.
    """
    # Imported here because pandas takes half a second to load.
    import pandas as pd

    # anndata opens files by their path alone.
    path = file.path
    data = _open(path, reading)
    with closing(data.file):
        names, obs = [str(v) for v in data.var_names], data.obs
        if data.X is None or not names or data.n_obs == 0:
            raise reading.fail("the file has no matrix X", "Store rows in X.")
        kind = np.dtype(data.X.dtype)
        if kind.kind not in "fiu":
            raise reading.fail(f"X has type {kind}", "Store real numbers in X.")

    def texts() -> Mapping[str, Sequence[object]]:
        # Decimal numbers and truth values are no regimes.
        kinds = {name: obs[name].dtype.kind for name in obs}
        return {str(x): obs[x].astype(str).tolist() for x in obs if kinds[x] not in "fb"}

    def rows(table: Table) -> Iterator[Chunk]:
        places, step = table.places(names), chunk_rows(len(names))
        coded = {
            what: pd.factorize(obs[name]) for what, name in table.reading.columns(REGIME).items()
        }
        data = _open(path, reading)
        with closing(data.file):
            for start in range(0, data.n_obs, step):
                part = slice(start, min(start + step, data.n_obs))
                with readable(path):
                    rows = data.X[part]
                if is_sparse(rows):
                    rows = rows.tocsr() if table.is_wide else rows.toarray()
                own: dict[str, Coded] = {
                    what: (list(map(str, values)), codes[part])
                    for what, (codes, values) in coded.items()
                }
                yield Chunk(rows[:, places], own)

    return choose_columns(
        reading,
        names,
        rows,
        not_numbers={},
        beside=[str(name) for name in obs],
        regime=REGIME,
        texts=texts,
    )


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
    size, elsewhere, large = path.stat().st_size, list[str](), list[str]()

    def check_link(name: str, link: Any) -> None:
        if isinstance(link, h5py.ExternalLink):
            elsewhere.append(name)

    def check_part(name: str, part: Any) -> None:
        if isinstance(part, h5py.Dataset):
            if part.external or part.is_virtual:
                elsewhere.append(name)
            streamed = name in ("X", "X/data", "X/indices")
            if not streamed and not fits(part.size * part.dtype.itemsize, size):
                large.append(
                    f"'/{name[:100]}' claims shape {part.shape}, in a file of {size} bytes"
                )

    with h5py.File(path, "r") as file:
        file.visititems_links(check_link)
        if not elsewhere:
            file.visititems(check_part)
    if elsewhere:
        what = f"'/{elsewhere[0][:100]}' refers to another file, which is not read"
        raise reading.fail(what, again)
    if large:
        raise reading.fail(f"{large[0]}, in a file of {size} bytes", again)
