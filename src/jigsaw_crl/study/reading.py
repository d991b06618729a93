"""Read one client from its file, or a whole study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.terminal import counted
from jigsaw_crl.client.checks import Kinds, check_named
from jigsaw_crl.client.client import Client, NoiseGiven
from jigsaw_crl.moments.preparing import Missing
from jigsaw_crl.study.data_file import DataFile, open_data
from jigsaw_crl.study.folder import Study
from jigsaw_crl.study.manifest import (
    ENDINGS,
    MANIFEST,
    READERS,
    Described,
    Reading,
    describe,
    describe_one,
    ending_of,
    is_partitioned,
)
from jigsaw_crl.study.moments_file import is_moments_file, read_moments
from jigsaw_crl.study.problems import parts_of, raise_all
from jigsaw_crl.study.regimes import read_table
from jigsaw_crl.study.table import Table, quoted, warn_of_ignored

# Spoilt columns after which a file is not read again.
MOST_SPOILT = 8


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
    one = read_one(
        path, regime=regime, control=control, name=name, n_latent=n_latent, ignore=ignore,
        batch=batch, group=group, trim=trim, missing=missing, na=na, covariates=covariates,
        cluster=cluster,
    )  # fmt: skip
    warn_of_ignored(one.findings, stacklevel=2)
    return _with_kinds(one.clients[0].with_sensors(noise=sensor_noise), interventions)


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
        if not given.exists():
            raise FileNotFoundError
        whole = given.is_dir() and not is_partitioned(given)
    if not whole and given.suffix != ".toml":
        return read_one(given, **asked)
    described = describe(given, _given(**asked))
    return replace(_read_all(described, given), knowledge=described.knowledge)


def read_one(path: str | Path, **asked: Any) -> Study:
    """The study of one client's file, with the findings from reading it.

    Keywords are those of `read_client`, and `reduction`: directions along which rows are read.
    """
    one = _read_all(describe_one(Path(path), _given(**asked)))
    return replace(one, name=one.clients[0].name)


def client_from_table(frame: Any, **asked: Any) -> Client:
    """A client from a table in memory; see `Client.from_table`."""
    from jigsaw_crl.study.arrow import frame_table  # here for start-up time

    kinds, noise = asked.pop("interventions"), asked.pop("sensor_noise")
    reading = Reading.of(None, _given(**asked), control=str(asked["control"]))
    try:
        client, findings = read_table(frame_table(frame, reading))
    except InputError as error:
        raise_all([*reading.problems, *parts_of(error)], client=reading.client)
        raise
    raise_all(reading.problems, client=reading.client)
    warn_of_ignored(findings, stacklevel=3)
    return _with_kinds(client.with_sensors(noise=noise), kinds)


def _with_kinds(client: Client, kinds: Kinds | None) -> Client:
    return client if kinds is None else client.with_interventions(kinds, strict=True)


def _given(**asked: Any) -> dict[str, Any]:
    """What is asked for, by the names that a manifest uses; None where it is left open."""
    lists = ("ignore", "covariates", "na")
    named = {key: [str(x) for x in asked.get(key, ())] or None for key in lists}
    return {**asked, **named}


def table_of(data: DataFile, reading: Reading) -> Table:
    """The rows of a client's file, by its ending."""
    ending = ".parquet" if data.handle is None else ending_of(data.path)
    if ending:
        table: Table = resolve_name(READERS[ending])(data, reading)
        return table
    raise InputError(
        f"a client's file cannot end in {data.path.suffix!r}"
        if data.path.suffix
        else "the file's name has no ending that says its format",
        f"Use {' '.join(ENDINGS)}.",
        path=data.path,
    )


