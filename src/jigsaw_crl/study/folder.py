"""A study: a folder with one file per client, optionally described by a manifest `study.toml`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.frozen import FrozenMapping
from jigsaw_crl.base.knowledge import NOTHING, Knowledge
from jigsaw_crl.base.labels import label_key, normal_label
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.client.checks import Kinds, check_named
from jigsaw_crl.client.client import CONTROL, Client
from jigsaw_crl.study.limits import files_below
from jigsaw_crl.study.manifest import MANIFEST, read_manifest
from jigsaw_crl.study.source import Naming

__all__ = [
    "Entry",
    "Study",
    "manifest_entries",
    "naming_of",
    "refuse_two_files_of_one_client",
]

ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".npz", ".h5ad")
# Tables of programs that are not read; such a file in a study's folder is probably a client.
OTHER_TABLES = (".xlsx", ".xls", ".ods", ".feather", ".arrow", ".mat", ".rds", ".h5", ".hdf5")


@dataclass(frozen=True, eq=False)
class Study:
    """Clients whose labels have the same meaning.

    Parameters
    ----------
    name : str
    clients : tuple of Client
    findings : tuple of Finding
        From reading the files.
    sources : mapping of str to str
        The file each client was read from.
    fingerprints : mapping of str to str
        SHA-256 of those files, where they are single files of at most 256 MB.
    knowledge : Knowledge
        What is known before the data: ``[knowledge]`` in `study.toml`.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> study = jc.Study("settled", tuple(jc.simulate.setting("A", 0).clients()))
    >>> len(study), study.labels[:2]
    (5, ('z1', 'z2'))
    """

    name: str
    clients: tuple[Client, ...]
    findings: tuple[Finding, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    knowledge: Knowledge = NOTHING

    def __post_init__(self) -> None:
        object.__setattr__(self, "clients", tuple(self.clients))
        object.__setattr__(self, "sources", FrozenMapping(self.sources))
        object.__setattr__(self, "fingerprints", FrozenMapping(self.fingerprints))
        if not self.clients:
            raise InputError("the study has no clients", "Add at least one client.")
        _refuse_same_names(self.clients)
        clients, notes = _one_spelling(self.clients)
        object.__setattr__(self, "clients", clients)
        object.__setattr__(self, "findings", (*self.findings, *notes))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of all clients, sorted."""
        return tuple(sorted({label for client in self.clients for label in client.labels}))

    def with_interventions(self, kinds: Kinds) -> Study:
        """The study with the user's word on which interventions are hard.

        Parameters
        ----------
        kinds : {"soft", "hard"} or mapping of label to one of these
            As for `Client.with_interventions`; a label that no client has is refused.
        """
        check_named(kinds, self.labels, "no client has")
        clients = tuple(client.with_interventions(kinds) for client in self.clients)
        return replace(self, clients=clients)

    def __iter__(self) -> Iterator[Client]:
        return iter(self.clients)

    def __len__(self) -> int:
        return len(self.clients)

    def __getitem__(self, name: str) -> Client:
        for client in self.clients:
            if client.name == name:
                return client
        known = ", ".join(c.name for c in self.clients[:8])
        near = did_you_mean(name, [c.name for c in self.clients])
        raise InputError(f"the study has no client {name!r}", f"It has {known}. {near}".strip())

    def __repr__(self) -> str:
        return (
            f"Study({self.name!r}: {pluralise(len(self.clients), 'client')}, "
            f"{pluralise(len(self.labels), 'label')})"
        )


def _refuse_same_names(clients: tuple[Client, ...]) -> None:
    seen: dict[str, str] = {}
    for client in clients:
        folded = client.name.strip().casefold()
        if folded in seen:
            raise InputError(
                f"two clients are called {seen[folded]!r} and {client.name!r}",
                "Give each client a name of its own.",
                client=client.name,
            )
        seen[folded] = client.name


def _one_spelling(clients: tuple[Client, ...]) -> tuple[tuple[Client, ...], list[Finding]]:
    """The clients with one spelling of each label, the most frequent one, and a note of others."""
    seen: dict[str, Counter[str]] = {}
    for client in clients:
        for label in client.labels:
            seen.setdefault(label_key(label), Counter())[label] += 1
    spelling = {key: max(found, key=lambda x: found[x]) for key, found in seen.items()}
    notes, out = [], []
    for client in clients:
        other = {x: spelling[label_key(x)] for x in client.labels if x != spelling[label_key(x)]}
        for own, label in other.items():
            what = f"its label {own!r} is taken as {label!r}, which other clients write so"
            remedy = "Nothing to do if they mean the same; otherwise [rename] one of them."
            notes.append(Finding("label-spelling", "info", what, remedy, client=client.name))
        out.append(client.relabelled(other) if other else client)
    return tuple(out), notes


# -- which file is which client -----------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """One client of a study before it is read."""

    name: str | None
    path: Path
    naming: Naming
    n_latent: int | None = None
    interventions: Kinds | None = None


