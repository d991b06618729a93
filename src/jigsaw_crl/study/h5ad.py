"""AnnData files: rows are cells, `obs["perturbation"]` is the regime, variables are features."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import IntArray
from jigsaw_crl.base.errors import InputError, import_optional
from jigsaw_crl.base.files import readable
from jigsaw_crl.base.text import did_you_mean
from jigsaw_crl.study.columns import check_batch_column, kept_positions, plain_rows
from jigsaw_crl.study.regimes import Chunk, Naming, Source, chunk_rows

__all__ = ["h5ad_source"]

REGIME = "perturbation"


def h5ad_source(path: Path, naming: Naming, client: str) -> Source:
    """Rows of an AnnData file, read in chunks; sparse matrices become dense chunk by chunk."""
    # Imported here because pandas takes half a second to load.
    import pandas as pd

    fail = partial(InputError, client=client, path=path)
    regime = naming.column(REGIME)
    data = _open(path, client)
    with closing(data.file):
        names = [str(v) for v in data.var_names]
        if data.X is None or not names or data.n_obs == 0:
            raise fail("the file has no matrix X", "Store rows in X.")
        kind = np.dtype(data.X.dtype)
        if kind.kind not in "fiu":
            raise fail(f"X has type {kind}", "Store real numbers in X.")
        if regime not in data.obs.columns:
            raise fail(
                f"obs has no column {regime!r}; it has {', '.join(map(str, data.obs.columns))}",
                "Name the column that holds the regime of each row with --regime. "
                f"{did_you_mean(regime, data.obs.columns)}".strip(),
            )
        if len(set(names)) != len(names):
            raise fail("a variable name appears twice", "Make variable names unique.")
        check_batch_column(map(str, data.obs.columns), naming.batch, regime, fail)
        codes, values = pd.factorize(data.obs[regime])
        batches = None
        if naming.batch is not None:
            own, names_of = pd.factorize(data.obs[naming.batch])
            batches = [str(v) for v in names_of], own
    kept = kept_positions(names, naming.ignore, fail, what="variable")
    chunks = partial(_chunks, path, client, kept, [str(v) for v in values], codes, batches)
    return Source(tuple(names[i] for i in kept), chunks)


def _chunks(
    path: Path,
    client: str,
    kept: IntArray,
    regimes: list[str],
    codes: npt.NDArray[np.int64],
    batches: tuple[list[str], npt.NDArray[np.int64]] | None,
) -> Iterator[Chunk]:
    data = _open(path, client)
    with closing(data.file):
        step = chunk_rows(len(kept))
        for start in range(0, len(codes), step):
            stop = min(start + step, len(codes))
            with readable(path):
                rows = data.X[start:stop]
            rows = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)
            own = None if batches is None else (batches[0], batches[1][start:stop])
            yield Chunk(regimes, codes[start:stop], plain_rows(rows, kept), own)


def _open(path: Path, client: str) -> Any:
    anndata = import_optional("anndata", "anndata", "anndata")
    with readable(path):
        if not path.exists():
            raise FileNotFoundError
        try:
            with warnings.catch_warnings():
                # anndata warns of files written by other versions.
                warnings.simplefilter("ignore")
                return anndata.read_h5ad(path, backed="r")
        except PermissionError:
            raise
        except Exception as error:
            # anndata and h5py raise many types for a broken file.
            raise InputError(
                f"the file cannot be read as AnnData ({str(error)[:150]})",
                "Write it again with write_h5ad; it may be truncated.",
                client=client,
                path=path,
            ) from None
