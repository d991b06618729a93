"""AnnData files: rows are cells, `obs["perturbation"]` is the regime, variables are features."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import IntArray
from jigsaw_crl.base.errors import InputError, import_optional
from jigsaw_crl.base.files import open_regular, readable
from jigsaw_crl.base.text import did_you_mean
from jigsaw_crl.study.columns import check_batch_column, kept_positions, plain_rows
from jigsaw_crl.study.limits import check_columns, fits
from jigsaw_crl.study.source import Chunk, Naming, Source, chunk_rows

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
        check_columns(data.n_vars, fail)
        names = [str(v) for v in data.var_names]
        if data.X is None or not names or data.n_obs == 0:
            raise fail("the file has no matrix X", "Store rows in X.")
        kind = np.dtype(data.X.dtype)
        if kind.kind not in "fiu":
            raise fail(f"X has type {kind}", "Store real numbers in X.")
        if regime not in data.obs.columns:
            near = _holds(data.obs, naming.control) or did_you_mean(regime, data.obs.columns)
            raise fail(
                f"obs has no column {regime!r}; it has {', '.join(map(str, data.obs.columns))}",
                f"Name the column that holds the regime of each row with --regime. {near}".strip(),
            )
        if len(set(names)) != len(names):
            raise fail("a variable name appears twice", "Make variable names unique.")
        check_batch_column(map(str, data.obs.columns), naming.batch, regime, fail)
        codes, values = pd.factorize(data.obs[regime])
        batches = None
        if naming.batch is not None:
            own, names_of = pd.factorize(data.obs[naming.batch])
            batches = [str(v) for v in names_of], own
    ignore, lacking = naming.ignored_among(names)
    kept = kept_positions(names, ignore, fail, what="variable")
    chunks = partial(_chunks, path, client, kept, [str(v) for v in values], codes, batches)
    return Source(tuple(names[i] for i in kept), chunks, lacking=lacking)


def _holds(obs: Any, control: str) -> str:
    """Suggest the only column in which the control occurs."""
    found = [str(name) for name in obs.columns if control in set(obs[name].astype(str))]
    return f"Is it {found[0]!r}?" if len(found) == 1 else ""


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
        open_regular(path).close()
        try:
            _check_parts(path, client)
            with warnings.catch_warnings():
                # anndata warns of files written by other versions.
                warnings.simplefilter("ignore")
                return anndata.read_h5ad(path, backed="r")
        except (InputError, MemoryError, PermissionError):
            raise
        except Exception as error:
            # anndata and h5py raise many types for a broken file.
            raise InputError(
                f"the file cannot be read as AnnData ({str(error)[:150]})",
                "Write it again with write_h5ad; it may be truncated.",
                client=client,
                path=path,
            ) from None


def _check_parts(path: Path, client: str) -> None:
    """Refuse a file that refers to other files, or that claims far more than it holds.

    anndata reads everything but X as a whole, and X in chunks of rows.
    """
    h5py = import_optional("h5py", "h5py", "anndata")
    fail = partial(InputError, client=client, path=path)
    size, seen = path.stat().st_size, set[Any]()
    with h5py.File(path, "r") as file:
        left = [(file, "")]
        while left:
            group, place = left.pop()
            for name in group:
                where = f"{place}/{name}"
                if isinstance(group.get(name, getlink=True), h5py.ExternalLink):
                    raise _refers(where, fail)
                part = group.get(name)
                address = None if part is None else h5py.h5o.get_info(part.id).addr
                if address is None or address in seen:
                    continue  # a link to nothing, or to a part that was checked already
                seen.add(address)
                if isinstance(part, h5py.Group):
                    left.append((part, where))
                elif isinstance(part, h5py.Dataset):
                    if part.external or part.is_virtual:
                        raise _refers(where, fail)
                    streamed = where in ("/X", "/X/data", "/X/indices")
                    if not streamed and not fits(part.size * part.dtype.itemsize, size):
                        raise fail(
                            f"{where[:100]!r} claims shape {part.shape}, in a file of {size} bytes",
                            "Write it again with write_h5ad; it may be damaged.",
                        )


def _refers(where: str, fail: Callable[[str, str], InputError]) -> InputError:
    return fail(
        f"{where[:100]!r} refers to another file, which is not read",
        "Write the data into one file with write_h5ad.",
    )
