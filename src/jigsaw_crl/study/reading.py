"""Read one client from its file, or a whole study."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import file_digest
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable
from jigsaw_crl.base.knowledge import NOTHING
from jigsaw_crl.base.problems import as_one
from jigsaw_crl.base.terminal import counted
from jigsaw_crl.base.text import did_you_mean
from jigsaw_crl.client.checks import Kinds, check_named
from jigsaw_crl.client.client import Client, NoiseGiven
from jigsaw_crl.moments.preparing import Missing
from jigsaw_crl.study.files import Described, describe, describe_one, opened
from jigsaw_crl.study.folder import Study
from jigsaw_crl.study.manifest import MANIFEST, READERS, Reading
from jigsaw_crl.study.regimes import read_table
from jigsaw_crl.study.table import ROW_INDEX, quoted

# Hashing a file of this size takes less than a second.
LARGEST_HASHED = 1 << 28
# Columns and regimes that a warning names.
MOST_WARNED = 4


def read_client(
    path: str | Path,
    *,
    regime: str | None = None,
    control: str | None = None,
    name: str | None = None,
    n_latent: int | None = None,
    ignore: Sequence[str] = (),
    batch: str | None = None,
    group: str | None = None,
    trim: float | None = None,
    missing: Missing | None = None,
    na: Sequence[str] = (),
    covariates: Sequence[str] = (),
    interventions: Kinds | None = None,
    sensor_noise: NoiseGiven | None = None,
    cluster: Any = None,
) -> Client:
    """One client from a file.

    Parameters
    ----------
    path : path
        `.csv` (also `.tsv`, also with `.gz`), `.parquet` (a file, or a folder of parts), `.npz`,
        `.h5ad`, `.xlsx`, a moments file, or a manifest `study.toml` with this client alone. A
        manifest in the file's own folder holds for the file too.
    regime : str, optional
        Column with the regime of each row; by default ``"regime"``, in AnnData
        ``"perturbation"``.
    control : str, optional
        Its value on observational rows; by default ``"control"``.
    name : str, optional
        The client's name; by default the file's.
    n_latent : int, optional
        Latents the client accesses; by default estimated, at least the number of labels.
    ignore : sequence of str
        Columns that are not features.
    batch, group : str, optional
        Columns with the batch of each row (plate, day), which may offset all its rows, and with the
        group (subject, run), whose rows are alike and count as fewer. A moments file knows both.
    trim : float, optional
        Share of the rows of each regime to leave out, those that lie farthest out by their robust
        Mahalanobis distance; by default none. The rows of a client are then held in memory.
    missing : {"refuse", "drop", "em"}, optional
        Refuse a file with missing values (the default), leave such rows out, or use the values that
        are there, by EM for Gaussian rows, which are then held in memory.
    na : sequence of str
        Values that stand for a missing one, such as ``["Bad Input", "-9999"]``.
    covariates : sequence of str
        Columns that act on the features and that no intervention changes (sequencing depth, ambient
        temperature). Their linear part is taken off the moments of every regime.
    interventions : {"soft", "hard"} or mapping of label to one of these, optional
        Which interventions are hard: see `Client.with_interventions`. By default what a moments
        file says, and otherwise "soft".
    sensor_noise : float or mapping of feature to float, optional
        Standard deviation of the sensors' noise, where it is known: see `Client.with_sensors`.
    cluster : str or distributed.Client, optional
        Dask cluster whose workers read the files of a folder; see `jigsaw_crl.study.cluster`.

    Returns
    -------
    Client

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import jigsaw_crl as jc
    >>> control, regimes = jc.simulate.setting("A", 0).rows(0, 100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "lab-1.npz"
    ...     np.savez(path, control=control, **regimes)
    ...     client = jc.read_client(path)
    >>> client.name, client.n_features
    ('lab-1', 8)
    """
    described = describe_one(
        Path(path), regime=regime, control=control, name=name, n_latent=n_latent, ignore=ignore,
        batch=batch, group=group, trim=trim, missing=missing, na=na, covariates=covariates,
        cluster=cluster,
    )  # fmt: skip
    return _one_client(described, interventions, sensor_noise, 3)


def read_study(
    path: str | Path,
    *,
    regime: str | None = None,
    control: str | None = None,
    ignore: Sequence[str] = (),
    batch: str | None = None,
    group: str | None = None,
    trim: float | None = None,
    missing: Missing | None = None,
    na: Sequence[str] = (),
    covariates: Sequence[str] = (),
) -> Study:
    """A study from a folder with one file per client, from its manifest `study.toml`, or a file.

    Parameters
    ----------
    path : path
        The folder, the manifest, or the file of one client, which is then the study.
    regime, control, ignore, batch, group, trim, missing, na, covariates
        As for `read_client`; they override the manifest for every client.

    Returns
    -------
    Study

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.setting("A", 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for k in range(world.n_clients):
    ...         control, regimes = world.rows(k, 100)
    ...         np.savez(Path(folder) / f"lab-{k}.npz", control=control, **regimes)
    ...     study = jc.read_study(folder)
    >>> len(study), study.labels
    (5, ('z1', 'z2', 'z3', 'z4', 'z5'))
    """
    given = Path(path)
    asked: dict[str, Any] = {
        "regime": regime, "control": control, "ignore": ignore, "batch": batch, "group": group,
        "trim": trim, "missing": missing, "na": na, "covariates": covariates,
    }  # fmt: skip
    with readable(given):
        # One client's table may be divided into folders `column=value`.
        whole = given.is_dir() and not any("=" in p.name for p in given.iterdir() if p.is_dir())
    if whole or given.suffix == ".toml":
        return _read_all(describe(given, **asked))
    return read_one(given, **asked)


def read_one(path: str | Path, **asked: Any) -> Study:
    """The study of one client's file, with the findings from reading it.

    Keywords are those of `read_client`, and `reduction`: directions along which rows are read.
    """
    return _read_all(describe_one(Path(path), **asked))


def client_from_table(frame: Any, **asked: Any) -> Client:
    """A client from a table in memory; see `Client.from_table`."""
    kinds, noise = asked.pop("interventions"), asked.pop("sensor_noise")
    reading = Reading.of(None, **{**asked, "control": str(asked["control"]), "frame": frame})
    return _one_client(Described("", (reading,), frozenset(reading.ignore)), kinds, noise, 4)


def _one_client(
    described: Described, kinds: Kinds | None, noise: NoiseGiven | None, stacklevel: int
) -> Client:
    """The only client, with what the caller says of interventions and sensors.

    Findings are not returned: a warning names columns and regimes that are not used.
    """
    study = _read_all(described)
    found = [f for f in study.findings if f.check in ("ignored-column", "unusable-regime")]
    if found := [f for f in found if f" is {ROW_INDEX}, " not in f.message]:
        where = (f"{f.regime!r}: " if f.regime else "" for f in found)
        told = [f"{at}{f.message}. {f.remedy}" for at, f in zip(where, found, strict=True)]
        text = " ".join(told[:MOST_WARNED])
        more = f" And {len(found) - MOST_WARNED} more." if len(found) > MOST_WARNED else ""
        columns = any(f.check == "ignored-column" for f in found)
        silence = " (ignore=[…] names columns that need no warning)" if columns else ""
        warnings.warn(f"client {found[0].client!r}: {text}{more}{silence}", stacklevel=stacklevel)
    client = study.clients[0] if noise is None else study.clients[0].with_sensors(noise=noise)
    return client if kinds is None else client.with_interventions(kinds, strict=True)


def _read_all(described: Described) -> Study:
    """Read the clients that are described; all their problems are one error."""
    first, n_files = described.clients[0], len(described.clients)
    path, permitted = described.path or first.path, described.manifest.get("labels")
    clients, findings, columns = list[Client](), list(described.findings), set[str]()
    sources, fingerprints, problems = dict[str, str](), dict[str, str](), list[InputError]()
    for reading in counted(described.clients, n_files):
        try:
            # The file is opened once, for the hash and for the rows.
            with opened(reading) as own:
                hashed = own.handle is not None and own.size <= LARGEST_HASHED
                sha256 = file_digest(own.handle, "sha256").hexdigest() if hashed else ""
                found = resolve_name(READERS[own.ending])(own)
                if isinstance(found, Client):
                    client, known = found, frozenset(own.ignore)
                else:
                    client, noticed = read_table(found)
                    findings, known = findings + noticed, found.known
            clients.append(client)
            columns |= known
            sources[client.name] = str(own.path)
            fingerprints |= {client.name: sha256} if hashed else {}
            strangers = [x for x in client.labels if permitted is not None and x not in permitted]
            if strangers:
                what = f"the manifest's labels do not have {quoted(strangers)}"
                remedy = f"Correct the spelling, or add it to labels in {MANIFEST}."
                raise InputError(what, remedy, client=client.name, path=own.path)
        except InputError as error:
            reading.problems.extend(getattr(error, "parts", (error,)))
        finally:
            problems += [x.located(path=x.path or reading.path) for x in reading.problems]
    if len(clients) == n_files and (unknown := described.ignored - columns):
        near = did_you_mean(min(unknown), columns) or "Check the spelling."
        what = f"there is no column {quoted(sorted(unknown))} to ignore"
        problems.append(InputError(what, near, path=path))
    try:
        if clients:
            name = described.name or clients[0].name
            study = Study(name, tuple(clients), tuple(findings), sources, fingerprints)
            if not problems:
                return _as_described(study, described)
    except InputError as error:
        problems.append(error)
    raise as_one(problems, n_files, path, first.client if path is None else None)


def _as_described(study: Study, described: Described) -> Study:
    """The study with what its manifest says of interventions, sensors and labels.

    In a manifest of all clients, every name must be that of a label or a column of some client.
    """
    path, kinds, knowledge = described.path, described.manifest.get("interventions", {}), NOTHING
    try:
        if path is not None:
            knowledge = described.manifest.get("knowledge", NOTHING)
            knowledge.check(study.labels)
            check_named(kinds, study.labels, "no client has")
        clients = []
        for client, reading in zip(study, described.clients, strict=True):
            sensors = reading.up, reading.units, reading.sensor_noise
            if sensors != ({}, {}, None):
                client = client.with_sensors(*sensors, strict=False)
            for said, strict in ((kinds, False), (reading.interventions, True)):
                client = client.with_interventions(said, strict=strict) if said else client
            clients.append(client)
        for what in ("up", "units", "sensor_noise") if path is not None else ():
            given = [getattr(reading, what) for reading in described.clients]
            asked = {x: y for one in given if isinstance(one, Mapping) for x, y in one.items()}
            for name, other in asked.items():
                if not any(name in getattr(client, what) for client in clients):
                    meant = f"label {name!r} with a column {other!r}"
                    meant = meant if what == "up" else repr(name)
                    raise InputError(f"[{what}]: no client has {meant}", "Check the spelling.")
    except InputError as error:
        raise error.located(path=path) from None
    return replace(study, clients=tuple(clients), knowledge=knowledge)
