"""Which file is which client, and how much a file may make this program hold in memory.

A file is opened once: the hash in a result's provenance is that of the bytes that were read, even
if the file is replaced meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import open_regular, readable
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.study.manifest import CLIENT_FIELDS, ENDINGS, MANIFEST, Reading, read_manifest

# Tables of programs that are not read; such a file in a study's folder is probably a client.
OTHER_TABLES = (".xls", ".ods", ".feather", ".arrow", ".mat", ".rds", ".h5", ".hdf5")
# What is held in memory as a whole may take this many bytes, or this many times the file's size.
# Texts and counts of real files are compressed up to about thirty times.
_SMALL, _EXPANSION = 1 << 26, 100
# Entries of a folder that are looked at, and levels below it.
_MOST_ENTRIES, _MOST_LEVELS = 20_000, 8


def fits(size: int, file_size: int) -> bool:
    """May `size` bytes be held in memory for a file of `file_size` bytes?"""
    return size <= max(_SMALL, _EXPANSION * file_size)


@dataclass(frozen=True)
class Described:
    """A study before its clients are read.

    Name, how each client is read, columns to ignore that some client must have, the fields of its
    manifest, findings about tables in its folder that are not read, and where all clients are; None
    if it is one of them, and other clients may have what this one has not.
    """

    name: str
    clients: tuple[Reading, ...]
    ignored: frozenset[str] = frozenset()
    manifest: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    path: Path | None = None


def describe(path: Path, *, elsewhere: bool = False, **asked: Any) -> Described:
    """What a study folder or manifest says of its clients; what is asked for comes first.

    With `elsewhere`, tables of clients whose files are not here are passed over: a site may have
    the manifest of the whole study.
    """
    with readable(path):
        if not path.exists():
            raise FileNotFoundError
        folder, file = (path, path / MANIFEST) if path.is_dir() else (path.parent, path)
        manifest: dict[str, Any] = read_manifest(file) if file.exists() else {"name": path.name}
        # A name that starts with "~" is that of an open spreadsheet's lock.
        entries = [p for p in sorted(folder.iterdir()) if not p.name.startswith((".", "~"))]
        files = {p: p.name.casefold() for p in entries if not p.is_dir()}
        ours = (p for p in entries if files.get(p, "").endswith(ENDINGS))
        found = sorted([*ours, *(p for p in entries if p not in files and _holds_parts(p, folder))])
        skipped = [p.name for p, name in files.items() if name.endswith(OTHER_TABLES)]
    # The kind of all interventions is the study's, which a client's own word follows.
    common = {x: manifest[x] for x in CLIENT_FIELDS if x in manifest and x != "interventions"}
    clients = []
    for name, own in manifest.get("clients", {}).items():
        try:
            target = _file_of(name, own.get("file"), folder, found, file)
        except InputError:
            if elsewhere:
                continue
            raise
        said = {"name": name, "strict_rename": "rename" in own}
        clients.append(Reading.of(target, common, own, said, **asked))
    used = {reading.path for reading in clients}
    clients += [Reading.of(p, common, **asked) for p in found if p not in used]
    endings = " ".join(ENDINGS)
    if not clients:
        beside = f", only {few(map(repr, skipped))}" if skipped else ""
        remedy = f"A study has one file per client: {endings}."
        raise InputError(f"the folder holds no client file{beside}", remedy, path=path)
    first = {one.client.casefold(): one.path for one in reversed(clients)}
    for one in () if elsewhere else clients:
        other = first[one.client.casefold()]
        if one.path != other and one.path is not None and other is not None:
            what = f"{other.name} and {one.path.name} are both files of client {one.client!r}"
            remedy = "Keep one file per client, or name them in study.toml."
            raise InputError(what, remedy, path=one.path)
    what = "is not read: the file's format is not supported"
    remedy = f"Save it as CSV if it is a client's table; files may end in {endings}."
    left = tuple(Finding("skipped-file", "warning", f"{x!r} {what}", remedy) for x in skipped)
    ignored = frozenset(x for one in clients for x in one.ignore)
    return Described(manifest["name"], tuple(clients), ignored, manifest, left, path)


def describe_one(path: Path, **asked: Any) -> Described:
    """One client: of its file, with the manifest in the same folder, or of a manifest.

    The study is called as the client is.
    """
    alone = path.suffix == ".toml"
    manifest = path if alone else path.parent / MANIFEST
    with readable(path):
        beside = alone or manifest.is_file()
    one = Reading.of(path, **asked)
    study = Described("", (one,), frozenset(one.ignore))
    if beside:
        whole = describe(manifest, elsewhere=True, **asked)
        own = [x for x in whole.clients if alone or (x.path and x.path.resolve()) == path.resolve()]
        if alone and len(own) != 1:
            raise InputError(
                f"the manifest has {pluralise(len(own), 'client')}, and one is asked for",
                "Name the client's own file: the manifest in its folder holds for it.",
                path=path,
            )
        study = replace(study, clients=tuple(own), manifest=whole.manifest) if own else study
    return study


def _holds_parts(path: Path, study: Path) -> bool:
    """Is a folder one client's table in parts? A link to a folder above the study is not."""
    if study.resolve().is_relative_to(path.resolve()):
        return False
    try:
        return next(files_below(path, ".parquet"), None) is not None
    except (InputError, PermissionError):
        # A large folder without a part among its first entries, or one that is not ours to read.
        return False


