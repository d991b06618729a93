"""How each client's table is read: what `study.toml` says of it, and what the caller asks for.

The page "Files" of the reference lists all fields. Each is optional::

    regime = "arm"                  # above all tables, or of one client
    [rename]
    "pump (5 V)" = "pump"
    [clients.lab-1]
    file = "data/first lab.csv"     # relative to the manifest, in its folder
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from jigsaw_crl.base.documents import Number, WholeNumber
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import read_file, readable
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.knowledge import NOTHING, Knowledge
from jigsaw_crl.base.labels import normal_label
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.client.checks import Kinds
from jigsaw_crl.client.client import CONTROL
from jigsaw_crl.client.reduction import Reduction
from jigsaw_crl.moments.preparing import MOST_TRIMMED, RowOptions
from jigsaw_crl.study.data_file import files_below
from jigsaw_crl.study.problems import raise_all, shortened

MANIFEST = "study.toml"
LARGEST_MANIFEST = 1 << 24

# The reader of each format: imported when it is used, because of what it loads.
READERS = {
    **dict.fromkeys((".csv", ".csv.gz", ".tsv", ".tsv.gz"), "jigsaw_crl.study.delimited:csv_table"),
    ".parquet": "jigsaw_crl.study.arrow:parquet_table",
    ".npz": "jigsaw_crl.study.archive:npz_table",
    ".h5ad": "jigsaw_crl.study.h5ad:h5ad_table",
    ".xlsx": "jigsaw_crl.study.arrow:excel_table",
}
ENDINGS = tuple(READERS)
# Tables of programs that are not read; such a file in a study's folder is probably a client.
OTHER_TABLES = (".xls", ".ods", ".feather", ".arrow", ".mat", ".rds", ".h5", ".hdf5")
# Other words for fields, by the field that is meant.
_MEANT = {
    "missing": ("drop", "dropna", "drop_na", "drop_missing", "drop_missing_rows"),
    "na": ("nan", "na_values", "null_values", "missing_values"),
    "ignore": ("exclude", "skip", "drop_columns", "ignore_columns"),
    "regime": ("regimes", "regime_column", "arm", "condition", "perturbation", "intervention"),
    "control": ("controls", "control_value", "baseline"),
    "n_latent": ("latents", "latent", "n_latents"),
}
# Tables whose entries join those above all clients; other fields replace them.
_JOINED = ("rename", "up", "units")


# -- fields ---------------------------------------------------------------------------------------


_Kind = Literal["soft", "hard"]
# A single text stands for a list of one.
_Texts = Annotated[list[str], BeforeValidator(lambda x: [x] if isinstance(x, str) else x)]


class _Common(BaseModel):
    """Fields that stand above all tables or in that of a client; each shows what to write."""

    # A number where a text is expected is that text: regimes are often numbers.
    model_config = ConfigDict(
        extra="forbid", coerce_numbers_to_str=True, arbitrary_types_allowed=True
    )

    regime: str = Field("", description='regime = "COLUMN"')
    control: str = Field(CONTROL, description='control = "VALUE"')
    batch: str = Field("", description='batch = "COLUMN"')
    group: str = Field("", description='group = "COLUMN"')
    trim: Number = Field(0.0, ge=0, le=MOST_TRIMMED, description="trim = 0.05")
    missing: Literal["refuse", "drop", "em"] = Field(
        "refuse", description='missing = "drop", missing = "em" or missing = "refuse"'
    )
    na: _Texts = Field([], description='na = ["VALUE"]')
    covariates: _Texts = Field([], description='covariates = ["COLUMN"]')
    ignore: _Texts = Field([], description='ignore = ["COLUMN"]')
    rename: dict[str, str] = Field({}, description='[rename] and below it "VALUE" = "LABEL"')
    up: dict[str, str] = Field({}, description='[up] and below it LABEL = "COLUMN"')
    units: dict[str, str] = Field({}, description='[units] and below it COLUMN = "UNIT"')
    sensor_noise: Number | dict[str, Number] | None = Field(
        None, description="sensor_noise = 0.5, or [sensor_noise] and below it COLUMN = 0.5"
    )
    interventions: _Kind | dict[str, _Kind] | None = Field(
        None, description='interventions = "hard" or "soft", or a table LABEL = "hard"'
    )


class _Client(_Common):
    file: str = Field("", description='file = "FILE"')
    n_latent: WholeNumber | None = Field(None, description="n_latent = 7")


class _Top(_Common):
    """Everything in a manifest; `[knowledge]` is checked by `Knowledge.from_document`."""

    name: str = Field("", description='name = "NAME"')
    labels: _Texts = Field([], description='labels = ["LABEL"]')
    clients: dict[str, _Client] = Field({}, description='[clients.NAME] and below it file = "FILE"')
    knowledge: dict[str, Any] = Field(
        {}, description='[knowledge] and below it ancestor = ["LABEL -> LABEL"]'
    )


# What each field looks like.
_TOP, _CLIENT = (
    {name: field.description or "" for name, field in table.model_fields.items()}
    for table in (_Top, _Client)
)


class Reading(_Client):
    """How the table of one client is read: the fields of its manifest, and some of its own.

    Parameters
    ----------
    path : Path or None
        The file; None for a table in memory.
    name : str
        The client's name; empty for that of its file.
    strict_rename, strict_ignore : bool
        Refuse a renamed value, or a column to ignore, that does not occur.
    reduction : Reduction or None
        Directions along which rows are read, if they are known before.
    cluster : str, distributed.Client or None
        Dask cluster whose workers read the files of a folder.
    problems : list of InputError
        What is wrong and was passed over, to find further problems.
    """

    path: Path | None = None
    name: str = ""
    strict_rename: bool = False
    strict_ignore: bool = True
    reduction: Reduction | None = None
    cluster: Any = None
    problems: list[Any] = Field(default_factory=list)

    @classmethod
    def of(cls, path: Path | None, *fields: Mapping[str, Any], **more: Any) -> Self:
        """The reading of a file with these fields, later ones first; None leaves a field open."""
        joined: dict[str, Any] = {"path": path}
        for source in (*fields, more):
            for key, value in source.items():
                if value is not None:
                    old = joined.get(key, {})
                    joined[key] = {**old, **value} if key in _JOINED else value
        made = cls.model_construct(**joined)
        made.asked  # noqa: B018 (it checks its values)
        return made

    def but(self, **other: Any) -> Self:
        """The same with other values of some fields."""
        return self.model_copy(update=other)

    @property
    def asked(self) -> RowOptions:
        """What is asked for when rows are read."""
        return RowOptions(self.trim, self.missing, bool(self.group), bool(self.batch))

    @property
    def client(self) -> str:
        """The client's name: by default that of its file, without the ending."""
        if self.name or self.path is None:
            return self.name
        name = self.path.name
        if not self.path.is_dir():
            name = name[: len(name) - len(ending_of(self.path))]
        return name.removesuffix(".moments") or name

    def columns(self, default: str = "regime") -> dict[str, str]:
        """The columns of the "regime", "batch" and "group", where there are such."""
        own = {"regime": self.regime or default, "batch": self.batch, "group": self.group}
        return {what: name for what, name in own.items() if name}

    def at(self, path: Path) -> Self:
        """The same client, read from another file."""
        return self.but(path=path, name=self.client)

    def fail(self, what: str, remedy: str, regime: str | None = None) -> InputError:
        """The error about this table; a name in it may be of any length."""
        what = shortened(what, 2_000)
        return InputError(what, remedy, client=self.client, regime=regime, path=self.path)

    def note(self, what: str, remedy: str, regime: str | None = None) -> None:
        """Keep a problem; reading goes on, as if it were corrected, to find further ones."""
        self.problems.append(self.fail(what, remedy, regime))


