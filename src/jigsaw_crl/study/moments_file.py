"""The moments file, which `jigsaw moments` writes and every command accepts in place of rows.

It is a NumPy archive without pickles. `header` is JSON text: names, numbers of rows, and what the
moments count for (`MomentsHeader`). The arrays `mean`, `covariance` and, where known, `third` and
`fourth` have one entry per regime: the control, the labels, then consecutive stretches of the
control's rows. `batch_mean` has the means of all batches, one regime after the other; covariances
are then those within batches. The moments of a wide table are those along its `directions`, which
have one row per column; `centre` is the mean of the control rows. `merge_clients` adds new rows to
earlier moments.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from jigsaw_crl._version import __version__
from jigsaw_crl.base.documents import Closed, Document, Number, WholeNumber
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import check_output, write_file
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.reduction import Reduction
from jigsaw_crl.moments.regime import Batch, Incomplete, Moments
from jigsaw_crl.study.archive import Arrays, npz_table, read_arrays, texts_of
from jigsaw_crl.study.manifest import Reading
from jigsaw_crl.study.table import MOST_COLUMNS, Table

FORMAT = "jigsaw-crl/moments"
LARGEST_HEADER = 1 << 26
_STACKED = ("mean", "covariance", "third", "fourth")

_Name = Annotated[str, Field(min_length=1)]
_Count = Annotated[WholeNumber, Field(ge=1, lt=2**53)]
_Factor = Annotated[Number, Field(ge=1)]
_Step = Annotated[Number, Field(ge=0)]


class RegimeHeader(Closed):
    """Numbers of rows of one regime, and what its moments count for.

    `n` are the rows, less one for every batch but the first, or None for exact moments. `factors`
    say how many times more the mean and the covariance vary than those of independent Gaussian
    rows. `incomplete` are all rows, those with missing values, and the factor by which these make
    the mean vary more: `n` is then the number of complete rows that they count for. `step` is what
    each feature was rounded to, 0 for none.
    """

    n: _Count | None
    factors: tuple[_Factor, _Factor] | None = None
    groups: _Count | None = None
    incomplete: tuple[_Count, _Count, _Factor] | None = None
    batches: dict[_Name, _Count] = Field(default_factory=dict)
    step: list[_Step] | None = None

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        n, batches = self.n or 0, self.batches.values()
        if batches and n != sum(batches) - len(batches) + 1:
            raise ValueError("the rows of batches do not add up to those of their regime")
        rows = max(n, sum(batches))
        if self.incomplete is not None:
            rows, gaps, _ = self.incomplete
            if not n <= rows or gaps > rows:
                raise ValueError("the rows with missing values do not fit the rows")
        if self.groups is not None and self.groups > rows:
            raise ValueError("there are more groups than rows")
        return self


class MomentsHeader(Document):
    """What a moments file says beside its arrays.

    `regimes` are the control, one for each of `labels` (a label of several strengths occurs several
    times), and `parts` stretches of the control. `columns` are those that the directions of a wide
    table replace, `leading` the number of directions that hold latents.
    """

    kind = "moments file"
    remedy = "Write the file again with `jigsaw moments`."

    format: Literal["jigsaw-crl/moments"]
    version: Literal[1]
    written_by: str
    client: _Name
    control: _Name
    labels: Annotated[list[str], Field(min_length=1)]
    features: Annotated[list[str], Field(min_length=1, max_length=MOST_COLUMNS)]
    n_latent: WholeNumber
    hard: list[str] = Field(default_factory=list)
    trimmed: bool = False
    covariates: list[str] = Field(default_factory=list)
    up: dict[str, str] = Field(default_factory=dict)
    units: dict[str, str] = Field(default_factory=dict)
    sensor_noise: dict[str, Number] = Field(default_factory=dict)
    regimes: list[RegimeHeader]
    parts: WholeNumber = Field(default=0, ge=0)
    columns: list[str] | None = None
    leading: WholeNumber | None = None

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if len(self.regimes) != 1 + len(self.labels) + self.parts:
            raise ValueError("it needs one regime for the control and one for each of its labels")
        if not set(self.hard) <= set(self.labels):
            raise ValueError("'hard' names a label that it does not have")
        if any(len(r.step or self.features) != len(self.features) for r in self.regimes):
            raise ValueError("'step' needs one number for each feature")
        if self.columns is not None and (
            len(set(self.columns)) < max(len(self.columns), len(self.features))
            or not 1 <= (self.leading or 0) <= len(self.features)
        ):
            raise ValueError("'columns' and 'leading' do not fit the directions")
        return self


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
    features, control, interventions = client.recorded
    regimes = [control, *(m for ms in interventions.values() for m in ms), *control.parts]
    reduction = client.reduction
    header = MomentsHeader(
        format="jigsaw-crl/moments",
        version=1,
        written_by=f"jigsaw-crl {__version__}",
        client=client.name,
        control=client.control_name,
        labels=[label for label, ms in interventions.items() for _ in ms],
        features=list(features),
        n_latent=int(client.n_latent),
        hard=sorted(client.hard),
        trimmed=control.trimmed,
        covariates=[] if client.covariates is None else list(client.covariates.names),
        up=dict(client.up),
        units=dict(client.units),
        sensor_noise=dict(client.sensor_noise),
        regimes=[_header_of(m) for m in regimes],
        parts=len(control.parts),
        columns=None if reduction is None else list(reduction.columns),
        leading=None if reduction is None else reduction.leading,
    )
    # Numbers and texts: none is pickled.
    arrays: dict[str, Any] = {"header": np.array(header.model_dump_json(exclude_defaults=True))}
    known = all(m.third is not None and m.fourth is not None for m in regimes)
    for key in _STACKED if known else _STACKED[:2]:
        arrays[key] = np.array([getattr(m, key) for m in regimes])
    if client.batches:
        arrays["batch_mean"] = np.array([b.mean for m in regimes for b in m.batches])
    if reduction is not None:
        arrays |= {"directions": reduction.matrix, "centre": reduction.centre}
    # Second moments of few rows come near to the rows: they are readable by their owner only.
    return write_file(Path(path), lambda file: np.savez(file, **arrays), private=True)


def _header_of(m: Moments) -> RegimeHeader:
    gaps = m.incomplete if m.incomplete and m.incomplete.gaps else None
    return RegimeHeader(
        n=m.uncounted().n,
        factors=None if m.counted is None else (m.counted.mean, m.counted.covariance),
        groups=m.groups,
        incomplete=None if gaps is None else (gaps.rows, gaps.gaps, gaps.mean),
        batches={b.name: b.n for b in m.batches},
        step=None if m.step is None or not m.step.any() else m.step.tolist(),
    )


def read_npz(reading: Reading) -> Client | Table:
    """A client from its moments file, of which all is checked, or the table of another archive.

    The client's name and number of latents are those of the reading, if it has them.
    """
    arrays, client = read_arrays(reading), reading.name or None
    if not {"header", "mean", "covariance"} <= arrays.keys():
        return npz_table(arrays, reading)
    fail = partial(InputError, remedy=MomentsHeader.remedy, client=client, path=reading.path)
    held = arrays.pop("header")
    if held.dtype.kind != "U" or held.shape != () or held.nbytes > LARGEST_HEADER:
        raise fail(f"the header has type {held.dtype} and shape {held.shape}")
    header = MomentsHeader.from_text(str(texts_of(held, reading)[()]), path=reading.path)
    r, d, m = len(header.regimes), len(header.features), len(header.columns or ())
    batches = sum(len(regime.batches) for regime in header.regimes)
    shapes: dict[str, tuple[int, ...]] = {"mean": (r, d), "covariance": (r, d, d)}
    shapes |= {key: (r, d) for key in _STACKED[2:] if key in arrays}
    shapes |= {"batch_mean": (batches, d)} if batches else {}
    shapes |= {"directions": (m, d), "centre": (m,)} if header.columns is not None else {}
    for key in sorted(shapes.keys() ^ arrays.keys()):
        raise fail(f"the array {key} is {'missing' if key in shapes else 'unknown'}")
    for key, array in arrays.items():
        if array.shape != shapes[key] or array.dtype.kind != "f" or array.dtype.itemsize > 8:
            raise fail(f"the array {key} has type {array.dtype}, shape {array.shape}")
        if not np.isfinite(array).all():
            raise fail(f"the array {key} has missing or infinite entries")
    moments, n = _regimes(header, arrays), 1 + len(header.labels)
    interventions: dict[str, list[Moments]] = {}
    for label, own_moments in zip(header.labels, moments[1:n], strict=True):
        interventions.setdefault(label, []).append(own_moments)
    reduction = None
    if header.columns is not None:
        directions, centre = arrays["directions"], arrays["centre"]
        reduction = Reduction(tuple(header.columns), directions, centre, header.leading or 0)
    return Client.from_moments(
        client or header.client,
        control=replace(moments[0], parts=tuple(moments[n:])),
        interventions=interventions,
        n_latent=header.n_latent if reading.n_latent is None else reading.n_latent,
        features=header.features,
        control_name=header.control,
        hard=header.hard,
        reduction=reduction,
        covariates=reading.covariates or header.covariates,
    ).with_sensors(header.up, header.units, header.sensor_noise)


def _regimes(header: MomentsHeader, arrays: Arrays) -> list[Moments]:
    """The moments of every regime, with its batches, groups and what its rows count for."""
    found, means = list[Moments](), iter(arrays.get("batch_mean", ()))
    for i, own in enumerate(header.regimes):
        m = Moments(
            own.n,
            **{key: arrays[key][i] for key in _STACKED if key in arrays},
            batches=tuple(Batch(name, n, next(means)) for name, n in own.batches.items()),
            groups=own.groups,
            incomplete=None if own.incomplete is None else Incomplete(*own.incomplete),
            trimmed=header.trimmed and i <= len(header.labels),
            step=None if own.step is None else np.array(own.step),
        )
        least = header.n_latent + 2
        found.append(m if own.factors is None else m.counting(*own.factors, least=least))
    return found


def merge_clients(earlier: Client, later: Client) -> Client:
    """The client with the rows of both, for adding new rows to earlier moments.

    The labels of both are kept; a label in both must have the same number of strengths.
    """
    fail = partial(InputError, client=earlier.name)
    columns, control, regimes_before = earlier.recorded
    added_columns, added_control, added_regimes = later.recorded
    removed, added_removed = (
        () if c.covariates is None else c.covariates.names for c in (earlier, later)
    )
    directions, added_directions = (
        None if c.reduction is None else (c.columns, c.reduction.matrix.tobytes())
        for c in (earlier, later)
    )
    odd = sorted(set(columns) ^ set(added_columns))
    # These rows, as a whole or as a stretch that was merged earlier.
    known = {(m.rows, m.mean.tobytes()) for m in (control, *control.parts)}
    again = known & {(m.rows, m.mean.tobytes()) for m in (added_control, *added_control.parts)}
    for wrong, what, remedy in (
        (
            directions != added_directions,
            "the columns of the two were reduced to different directions",
            "Add rows with --add-to, which reads them along the earlier directions.",
        ),
        (
            set(removed) != set(added_removed),
            "the covariates differ",
            "Name the same ones for all rows of a client, or for none.",
        ),
        (odd, f"the features differ: {', '.join(odd)[:100]}", "Merge moments of the same columns."),
        (
            earlier.name != later.name,
            f"the rows to add are those of client {later.name!r}",
            "Add rows of the same client, or say that they are with --name.",
        ),
        (again, "these rows are already in the file", "Add each table once."),
    ):
        if wrong:
            raise fail(what, remedy)
    order = np.array([added_columns.index(f) for f in columns], dtype=np.intp)
    merged: dict[str, list[Moments]] = {k: list(v) for k, v in regimes_before.items()}
    for label, regimes in added_regimes.items():
        added = [m.select(order) for m in regimes]
        own = merged.get(label, added)
        if len(own) != len(added):
            raise fail(
                f"{pluralise(len(own), 'strength')} cannot be merged with {len(added)}",
                "Merge moments with the same strengths of a label.",
                regime=label,
            )
        both = zip(own, added, strict=True)
        merged[label] = [a.merge(b) for a, b in both] if label in merged else added
    torn = sorted((earlier.hard ^ later.hard) & set(earlier.labels) & set(later.labels))
    if torn:
        raise fail(
            "the intervention is hard in one part of the rows and soft in the other",
            "Say the same of both with --interventions, or give the new rows another label.",
            regime=torn[0],
        )
    return Client.from_moments(
        earlier.name,
        control=control.merge(added_control.select(order)),
        interventions=merged,
        n_latent=max(earlier.n_latent, later.n_latent, len(merged)),
        features=columns,
        control_name=earlier.control_name,
        hard=earlier.hard | later.hard,
        reduction=earlier.reduction,
        covariates=removed,
    ).with_sensors(
        {**later.up, **earlier.up},
        {**later.units, **earlier.units},
        {**later.sensor_noise, **earlier.sensor_noise},
    )