@dataclass(frozen=True)
class Described:
    """A study before its clients are read.

    Name, clients, permitted labels, kinds for all, tables in its folder that are not read, and
    what is known before the data.
    """

    name: str
    entries: list[Entry]
    labels: tuple[str, ...] | None
    interventions: Kinds | None
    skipped: tuple[str, ...] = ()
    knowledge: Knowledge = NOTHING

    def findings(self) -> tuple[Finding, ...]:
        """A finding for each table that is not read."""
        return tuple(
            Finding(
                "skipped-file",
                "warning",
                f"{name!r} is not read: the file's format is not supported",
                f"Save it as CSV if it is a client's table; files may end in {' '.join(ENDINGS)}.",
            )
            for name in self.skipped
        )


def manifest_entries(path: Path, given: Mapping[str, Any], *, elsewhere: bool = False) -> Described:
    """What a study folder or manifest says of its clients; what is given comes first.

    With `elsewhere`, tables of clients whose files are not here are passed over: a site may have
    the manifest of the whole study.
    """
    with readable(path):
        if not path.exists():
            raise FileNotFoundError
        folder = path if path.is_dir() else path.parent
        file = path / MANIFEST if path.is_dir() else path
        manifest: dict[str, Any] = {"name": path.name}
        if file.exists():
            manifest = read_manifest(file)
        found = _client_files(folder)
        skipped = tuple(sorted(p.name for p in folder.iterdir() if _is_other_table(p)))
    entries, used = [], set[Path]()
    for name, table in manifest.get("clients", {}).items():
        try:
            target = _file_of(name, table, folder, found, file)
        except InputError:
            if elsewhere:
                continue
            raise
        used.add(target)
        naming, n_latent = naming_of(manifest, table, given), table.get("n_latent")
        entries.append(Entry(name, target, naming, n_latent, table.get("interventions")))
    for target in found:
        if target not in used:
            entries.append(Entry(None, target, naming_of(manifest, {}, given)))
    if not entries:
        beside = f", only {few(map(repr, skipped))}" if skipped else ""
        raise InputError(
            f"the folder holds no client file{beside}",
            f"A study has one file per client: {' '.join(ENDINGS)}.",
            path=path,
        )
    labels = manifest.get("labels")
    permitted = None if labels is None else tuple(map(normal_label, labels))
    kinds = manifest.get("interventions")
    known = manifest.get("knowledge", NOTHING)
    return Described(manifest["name"], entries, permitted, kinds, skipped, known)


def is_partitioned(folder: Path) -> bool:
    """Is the folder one client's table, divided into `column=value` sub-folders?"""
    return any(p.is_dir() and "=" in p.name for p in folder.iterdir())


def _client_files(folder: Path) -> list[Path]:
    found = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            if _holds_parts(path, folder):
                found.append(path)
        elif path.name.casefold().endswith(ENDINGS):
            found.append(path)
    return found


def _is_other_table(path: Path) -> bool:
    # A name that starts with "~$" is that of an open spreadsheet's lock.
    hidden = path.name.startswith((".", "~"))
    return not hidden and path.name.casefold().endswith(OTHER_TABLES) and path.is_file()


def _holds_parts(path: Path, study: Path) -> bool:
    """Is a folder one client's table in parts? A link to a folder above the study is not."""
    if study.resolve().is_relative_to(path.resolve()):
        return False
    try:
        return next(files_below(path, ".parquet"), None) is not None
    except (InputError, PermissionError):
        # A large folder without a part among its first entries, or one that is not ours to read.
        return False


def _file_of(
    name: str, table: Mapping[str, Any], folder: Path, found: list[Path], manifest: Path
) -> Path:
    if "file" in table:
        target: Path = folder / table["file"]
        if not target.exists():
            raise InputError(
                f"the manifest's file {table['file']!r} does not exist",
                "Paths are relative to the manifest; delete this table if the site left.",
                client=name,
                path=manifest,
            )
        return target
    for path in found:
        if client_name(path) == name:
            return path
    raise InputError(
        f"the manifest describes the client {name!r}, but no file is called so",
        f'Say which it is: [clients.{name}] file = "…"; delete this table if the site left.',
        path=manifest,
    )


def client_name(path: Path) -> str:
    """The name of a client: that of its file, without the ending."""
    name = path.name
    if path.is_file() or not path.exists():
        folded = name.casefold()
        ending = max((e for e in ENDINGS if folded.endswith(e)), key=len, default="")
        name = name[: len(name) - len(ending)]
    return name.removesuffix(".moments") or name


def refuse_two_files_of_one_client(entries: Iterable[Entry]) -> None:
    """Raise an `InputError` if two files have the same client's name."""
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


def naming_of(
    common: Mapping[str, Any], own: Mapping[str, Any], given: Mapping[str, Any]
) -> Naming:
    """How to read one client: as given, else as its own table says, else as the manifest's head."""

    def choose(key: str, default: Any) -> Any:
        # First the command line, then the client's own table, then the manifest's head.
        return next((s[key] for s in (given, own, common) if s.get(key) is not None), default)

    return Naming(
        regime=choose("regime", None),
        control=choose("control", CONTROL),
        rename={**common.get("rename", {}), **own.get("rename", {})},
        ignore=tuple(choose("ignore", [])),
        strict_rename="rename" in own,
        # A word about all files: some may lack the column.
        strict_ignore=given.get("ignore") is None and "ignore" in own,
        batch=choose("batch", None),
        group=choose("group", None),
        trim=choose("trim", 0.0),
        missing=choose("missing", "refuse"),
        na=tuple(choose("na", [])),
    )
