"""The moments file, which `jigsaw moments` writes and every command accepts in place of rows.

It is a NumPy archive without pickles. `header` is JSON text (client, labels, features, hard
interventions, versions).
The arrays have one entry per regime, the control first: counts (−1 for exact moments), means,
covariances and, where known, third and fourth central moments. Arrays named `part_…` hold those of
consecutive stretches of the control's rows. Arrays named `batch_…` hold rows and mean of each batch
of each regime: `batch_regime` is the regime's position and `batch_name` the position in the
header's list of batches. The covariances are then those within batches. `factors` holds how many
times more the mean and the covariance of each regime vary than those of independent Gaussian rows,
and `groups` how many groups its rows are of, -1 where this is unknown (both since version 2).
`incomplete` holds all rows of each regime, those with missing values, and the factor by which these
make its mean vary more; `n` is then the number of complete rows that they count for (version 3).
The moments of a wide table are those along its directions, see `directions` (version 4).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jigsaw_crl._version import __version__
from jigsaw_crl.base.arrays import AnyArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import check_output, write_file
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.client.client import Client
from jigsaw_crl.moments.checks import check_second_moment
from jigsaw_crl.moments.incomplete import Incomplete
from jigsaw_crl.moments.regime import Batch, Moments
from jigsaw_crl.study.data_file import DataFile
from jigsaw_crl.study.directions import (
    DIRECTIONS,
    direction_arrays,
    direction_header,
    direction_shapes,
    directions_of,
)
from jigsaw_crl.study.limits import check_columns
from jigsaw_crl.study.npz import Member, archive_members, read_array

__all__ = ["is_moments", "is_moments_file", "read_moments", "write_moments"]

FORMAT = "jigsaw-crl/moments"
# Version 2 may have `factors`, version 3 `incomplete`, version 4 `directions`; files without them
# are written as before.
VERSION, WITHOUT_DIRECTIONS, WITHOUT_GAPS, WITHOUT_FACTORS = 4, 3, 2, 1
LARGEST_HEADER = 1 << 26
_HIGHER = ("third", "fourth")
_ARRAYS = {"header", "n", "mean", "covariance"}
_PARTS = {"part_n", "part_mean", "part_covariance"}
_BATCHES = ("batch_regime", "batch_name", "batch_n", "batch_mean")

Arrays = dict[str, AnyArray]
Shapes = dict[str, tuple[int, ...]]
Fail = Callable[[str], InputError]


def is_moments(seen: bytes) -> bool:
    """Is it a moments file that this package wrote, by its beginning?"""
    return FORMAT.encode("utf-32-le") in seen


def write_moments(client: Client, path: str | Path, *, force: bool = False) -> Path:
    """Write a client's moments to a file that `read_client` reads.

    The file is readable by its owner only. An existing file that holds no moments is overwritten
    with `force` only.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import jigsaw_crl as jc
    >>> from jigsaw_crl.study import write_moments
    >>> client = jc.simulate.setting("A", 0).client(0, n_samples=500)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_moments(client, pathlib.Path(folder) / "lab-1.moments.npz")
    ...     jc.read_client(path).labels == client.labels
    True
    """
    check_output(Path(path), is_moments, force=force, what="a moments file")
    regimes = [client.control, *(m for ms in client.interventions.values() for m in ms)]
    labels = [label for label, ms in client.interventions.items() for _ in ms]
    grouped = any(m.groups is not None for m in regimes)
    newer = grouped or any(m.counted for m in regimes)
    gaps = any(m.incomplete for m in regimes)
    version = WITHOUT_DIRECTIONS if gaps else WITHOUT_GAPS if newer else WITHOUT_FACTORS
    header = {
        "format": FORMAT,
        "version": version if client.reduction is None else VERSION,
        "written_by": f"jigsaw-crl {__version__}",
        "client": client.name,
        "control": client.control_name,
        "labels": labels,
        "n_latent": int(client.n_latent),
        "features": list(client.features),
        "hard": sorted(client.hard),
        "trimmed": client.control.trimmed,
        **direction_header(client.reduction),
    }
    arrays: Arrays = {"header": np.array(json.dumps(header)), **_stack("", regimes)}
    if client.batches:
        header["batches"] = list(client.batches)
        arrays["header"] = np.array(json.dumps(header))
        arrays |= _batch_arrays(regimes, client.batches)
    if any(m.counted for m in regimes):
        arrays["factors"] = np.array([_factors(m) for m in regimes])
    if grouped:
        groups = [-1 if m.groups is None else m.groups for m in regimes]
        arrays["groups"] = np.array(groups, dtype=np.int64)
    if gaps:
        arrays["incomplete"] = np.array([_gaps(m) for m in regimes])
    arrays |= direction_arrays(client.reduction)
    if client.control.parts:
        arrays |= _stack("part_", list(client.control.parts))
    # Second moments of few rows come near to the rows: they are readable by their owner only.
    return write_file(
        Path(path), lambda file: np.savez(file, allow_pickle=False, **arrays), private=True
    )


def _batch_arrays(regimes: list[Moments], names: tuple[str, ...]) -> Arrays:
    cells = [(i, b) for i, m in enumerate(regimes) for b in m.batches]
    return {
        "batch_regime": np.array([i for i, _ in cells], dtype=np.int64),
        "batch_name": np.array([names.index(b.name) for _, b in cells], dtype=np.int64),
        "batch_n": np.array([b.n for _, b in cells], dtype=np.int64),
        "batch_mean": np.array([b.mean for _, b in cells]),
    }


def _factors(m: Moments) -> tuple[float, float]:
    return (1.0, 1.0) if m.counted is None else (m.counted.mean, m.counted.covariance)


def _gaps(m: Moments) -> tuple[float, float, float]:
    own = m.incomplete or Incomplete(m.rows or 0, 0)
    return float(own.rows), float(own.gaps), own.mean


def _stack(prefix: str, moments: list[Moments]) -> Arrays:
    arrays: Arrays = {
        f"{prefix}n": np.array([m.uncounted().n or -1 for m in moments], dtype=np.int64),
        f"{prefix}mean": np.array([m.mean for m in moments]),
        f"{prefix}covariance": np.array([m.covariance for m in moments]),
    }
    if all(m.third is not None and m.fourth is not None for m in moments):
        for name in _HIGHER:
            arrays[f"{prefix}{name}"] = np.array([getattr(m, name) for m in moments])
    return arrays


def is_moments_file(names: set[str]) -> bool:
    """Does an archive with these arrays look like a moments file?"""
    return names >= _ARRAYS


def read_moments(data: DataFile, *, name: str | None = None, n_latent: int | None = None) -> Client:
    """A client from its moments file; header and arrays are checked."""
    again = "Write the file again with `jigsaw moments`."
    fail = partial(InputError, remedy=again, client=name, path=data.path)
    # Errors of the archive itself bring their own remedy.
    broken = partial(InputError, client=name, path=data.path)
    members = archive_members(data, name or data.path.name)
    held = members.pop("header")
    if held.dtype.kind != "U" or held.shape != () or held.size > LARGEST_HEADER:
        raise fail(f"the header has type {held.dtype} and shape {held.shape}")
    try:
        header = json.loads(str(read_array(data, held, broken)[()]))
    except (json.JSONDecodeError, RecursionError) as error:
        raise fail(f"the header is not valid JSON ({str(error)[:150]})") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise fail("this is not a jigsaw-crl moments file")
    version = header.get("version")
    if type(version) is not int or not WITHOUT_FACTORS <= version <= VERSION:
        newer = isinstance(version, int) and version > VERSION
        raise fail(
            f"the moments have format version {version!r}, this program reads {VERSION}",
            remedy="Upgrade jigsaw-crl." if newer else again,
        )
    _check_header(header, fail)
    known = _ARRAYS | _PARTS | {f"{p}{h}" for p in ("", "part_") for h in _HIGHER}
    known |= {*_BATCHES, *DIRECTIONS, "factors", "groups", "incomplete"}
    if not set(members) <= known:
        raise fail(f"the file has unknown arrays {', '.join(sorted(set(members) - known))[:100]}")
    d, labels = len(header["features"]), header["labels"]
    regimes = {"": [header["control"], *labels]}
    if "part_n" in members:
        regimes["part_"] = [header["control"]] * math.prod(members["part_n"].shape)
    # Every shape is checked before the first array is read.
    check_columns(d, lambda what, _: fail(what))
    for prefix, names in regimes.items():
        _check_shapes(_shapes(prefix, members, d, len(names)), members, fail)
    if "factors" in members:
        _check_shapes({"factors": (1 + len(labels), 2)}, members, fail)
    if "groups" in members:
        _check_shapes({"groups": (1 + len(labels),)}, members, fail)
    if "incomplete" in members:
        _check_shapes({"incomplete": (1 + len(labels), 3)}, members, fail)
    batches, reduced = _batch_shapes(members, header, fail), direction_shapes(header, d, fail)
    _check_shapes(batches | reduced, members, fail)
    own = header["client"] if name is None else name
    arrays = {key: read_array(data, member, broken) for key, member in members.items()}
    every = _unstack("", arrays, regimes[""], own, fail)
    every = _with_batches(every, arrays, header, fail) if batches else every
    if "incomplete" in arrays:
        every = _with_gaps(every, arrays["incomplete"], fail)
    if "factors" in arrays:
        every = _counted(every, arrays["factors"], header["n_latent"], fail)
    if "groups" in arrays:
        every = _with_groups(every, arrays["groups"].tolist(), fail)
    if header.get("trimmed") is True:
        every = [replace(m, trimmed=True) for m in every]
    control, *rest = every
    if "part_" in regimes:
        parts = _unstack("part_", arrays, regimes["part_"], own, fail)
        control = replace(control, parts=tuple(parts))
    interventions: dict[str, list[Moments]] = {}
    for label, moments in zip(labels, rest, strict=True):
        interventions.setdefault(label, []).append(moments)
    return Client.from_moments(
        own,
        control=control,
        interventions=interventions,
        n_latent=header["n_latent"] if n_latent is None else n_latent,
        features=header["features"],
        control_name=header["control"],
        hard=header.get("hard", []),
        reduction=directions_of(header, arrays, fail) if reduced else None,
    )


def _check_header(header: dict[str, Any], fail: Fail) -> None:
    for key, kind in (("client", str), ("control", str), ("labels", list), ("features", list)):
        if not isinstance(header.get(key), kind) or not header[key]:
            raise fail(f"the header's {key!r} is missing or not a {kind.__name__}")
    if not all(isinstance(x, str) for x in (*header["labels"], *header["features"])):
        raise fail("the header's labels or features are not text")
    hard = header.get("hard", [])
    if not isinstance(hard, list) or not all(label in header["labels"] for label in hard):
        raise fail("the header's 'hard' is not a list of its labels")
    if isinstance(header.get("n_latent"), bool) or not isinstance(header.get("n_latent"), int):
        raise fail("the header's 'n_latent' is missing or not a whole number")


def _shapes(prefix: str, members: Mapping[str, Member], d: int, r: int) -> Shapes:
    """Shapes of the arrays of `r` regimes with `d` features."""
    shapes: Shapes = {"n": (r,), "mean": (r, d), "covariance": (r, d, d)}
    shapes |= {h: (r, d) for h in _HIGHER if prefix + h in members}
    return {prefix + key: shape for key, shape in shapes.items()}


def _batch_shapes(members: Mapping[str, Member], header: dict[str, Any], fail: Fail) -> Shapes:
    """Shapes of the arrays of batches; empty if the file has none."""
    names = header.get("batches")
    if names is None and members.keys().isdisjoint(_BATCHES):
        return {}
    if not isinstance(names, list) or not all(isinstance(x, str) for x in names):
        raise fail("the header's 'batches' is missing or not a list of texts")
    k = math.prod(members["batch_n"].shape) if "batch_n" in members else 0
    # Each batch occurs at most once in each regime.
    if k > len(names) * (1 + len(header["labels"])):
        raise fail(
            f"the array batch_n has {k} entries for {pluralise(len(names), 'batch', 'batches')}"
        )
    return dict.fromkeys(_BATCHES, (k,)) | {"batch_mean": (k, len(header["features"]))}


def _check_shapes(shapes: Shapes, members: Mapping[str, Member], fail: Fail) -> None:
    """Raise an `InputError` unless arrays have these shapes; lists hold whole numbers."""
    for key, shape in shapes.items():
        member = members.get(key)
        if member is None:
            raise fail(f"the array {key} is missing")
        kind, width = member.dtype.kind, member.dtype.itemsize
        if member.shape != shape or kind != ("i" if len(shape) == 1 else "f") or width > 8:
            raise fail(f"the array {key} has type {member.dtype}, shape {member.shape}")


def _with_batches(
    regimes: list[Moments], arrays: Arrays, header: dict[str, Any], fail: Fail
) -> list[Moments]:
    """The moments with the rows and means of their batches."""
    names = header["batches"]
    regime, name, n, mean = (arrays[key] for key in _BATCHES)
    inside = (regime >= 0) & (regime < len(regimes)) & (name >= 0) & (name < len(names)) & (n > 0)
    if not inside.all() or not np.isfinite(mean).all():
        raise fail("the arrays of batches have wrong entries")
    found = []
    for i, m in enumerate(regimes):
        own = np.flatnonzero(regime == i)
        batches = tuple(Batch(names[name[c]], int(n[c]), mean[c]) for c in own)
        if m.n != sum(n[own].tolist()) - len(own) + 1 or len({b.name for b in batches}) < len(own):
            raise fail("the rows of batches do not add up to those of their regime")
        found.append(replace(m, batches=batches))
    return found


def _counted(regimes: list[Moments], factors: AnyArray, p: int, fail: Fail) -> list[Moments]:
    """The moments with the numbers of rows that they count for."""
    if not (np.isfinite(factors) & (factors >= 1)).all():
        raise fail("the array factors has entries that are not numbers of at least 1")
    found = zip(regimes, factors.tolist(), strict=True)
    return [m.counting(mean, covariance, least=p + 2) for m, (mean, covariance) in found]


def _with_gaps(regimes: list[Moments], given: AnyArray, fail: Fail) -> list[Moments]:
    """The moments with what missing values cost them."""
    found = []
    for m, (rows, gaps, factor) in zip(regimes, given.tolist(), strict=True):
        if not (m.n or 0) <= rows < 2**53 or not 0 <= gaps <= rows or not 1 <= factor < math.inf:
            raise fail("the array incomplete does not fit the numbers of rows")
        own = Incomplete(int(rows), int(gaps), factor)
        found.append(replace(m, incomplete=own) if gaps else m)
    return found


def _with_groups(regimes: list[Moments], groups: list[int], fail: Fail) -> list[Moments]:
    """The moments with the numbers of their groups; -1 where they are unknown."""
    found = []
    for m, count in zip(regimes, groups, strict=True):
        if count != -1 and not 1 <= count <= (m.rows or 0):
            raise fail("the array groups does not fit the numbers of rows")
        found.append(replace(m, groups=None if count == -1 else count))
    return found


def _unstack(
    prefix: str, arrays: Arrays, regimes: list[str], client: str, fail: Fail
) -> list[Moments]:
    """Moments of each regime from the arrays whose names start with `prefix`."""
    keys = ["n", "mean", "covariance", *(h for h in _HIGHER if prefix + h in arrays)]
    own = {key: arrays[prefix + key] for key in keys}
    for key, array in own.items():
        if not np.isfinite(array).all():
            raise fail(f"the array {prefix + key} has missing or infinite entries")
    sizes = own.pop("n")
    if ((sizes < 1) & (sizes != -1)).any():
        raise fail("a regime has no rows")
    for regime, covariance in zip(regimes, own["covariance"], strict=True):
        check_second_moment(covariance, client=client, regime=regime)
    return [
        Moments(None if n == -1 else n, **{key: array[i] for key, array in own.items()})
        for i, n in enumerate(sizes.tolist())
    ]
