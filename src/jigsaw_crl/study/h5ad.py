"""AnnData files: rows are cells, `obs["perturbation"]` is the regime, variables are features."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np

from jigsaw_crl.base.errors import import_optional
from jigsaw_crl.study.files import fits, reading_as
from jigsaw_crl.study.manifest import Reading
from jigsaw_crl.study.table import TEXT, Chunk, Table, choose_columns, chunk_rows

# The kind of file, and what to do about a broken one.
_AS = "AnnData", "Write it again with write_h5ad"


def h5ad_table(reading: Reading) -> Table:
    """Rows of an AnnData file, read in chunks.

    Sparse matrices become dense chunk by chunk; those of wide tables stay sparse.
    """
    # Imported here because pandas takes half a second to load.
    import pandas as pd

    data = _open(reading)
    with closing(data.file):
        names, obs = [str(v) for v in data.var_names], data.obs
        kind = None if data.X is None else np.dtype(data.X.dtype)
        if kind is None or kind.kind not in "fiu" or not names or data.n_obs == 0:
            what = f"the file has no matrix X of real numbers (its type is {kind})"
            raise reading.fail(what, "Store rows in X.")

    def rows(table: Table) -> Iterator[Chunk]:
        places, step = table.places(names), chunk_rows(len(names))
        found = {what: pd.factorize(obs[name]) for what, name in table.reading.named.items()}
        coded = {what: (list(map(str, values)), codes) for what, (codes, values) in found.items()}
        data = _open(reading)
        with closing(data.file):
            for start in range(0, data.n_obs, step):
                part = slice(start, min(start + step, data.n_obs))
                with reading_as(*_AS, reading):
                    rows = data.X[part]
                if not isinstance(rows, np.ndarray):
                    rows = rows.tocsr() if table.wide else rows.toarray()
                own = {what: (texts, codes[part]) for what, (texts, codes) in coded.items()}
                yield Chunk(rows[:, places], own)

    # Decimal numbers and truth values are no regimes.
    beside = {str(x): "" if obs[x].dtype.kind in "fb" else TEXT for x in obs}
    return choose_columns(reading, names, rows, {}, beside=beside)


def _open(reading: Reading) -> Any:
    """The file, which anndata opens by its path alone."""
    anndata = import_optional("anndata", "anndata", "anndata")
    with reading_as(*_AS, reading), warnings.catch_warnings():
        _check_parts(reading)
        # anndata warns of files written by other versions.
        warnings.simplefilter("ignore")
        return anndata.read_h5ad(reading.path, backed="r")


def _check_parts(reading: Reading) -> None:
    """Refuse a file that refers to other files, or that claims far more than it holds.

    anndata reads everything but X as a whole, and X in chunks of rows.
    """
    h5py = import_optional("h5py", "h5py", "anndata")
    refers = "refers to another file, which is not read"

    # What a visitor returns ends the visit.
    def elsewhere(name: str, link: Any) -> str | None:
        return f"'/{name[:100]}' {refers}" if isinstance(link, h5py.ExternalLink) else None

    def spoilt(name: str, part: Any) -> str | None:
        if not isinstance(part, h5py.Dataset):
            return None
        if part.external or part.is_virtual:
            return f"'/{name[:100]}' {refers}"
        streamed = name in ("X", "X/data", "X/indices")
        if streamed or fits(part.size * part.dtype.itemsize, reading.size):
            return None
        return f"'/{name[:100]}' claims shape {part.shape}, in a file of {reading.size} bytes"

    with h5py.File(reading.path, "r") as file:
        if what := file.visititems_links(elsewhere) or file.visititems(spoilt):
            remedy = "Write the data into one file with write_h5ad; it may be damaged."
            raise reading.fail(what, remedy)