def ending_of(path: Path) -> str:
    """Which of the endings that are read a file has; empty if it has another."""
    folded = path.name.casefold()
    return max((ending for ending in ENDINGS if folded.endswith(ending)), key=len, default="")


def read_manifest(path: Path) -> dict[str, Any]:
    """The fields of a manifest, checked; the study's name is by default that of the folder."""
    fail = partial(InputError, path=path)
    try:
        document = tomllib.loads(read_file(path, LARGEST_MANIFEST, "manifest").decode("utf-8"))
    except (ValueError, RecursionError) as error:
        # Also for an integer of more digits than Python turns into a number.
        what = f"the manifest is not valid TOML ({str(error)[:200]})"
        raise fail(what, 'Texts stand in quotes, as in a = "b".') from None
    problems, faults, fields = list[InputError](), dict[tuple[Any, ...], Any](), dict[str, Any]()
    try:
        fields = _Top.model_validate(document).model_dump(exclude_unset=True)
    except ValidationError as error:
        for fault in error.errors(include_url=False, include_context=False):
            place = fault["loc"][:3] if fault["loc"][0] == "clients" else fault["loc"][:1]
            faults.setdefault(place, fault)
    for place, fault in faults.items():
        unknown = fault["type"] == "extra_forbidden"
        problems.append(fail(*_explained(document, place, unknown)))
    if isinstance(document.get("knowledge"), dict):
        try:
            fields["knowledge"] = Knowledge.from_document(document["knowledge"])
        except InputError as error:
            problems.append(error.located(path=path))
    raise_all(problems, path=path)
    return {"name": path.parent.resolve().name, **fields}


def _explained(document: dict[str, Any], place: tuple[Any, ...], unknown: bool) -> tuple[str, str]:
    """What is wrong with a field of the manifest, and what to write."""
    value: Any = document
    for part in place:
        value = value[part]
    key, known, other, where = place[-1], _TOP, _CLIENT, "the manifest"
    if len(place) == 3:
        known, other, where = _CLIENT, _TOP, f"clients.{place[1]}"
    elif len(place) == 2:
        remedy = f'Write [clients.{key}] and below it file = "FILE".'
        return f"clients.{key} is not a table", remedy
    if not unknown:
        text = str(value).lower() if isinstance(value, bool) else repr(value)
        return f"{where}: the field {key!r} is {shortened(text, 60)}", f"Write {known[key]}."
    folded = key.strip().casefold().replace("-", "_")
    meant = next((field for field, words in _MEANT.items() if folded in words), key)
    fields = f"The fields are {', '.join(known)}."
    if meant in known:
        remedy = f"Write {known[meant]}."
    elif meant in other:
        above = "below [clients.NAME]" if other is _CLIENT else "above all tables"
        remedy = f"It stands {above}: {other[meant]}."
    elif isinstance(value, dict) and known is _TOP:
        remedy = f"If it is a client, write [clients.{key}]. {fields}"
    else:
        remedy = f"{did_you_mean(folded, known)} {fields}".strip()
    return f"{where} has an unknown field {key!r}", remedy