def _read_all(described: Described, path: Path | None = None) -> Study:
    """Read the clients that are described; all their problems are one error.

    With a path they are all clients of the study that is there, and what is said of it must fit.
    Otherwise it is one client, and other clients may have what this one has not.
    """
    files: dict[str, Path | None] = {}
    for one in described.clients:
        other = files.setdefault(one.client.casefold(), one.path)
        if other is not one.path and other is not None and one.path is not None:
            what = f"{other.name} and {one.path.name} are both files of client {one.client!r}"
            remedy = "Keep one file per client, or name them in study.toml."
            raise InputError(what, remedy, path=one.path)
    clients, findings, lacking = list[Client](), list(described.findings), list[set[str]]()
    sources, fingerprints, problems = dict[str, str](), dict[str, str](), list[InputError]()
    for reading in counted(described.clients, len(described.clients)):
        assert reading.path is not None
        try:
            with open_data(reading.path) as data:
                # The file is opened once, for the hash and for the rows.
                sha256 = data.sha256()
                client, found, absent = _read(data, reading)
            clients.append(client)
            findings += found
            lacking.append(set(absent))
            sources[client.name] = str(data.path)
            if sha256 is not None:
                fingerprints[client.name] = sha256
            _refuse_strangers(client, described.labels, data.path)
        except InputError as error:
            reading.problems.extend(parts_of(error))
        finally:
            problems += reading.problems
    unknown = set.intersection(*lacking) if lacking and path is not None else set()
    if unknown:
        what = f"no file has a column {quoted(sorted(unknown))} to ignore"
        problems.append(InputError(what, "Check the spelling."))
    study = None
    try:
        if clients:
            study = Study(described.name, tuple(clients), tuple(findings), sources, fingerprints)
    except InputError as error:
        problems.append(error)
    raise_all(problems, len(described.clients), path or described.clients[0].path)
    assert study is not None
    try:
        return _as_described(study, described, strict=path is not None)
    except InputError as error:
        raise error.located(path=path) from None


def _read(data: DataFile, reading: Reading) -> tuple[Client, list[Finding], tuple[str, ...]]:
    """One client, findings, and columns to ignore that it lacks."""
    if is_moments_file(data):
        return read_moments(data, reading), [], ()
    noted, spoilt = len(reading.problems), list[InputError]()
    while True:
        try:
            table = table_of(data, reading)
            return *read_table(table), table.lacking
        except InputError as error:
            column = getattr(error, "column", None)
            if column is None or len(spoilt) == MOST_SPOILT:
                raise
            # A text among numbers stops pyarrow: the file is read again without the column.
            spoilt.append(error)
            reading.problems[noted:] = spoilt
            reading = reading.but(ignore=[*reading.ignore, column])


def _as_described(study: Study, described: Described, *, strict: bool) -> Study:
    """The study with what its manifest says of interventions, sensors and labels.

    With `strict`, every name in it must be that of a label or a column of some client.
    """
    if strict:
        described.knowledge.check(study.labels)
        check_named(described.interventions or {}, study.labels, "no client has")
    clients = []
    for client, reading in zip(study, described.clients, strict=True):
        client = client.with_sensors(reading.up, reading.units, reading.sensor_noise, strict=False)
        client = client.with_interventions(described.interventions or {})
        clients.append(_with_kinds(client, reading.interventions))
    for what in ("up", "units", "sensor_noise") if strict else ():
        given = [getattr(reading, what) for reading in described.clients]
        asked = {x: y for one in given if isinstance(one, Mapping) for x, y in one.items()}
        for name, other in asked.items():
            if not any(name in getattr(client, what) for client in clients):
                meant = f"label {name!r} with a column {other!r}" if what == "up" else repr(name)
                raise InputError(f"[{what}]: no client has {meant}", "Check the spelling.")
    return replace(study, clients=tuple(clients))


def _refuse_strangers(client: Client, permitted: Sequence[str] | None, path: Path) -> None:
    """Refuse labels that are not among those that the manifest permits."""
    strangers = [x for x in client.labels if permitted is not None and x not in permitted]
    if strangers:
        alone = len(strangers) == 1
        subject = "label {} is" if alone else "labels {} are"
        raise InputError(
            f"the {subject.format(quoted(strangers))} not among the manifest's labels",
            f"Correct the spelling, or add it to labels in {MANIFEST}.",
            client=client.name,
            regime=strangers[0] if alone else None,
            path=path,
        )
