"""AnnData files: rows are cells, `obs["perturbation"]` is the regime, variables are features."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable
from jigsaw_crl.base.text import did_you_mean
from jigsaw_crl.study.regimes import Chunk, Naming, Source, chunk_rows

__all__ = ["h5ad_source"]

REGIME = "perturbation"


@dataclass(frozen=True, eq=False)
class _H5adSource:
    path: Path
    client: str
    features: tuple[str, ...]
    kept: npt.NDArray[np.intp]
    regimes: list[str]
    codes: npt.NDArray[np.int64]
    ignored: Mapping[str, str] = field(default_factory=dict)

    def chunks(self) -> Iterator[Chunk]:
        data = _open(self.path, self.client)
        try:
            step = chunk_rows(len(self.features))
            for start in range(0, len(self.codes), step):
                stop = min(start + step, len(self.codes))
                with readable(self.path):
                    rows = data.X[start:stop]
                if hasattr(rows, "toarray"):
                    rows = rows.toarray()
                rows = np.asarray(rows)
                if len(self.kept) < rows.shape[1]:
                    rows = rows[:, self.kept]
                rows = rows if rows.dtype == np.float32 else rows.astype(np.float64)
                yield Chunk(self.regimes, self.codes[start:stop], rows)
        finally:
            data.file.close()


def h5ad_source(path: Path, naming: Naming, client: str) -> Source:
    """Rows of an AnnData file, read from disk in chunks; sparse matrices are widened chunkwise."""
    regime = naming.column(REGIME)
    data = _open(path, client)
    try:
        names = [str(v) for v in data.var_names]
        if data.X is None or not names or data.n_obs == 0:
            raise InputError(
                "the file has no matrix X", "Store rows in X.", client=client, path=path
            )
        kind = np.dtype(data.X.dtype)
        if kind.kind not in "fiu":
            raise InputError(
                f"X has type {kind}", "Store real numbers in X.", client=client, path=path
            )
        if regime not in data.obs.columns:
            raise InputError(
                f"obs has no column {regime!r}; it has {', '.join(map(str, data.obs.columns))}",
                "Name the column that holds the regime of each row with --regime. "
                f"{did_you_mean(regime, data.obs.columns)}".strip(),
                client=client,
                path=path,
            )
        if len(set(names)) != len(names):
            raise InputError(
                "a variable name appears twice",
                "Make variable names unique.",
                client=client,
                path=path,
            )
        codes, values = _codes(data.obs[regime])
    finally:
        data.file.close()
    unknown = [name for name in naming.ignore if name not in names]
    if unknown:
        raise InputError(
            f"there is no variable {unknown[0]!r} to ignore",
            did_you_mean(unknown[0], names) or "Check the spelling.",
            client=client,
            path=path,
        )
    kept = np.array([i for i, n in enumerate(names) if n not in naming.ignore], dtype=np.intp)
    return _H5adSource(path, client, tuple(names[i] for i in kept), kept, values, codes)


def _codes(column: Any) -> tuple[npt.NDArray[np.int64], list[str]]:
    import pandas as pd

    codes, values = pd.factorize(column)
    return codes.astype(np.int64), [str(v) for v in values]


def _open(path: Path, client: str) -> Any:
    try:
        import anndata
    except ImportError:
        raise InputError(
            "anndata is not installed",
            "Run pip install 'jigsaw-crl[anndata]'.",
            client=client,
            path=path,
        ) from None
    with readable(path):
        if not path.exists():
            raise FileNotFoundError
        try:
            with warnings.catch_warnings():
                # Its notes about other releases' files are not about this data.
                warnings.simplefilter("ignore")
                return anndata.read_h5ad(path, backed="r")
        except PermissionError:
            raise
        except Exception as error:
            # anndata and h5py raise many types for a broken file.
            raise InputError(
                f"the file cannot be read as AnnData ({' '.join(str(error).split())[:150]})",
                "Write it again with write_h5ad; it may be truncated.",
                client=client,
                path=path,
            ) from None
