"""AnnData files: rows are cells, `obs["perturbation"]` is the regime, variables are features."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jigsaw_crl.base.errors import InputError, import_optional
from jigsaw_crl.base.files import open_regular, readable
from jigsaw_crl.moments.accumulator import Coded
from jigsaw_crl.study.columns import choose_columns, few_valued
from jigsaw_crl.study.data_file import fits
from jigsaw_crl.study.source import Chunk, Reading, Source, chunk_rows, is_sparse, plain_rows
from jigsaw_crl.study.wide import is_wide

__all__ = ["h5ad_source"]

# The regime column if the user names none.
REGIME = "perturbation"


def h5ad_source(path: Path, reading: Reading) -> Source:
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
        features, _, lacking = choose_columns(
            reading,
            names,
            not_numbers={},
            texts=[str(name) for name in obs],
            regime=REGIME,
            candidates=few_valued(likely, reading.control),
        )
        coded = {}
        for what, column in reading.columns(REGIME).items():
            codes, values = pd.factorize(obs[column])
            coded[what] = [str(v) for v in values], codes
    chunks = partial(_chunks, path, reading, coded, is_wide(len(features), reading))
    return Source(tuple(names), chunks, lacking=lacking).choose(features, reading)


def _chunks(
    path: Path, reading: Reading, coded: Mapping[str, Coded], wide: bool
) -> Iterator[Chunk]:
    data = _open(path, reading)
    with closing(data.file):
        step, n = chunk_rows(data.n_vars), data.n_obs
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
    size, seen = path.stat().st_size, set[Any]()
    with h5py.File(path, "r") as file:
        left = [(file, "")]
        while left:
            group, place = left.pop()
            for name in group:
                where = f"{place}/{name}"
                if isinstance(group.get(name, getlink=True), h5py.ExternalLink):
                    raise _refers(where, reading)
                part = group.get(name)
                address = None if part is None else h5py.h5o.get_info(part.id).addr
                if address is None or address in seen:
                    continue  # a link to nothing, or to a part that was checked already
                seen.add(address)
                if isinstance(part, h5py.Group):
                    left.append((part, where))
                elif isinstance(part, h5py.Dataset):
                    if part.external or part.is_virtual:
                        raise _refers(where, reading)
                    streamed = where in ("/X", "/X/data", "/X/indices")
                    if not streamed and not fits(part.size * part.dtype.itemsize, size):
                        raise reading.fail(
                            f"{where[:100]!r} claims shape {part.shape}, in a file of {size} bytes",
                            "Write it again with write_h5ad; it may be damaged.",
                        )


def _refers(where: str, reading: Reading) -> InputError:
    return reading.fail(
        f"{where[:100]!r} refers to another file, which is not read",
        "Write the data into one file with write_h5ad.",
    )