# -- which file is which client -------------------------------------------------------------------


@dataclass(frozen=True)
class Described:
    """A study before its clients are read.

    Name, how each client is read, permitted labels, kinds for all, findings about tables in its
    folder that are not read, and what is known before the data.
    """

    name: str
    clients: tuple[Reading, ...]
    labels: tuple[str, ...] | None = None
    interventions: Kinds | None = None
    findings: tuple[Finding, ...] = ()
    knowledge: Knowledge = NOTHING


def describe(path: Path, given: Mapping[str, Any], *, elsewhere: bool = False) -> Described:
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
        found = client_files(folder)
        skipped = sorted(p.name for p in folder.iterdir() if _ends(p, OTHER_TABLES))
    # The kind of all interventions is the study's, which a client's own word follows.
    kinds, tables = manifest.get("interventions"), manifest.get("clients", {})
    common = {key: x for key, x in manifest.items() if key in _CLIENT and key != "interventions"}
    # A word about all files: some may lack the column.
    everywhere, clients = given.get("ignore") is None, []
    for name, own in tables.items():
        try:
            target = _file_of(name, own.get("file"), folder, found, file)
        except InputError:
            if elsewhere:
                continue
            raise
        strict = {"strict_rename": "rename" in own, "strict_ignore": everywhere and "ignore" in own}
        clients.append(Reading.of(target, common, own, given, name=name, **strict))
    used = {reading.path for reading in clients}
    loose = [p for p in found if p not in used]
    clients += [Reading.of(p, common, given, strict_ignore=False) for p in loose]
    if not clients:
        beside = f", only {few(map(repr, skipped))}" if skipped else ""
        raise InputError(
            f"the folder holds no client file{beside}",
            f"A study has one file per client: {' '.join(ENDINGS)}.",
            path=path,
        )
    labels = manifest.get("labels")
    what = "is not read: the file's format is not supported"
    remedy = f"Save it as CSV if it is a client's table; files may end in {' '.join(ENDINGS)}."
    return Described(
        manifest["name"],
        tuple(clients),
        None if labels is None else tuple(map(normal_label, labels)),
        kinds,
        tuple(Finding("skipped-file", "warning", f"{x!r} {what}", remedy) for x in skipped),
        manifest.get("knowledge", NOTHING),
    )


def describe_one(path: Path, given: Mapping[str, Any]) -> Described:
    """One client: of its file, with the manifest in the same folder, or of a manifest."""
    with readable(path):
        beside = path.suffix != ".toml" and (path.parent / MANIFEST).is_file()
    if path.suffix == ".toml":
        described = describe(path, given, elsewhere=True)
        if len(described.clients) != 1:
            count = pluralise(len(described.clients), "client")
            raise InputError(
                f"the manifest has {count}, and one is asked for",
                "Name the client's own file: the manifest in its folder holds for it.",
                path=path,
            )
    else:
        described = Described(path.name, (Reading.of(path, given, strict_ignore=False),))
        if beside:
            study = describe(path.parent, given, elsewhere=True)
            for reading in study.clients:
                if reading.path is not None and reading.path.resolve() == path.resolve():
                    described = replace(study, clients=(reading.but(path=path),))
    (own,) = described.clients
    # A column that is asked for must be there.
    strict = own.strict_ignore or bool(given.get("ignore"))
    own = own.but(strict_ignore=strict, name=given.get("name") or own.name)
    return replace(described, clients=(own,), findings=())


def is_partitioned(folder: Path) -> bool:
    """Is the folder one client's table, divided into `column=value` sub-folders?"""
    return any(p.is_dir() and "=" in p.name for p in folder.iterdir())


def client_files(folder: Path) -> list[Path]:
    """The files of a folder that may be clients: tables, and folders of Parquet files."""
    files = sorted(folder.iterdir())
    parts = (p for p in files if p.is_dir() and p.name[0] != "." and _holds_parts(p, folder))
    return sorted([*parts, *(p for p in files if _ends(p, ENDINGS))])


def _ends(path: Path, endings: tuple[str, ...]) -> bool:
    # A name that starts with "~" is that of an open spreadsheet's lock.
    hidden = path.name.startswith((".", "~"))
    return not hidden and path.name.casefold().endswith(endings) and not path.is_dir()


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
            f'Say which it is: [clients.{name}] file = "…"; delete this table if the site left.',
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
            "Paths are relative to the manifest; delete this table if the site left.",
        )
    return folder / file