def _file_of(name: str, file: str | None, folder: Path, found: list[Path], manifest: Path) -> Path:
    fail = partial(InputError, client=name, path=manifest)
    if file is None:
        for path in found:
            if Reading.of(path).client == name:
                return path
        raise fail(
            f"the manifest describes the client {name!r}, but no file is called so",
            f'Say which it is: [clients.{name}] file = "…"; delete this table if the client left.',
        )
    inside = os.path.normpath(file)
    if os.path.isabs(inside) or inside.split(os.sep)[0] == os.pardir:
        raise fail(
            f"the manifest's file {file[:200]!r} lies outside the study's folder",
            "Move it into the folder, or put a link to it there.",
        )
    # Unlike a method of the path, this takes any text, however long.
    if not os.path.exists(folder / file):
        raise fail(
            f"the manifest's file {file[:200]!r} does not exist",
            "Paths are relative to the manifest; delete this table if the client left.",
        )
    return folder / file


# -- one client's file ---------------------------------------------------------------------------


@contextmanager
def opened(reading: Reading) -> Iterator[Reading]:
    """The reading with its file open; a folder's files are opened one by one.

    What goes wrong is an `InputError`.
    """
    if reading.path is None or reading.path.is_dir():
        yield reading
        return
    with open_regular(reading.path) as handle:
        if not reading.ending:
            what = "the file's name has no ending of a format that is read"
            raise InputError(what, f"Use {' '.join(ENDINGS)}.", path=reading.path)
        size = os.fstat(handle.fileno()).st_size
        yield reading.model_copy(update={"handle": handle, "size": size})


@contextmanager
def reading_as(kind: str, again: str, reading: Reading) -> Iterator[None]:
    """Turn whatever a library raises for a broken file of this kind into an `InputError`."""
    assert reading.path is not None
    with readable(reading.path):
        try:
            yield
        except (InputError, MemoryError, PermissionError):
            raise
        except Exception as error:
            what = f"the file cannot be read as {kind} ({str(error)[:150]})"
            raise reading.fail(what, f"{again}; it may be truncated.") from None


def files_below(folder: Path, ending: str) -> Iterator[Path]:
    """Files with this ending in a folder and its sub-folders, at most eight levels down.

    Links to folders are not followed, and hidden entries and those that begin with an underscore
    are left out. After 20,000 entries an `InputError` is raised.
    """

    def stop(error: OSError) -> None:
        raise error

    seen = 0
    for place, folders, files in os.walk(folder, onerror=stop):
        seen += len(folders) + len(files)
        if seen > _MOST_ENTRIES:
            raise InputError(
                f"the folder holds more than {_MOST_ENTRIES} entries",
                "Name the client's own folder.",
                path=folder,
            )
        level = len(Path(place).relative_to(folder).parts) + 1
        folders[:] = sorted(x for x in folders if x[0] not in "._" and level < _MOST_LEVELS)
        found = (Path(place, x) for x in files if x[0] not in "._" and x.endswith(ending))
        yield from (path for path in found if path.is_file())


class Part(NamedTuple):
    """A Parquet file, its bytes, and the `key=value` pairs of its path."""

    path: Path
    size: int
    keys: Mapping[str, str]


def parquet_parts(reading: Reading) -> list[Part]:
    """The Parquet file, or the files of the folder, in a fixed order."""
    assert reading.path is not None
    if reading.handle is not None:
        return [Part(reading.path, reading.size, {})]
    parts = []
    for file in sorted(files_below(reading.path, ".parquet")):
        inside = file.relative_to(reading.path).parts[:-1]
        keys = dict(p.split("=", 1) for p in inside if "=" in p)
        parts.append(Part(file, file.stat().st_size, {k: unquote(v) for k, v in keys.items()}))
    return parts
