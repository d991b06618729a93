"""Read one client, or a whole study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import fingerprint, readable
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.client.client import CONTROL, Client
from jigsaw_crl.study.folder import (
    ENDINGS,
    MANIFEST,
    Entry,
    Study,
    client_name,
    is_partitioned,
    manifest_entries,
)
from jigsaw_crl.study.regimes import Naming, Source, client_from_source, warn_of_truths

__all__ = ["read_any", "read_client", "read_client_with_findings", "read_study"]


def read_client(
    path: str | Path,
    *,
    regime: str | None = None,
    control: str | None = None,
    name: str | None = None,
    n_latent: int | None = None,
    ignore: Sequence[str] = (),
) -> Client:
    """One client from a file.

    Parameters
    ----------
    path : path
        `.csv` (also `.tsv`, also with `.gz`), `.parquet` (a file, or a folder of parts), `.npz`,
        `.h5ad`, or a moments file.
    regime : str, optional
        Column with the regime of each row; by default ``"regime"``, in AnnData
        ``"perturbation"``.
    control : str, optional
        Its value on observational rows; by default ``"control"``.
    name : str, optional
        The client's name; by default the file's.
    n_latent : int, optional
        Latents the client accesses; by default as many as it has labels.
    ignore : sequence of str
        Columns that are no features.

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
    client, findings = read_client_with_findings(
        path, regime=regime, control=control, name=name, n_latent=n_latent, ignore=ignore
    )
    warn_of_truths(findings, stacklevel=2)
    return client


def read_client_with_findings(
    path: str | Path,
    *,
    regime: str | None = None,
    control: str | None = None,
    name: str | None = None,
    n_latent: int | None = None,
    ignore: Sequence[str] = (),
) -> tuple[Client, list[Finding]]:
    """Like `read_client`, with what was noticed: ignored and constant columns."""
    naming = Naming(regime, CONTROL if control is None else control, {}, tuple(ignore))
    return _read(Entry(name, Path(path), naming, n_latent))


def read_study(
    path: str | Path,
    *,
    regime: str | None = None,
    control: str | None = None,
    ignore: Sequence[str] = (),
) -> Study:
    """A study from a folder with one file per client, or from its manifest `study.toml`.

    Parameters
    ----------
    path : path
        The folder, or the manifest.
    regime, control, ignore
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
    name, entries, permitted = manifest_entries(
        given, regime=regime, control=control, ignore=tuple(ignore)
    )
    _refuse_two_files_of_one_client(entries)
    clients, findings, sources = [], list[Finding](), {}
    for entry in entries:
        client, noted = _read(entry)
        strangers = [] if permitted is None else [x for x in client.labels if x not in permitted]
        if strangers:
            raise InputError(
                f"the label {strangers[0]!r} is not among the manifest's labels",
                f"Correct it, or add it to labels in {MANIFEST}.",
                client=client.name,
                regime=strangers[0],
                path=entry.path,
            )
        clients.append(client)
        findings.extend(noted)
        sources[client.name] = str(entry.path)
    return _study(name, clients, findings, sources)


def read_any(
    path: str | Path,
    *,
    regime: str | None = None,
    control: str | None = None,
    ignore: Sequence[str] = (),
) -> Study:
    """A study from whatever the user points at: folder, manifest, or one client's file."""
    given = Path(path)
    with readable(given):
        if not given.exists():
            raise FileNotFoundError
        whole = given.is_dir() and not is_partitioned(given)
    if whole or given.suffix == ".toml":
        return read_study(given, regime=regime, control=control, ignore=ignore)
    client, findings = read_client_with_findings(
        given, regime=regime, control=control, ignore=ignore
    )
    return _study(client.name, [client], findings, {client.name: str(given)})


def _study(
    name: str, clients: list[Client], findings: list[Finding], sources: dict[str, str]
) -> Study:
    marks = {k: mark for k, path in sources.items() if (mark := fingerprint(Path(path)))}
    return Study(name, tuple(clients), tuple(findings), sources, marks)


def _read(entry: Entry) -> tuple[Client, list[Finding]]:
    path = entry.path
    with readable(path):
        if not path.exists():
            raise FileNotFoundError
    name = client_name(path) if entry.name is None else entry.name
    if path.name.casefold().endswith(".npz"):
        from jigsaw_crl.study.moments_file import is_moments_file, read_moments
        from jigsaw_crl.study.npz import archive_members

        if is_moments_file(set(archive_members(path, name))):
            return read_moments(path, name=entry.name, n_latent=entry.n_latent), []
    source = _source(path, entry.naming, name)
    return client_from_source(
        source, name=name, naming=entry.naming, n_latent=entry.n_latent, path=path
    )


def _source(path: Path, naming: Naming, client: str) -> Source:
    folded = path.name.casefold()
    if path.is_dir() or folded.endswith(".parquet"):
        from jigsaw_crl.study.arrow import parquet_source

        return parquet_source(path, naming, client)
    if folded.endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")):
        from jigsaw_crl.study.arrow import csv_source

        return csv_source(path, naming, client)
    if folded.endswith(".npz"):
        from jigsaw_crl.study.npz import npz_source

        return npz_source(path, naming, client)
    if folded.endswith(".h5ad"):
        from jigsaw_crl.study.h5ad import h5ad_source

        return h5ad_source(path, naming, client)
    raise InputError(
        f"the ending {path.suffix or 'of the name'!r} is not one of a client's file",
        f"Use {' '.join(ENDINGS)}.",
        path=path,
    )


def _refuse_two_files_of_one_client(entries: Sequence[Entry]) -> None:
    seen: dict[str, Path] = {}
    for entry in entries:
        name = (entry.name or client_name(entry.path)).casefold()
        if name in seen:
            raise InputError(
                f"{seen[name].name} and {entry.path.name} are both files of client "
                f"{client_name(entry.path)!r}",
                "Keep one file per client, or name them in study.toml.",
                path=entry.path,
            )
        seen[name] = entry.path
