"""AnnData files: rows are cells, `obs["perturbation"]` is the regime, variables are features."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import IntArray
from jigsaw_crl.base.errors import InputError, import_optional
from jigsaw_crl.base.files import open_regular, readable
from jigsaw_crl.study.columns import (
    DEFAULTS,
    check_beside,
    few_valued,
    kept_positions,
    no_regime,
    plain_rows,
    quoted,
)
from jigsaw_crl.study.limits import check_columns, fits
from jigsaw_crl.study.source import Chunk, Reading, Source, chunk_rows, is_sparse
from jigsaw_crl.study.wide import is_wide

__all__ = ["h5ad_source"]


def h5ad_source(path: Path, reading: Reading) -> Source:
    """Rows of an AnnData file, read in chunks.

    Sparse matrices become dense chunk by chunk; those of wide tables stay sparse.
    """
    # Imported here because pandas takes half a second to load.
    import pandas as pd

    naming, fail = reading.naming, reading.fail
    regime = naming.column(DEFAULTS[1])
    data = _open(path, reading.client)
    with closing(data.file):
        check_columns(data.n_vars, fail)
        names = [str(v) for v in data.var_names]
        if data.X is None or not names or data.n_obs == 0:
            raise fail("the file has no matrix X", "Store rows in X.")
        kind = np.dtype(data.X.dtype)
        if kind.kind not in "fiu":
            raise fail(f"X has type {kind}", "Store real numbers in X.")
        if regime not in data.obs.columns:
            held, columns = _candidates(data.obs, naming.control), [str(c) for c in data.obs]
            what = f"obs has no column {regime!r}; it has {quoted(columns)}"
            raise no_regime(what, regime, columns, held, fail)
        if len(set(names)) != len(names):
            raise fail("a variable name appears twice", "Make variable names unique.")
        check_beside(map(str, data.obs.columns), naming.beside, regime, fail)
        coded = {}
        for what, column in {"regime": regime, **naming.beside}.items():
            codes, values = pd.factorize(data.obs[column])
            coded[what] = [str(v) for v in values], codes
    ignore, lacking = naming.ignored_among(names)
    kept = kept_positions(names, ignore, fail, what="variable")
    chunks = partial(_chunks, path, reading.client, kept, coded, is_wide(len(kept), naming))
    return Source(tuple(names[i] for i in kept), chunks, lacking=lacking)


def _candidates(obs: Any, control: str) -> list[str]:
    """Columns that may hold the regime: the control occurs in them, or else they have few values.

    Decimal numbers and truth values are not among them.
    """
    values = {
        str(name): obs[name].astype(str).tolist()
        for name in obs.columns
        if obs[name].dtype.kind not in "fb"
    }
    held = [name for name, own in values.items() if control in own]
    return held or few_valued(values)


def _chunks(
    path: Path,
    client: str,
    kept: IntArray,
    coded: Mapping[str, tuple[list[str], npt.NDArray[np.int64]]],
    wide: bool,
) -> Iterator[Chunk]:
    data = _open(path, client)
    with closing(data.file):
        step = chunk_rows(len(kept))
        n = len(coded["regime"][1])
        for start in range(0, n, step):
            stop = min(start + step, n)
            with readable(path):
                rows = data.X[start:stop]
            if not is_sparse(rows):
                rows = np.asarray(rows)
            else:
                rows = rows.tocsr() if wide else rows.toarray()
            own = {what: (names, codes[start:stop]) for what, (names, codes) in coded.items()}
            given = own.get("batch"), own.get("group")
            yield Chunk(*own["regime"], plain_rows(rows, kept), *given)


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
