"""The manifest of a study, `study.toml`: its fields, and which file is which client.

Everything in the manifest is optional::

    name = "light tunnel"
    regime = "arm"                  # column with the regime; also per client
    control = "untreated"           # its value on observational rows; also per client
    batch = "plate"                 # column with the batch of each row; also per client
    group = "subject"               # column with the group of each row; also per client
    trim = 0.05                     # share of rows to leave out, farthest first; also per client
    missing = "drop"                # leave rows with missing values out ("em": use them by EM);
                                    # also per client
    na = ["Bad Input", "-9999"]     # values that stand for a missing one; also per client
    covariates = ["depth"]          # columns whose linear part is taken off; also per client
    ignore = ["operator"]           # columns that are not features; also per client
    labels = ["pump", "valve"]      # the permitted labels
    interventions = "hard"          # or "soft" (default), or a table; also per client

    [knowledge]                     # what is known before the data
    tiers = [["pump"], ["valve", "flow"], ["tank"]]   # nothing acts on an earlier tier
    ancestor = ["pump -> tank"]
    not_ancestor = ["valve -> flow"]

    [up]                            # label -> column that it should raise; also per client
    pump = "flow"

    [units]                         # column -> unit; also per client
    flow = "m3/h"

    [rename]                        # regime value -> label; also per client
    "pump (5 V)" = "pump"

    [clients.lab-1]
    file = "data/first lab.csv"     # relative to the manifest, in its folder
    n_latent = 7
    interventions = {pump = "soft"}   # this client's word counts before the one above
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

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
from jigsaw_crl.moments.preparing import MOST_TRIMMED
from jigsaw_crl.study.data_file import files_below
from jigsaw_crl.study.problems import Problems
from jigsaw_crl.study.source import ENDINGS, Reading

__all__ = [
    "MANIFEST",
    "Described",
    "client_files",
    "describe",
    "describe_one",
    "is_partitioned",
    "read_manifest",
]

MANIFEST = "study.toml"
LARGEST_MANIFEST = 1 << 24
# Tables of programs that are not read; such a file in a study's folder is probably a client.
OTHER_TABLES = (".xlsx", ".xls", ".ods", ".feather", ".arrow", ".mat", ".rds", ".h5", ".hdf5")
# Other words for fields, by the field that is meant.
_MEANT = {
    "missing": ("drop", "dropna", "drop_na", "drop_missing", "drop_missing_rows"),
    "na": ("nan", "na_values", "null_values", "missing_values"),
    "ignore": ("exclude", "skip", "drop_columns", "ignore_columns"),
    "regime": ("regimes", "regime_column", "arm", "condition", "perturbation", "intervention"),
    "control": ("controls", "control_value", "baseline"),
    "n_latent": ("latents", "latent", "n_latents"),
}


# -- its fields -----------------------------------------------------------------------------------


_Kind = Literal["soft", "hard"]
# A single text stands for a list of one.
_Texts = Annotated[list[str], BeforeValidator(lambda x: [x] if isinstance(x, str) else x)]


class _Common(BaseModel):
    """Fields that stand above all tables or in that of a client; each shows what to write."""

    # A number where a text is expected is that text: regimes are often numbers.
    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    regime: str = Field("", description='regime = "COLUMN"')
    control: str = Field("", description='control = "VALUE"')
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
    interventions: _Kind | dict[str, _Kind] = Field(
        "soft", description='interventions = "hard" or "soft", or a table LABEL = "hard"'
    )


class _Client(_Common):
    file: str = Field("", description='file = "FILE"')
    n_latent: WholeNumber = Field(0, description="n_latent = 7")


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


def read_manifest(path: Path) -> dict[str, Any]:
    """The fields of a manifest, checked; the study's name is by default that of the folder."""
    fail = partial(InputError, path=path)
    try:
        document = tomllib.loads(read_file(path, LARGEST_MANIFEST, "manifest").decode("utf-8"))
    except (ValueError, RecursionError) as error:
        # Also for an integer of more digits than Python turns into a number.
        said = str(error)[:200]
        raise fail(
            f"the manifest is not valid TOML ({said})", 'Texts stand in quotes, as in a = "b".'
        ) from None
    problems, faults = Problems(), dict[tuple[Any, ...], Any]()
    try:
        fields = _Top.model_validate(document).model_dump(exclude_unset=True)
    except ValidationError as error:
        for fault in error.errors(include_url=False, include_context=False):
            place = fault["loc"][:3] if fault["loc"][0] == "clients" else fault["loc"][:1]
            faults.setdefault(place, fault)
    for place, fault in faults.items():
        problems.note(fail(*_explained(document, place, fault["type"] == "extra_forbidden")))
    if isinstance(document.get("knowledge"), dict):
        with problems.noted():
            try:
                known = Knowledge.from_document(document["knowledge"])
            except InputError as error:
                raise error.located(path=path) from None
    problems.raise_all(path=path)
    if "knowledge" in fields:
        fields["knowledge"] = known
    return {"name": path.parent.resolve().name, **fields}


def _explained(document: dict[str, Any], place: tuple[Any, ...], unknown: bool) -> tuple[str, str]:
    """What is wrong with a field of the manifest, and what to write."""
    value: Any = document
    for part in place:
        value = value[part]
    key, known, where = place[-1], _TOP, "the manifest"
    if len(place) == 3:
        known, where = _CLIENT, f"clients.{place[1]}"
    elif len(place) == 2:
        remedy = f'Write [clients.{key}] and below it file = "FILE".'
        return f"clients.{key} is not a table", remedy
    if unknown:
        return f"{where} has an unknown field {key!r}", _instead_of_unknown(key, value, known)
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    text = text if len(text) <= 60 else f"{text[:59]}…"
    return f"{where}: the field {key!r} is {text}", f"Write {known[key]}."


def _instead_of_unknown(key: str, value: Any, known: Mapping[str, str]) -> str:
    """What to write in place of a field that does not exist."""
    folded = key.strip().casefold().replace("-", "_")
    other = _TOP if known is _CLIENT else _CLIENT
    meant = next((field for field, words in _MEANT.items() if folded in words), key)
    if meant in known:
        return f"Write {known[meant]}."
    if meant in other:
        place = "below [clients.NAME]" if other is _CLIENT else "above all tables"
        return f"It stands {place}: {other[meant]}."
    if isinstance(value, dict) and known is _TOP:
        return f"If it is a client, write [clients.{key}]. The fields are {', '.join(known)}."
    return f"{did_you_mean(folded, known)} The fields are {', '.join(known)}.".strip()


# -- which file is which client -------------------------------------------------------------------


@dataclass(frozen=True)
class Described:
    """A study before its clients are read.

    Name, how each client is read, permitted labels, kinds for all, tables in its folder that are
    not read, and what is known before the data.
    """

    name: str
    clients: tuple[Reading, ...]
    labels: tuple[str, ...] | None = None
    interventions: Kinds | None = None
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
        skipped = tuple(sorted(p.name for p in folder.iterdir() if _is_other_table(p)))
    clients = []
    for name, table in manifest.get("clients", {}).items():
        try:
            target = _file_of(name, table.get("file"), folder, found, file)
        except InputError:
            if elsewhere:
                continue
            raise
        clients.append(_reading_of(target, name, manifest, table, given))
    used = {reading.path for reading in clients}
    clients += [_reading_of(p, None, manifest, {}, given) for p in found if p not in used]
    if not clients:
        beside = f", only {few(map(repr, skipped))}" if skipped else ""
        raise InputError(
            f"the folder holds no client file{beside}",
            f"A study has one file per client: {' '.join(ENDINGS)}.",
            path=path,
        )
    labels = manifest.get("labels")
    return Described(
        manifest["name"],
        tuple(clients),
        None if labels is None else tuple(map(normal_label, labels)),
        manifest.get("interventions"),
        skipped,
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
        described = Described(path.name, (_reading_of(path, None, {}, {}, given),))
        if beside:
            study = describe(path.parent, given, elsewhere=True)
            for reading in study.clients:
                if reading.path is not None and reading.path.resolve() == path.resolve():
                    described = replace(study, clients=(replace(reading, path=path),))
    (own,) = described.clients
    # A column that is asked for must be there.
    strict = own.strict_ignore or bool(given.get("ignore"))
    name = given.get("name")
    own = replace(own, strict_ignore=strict, name=own.name if name is None else name)
    return replace(described, clients=(own,), skipped=())


def is_partitioned(folder: Path) -> bool:
    """Is the folder one client's table, divided into `column=value` sub-folders?"""
    return any(p.is_dir() and "=" in p.name for p in folder.iterdir())


def client_files(folder: Path) -> list[Path]:
    return [
        path
        for path in sorted(folder.iterdir())
        if not path.name.startswith(".")
        and (
            _holds_parts(path, folder) if path.is_dir() else path.name.casefold().endswith(ENDINGS)
        )
    ]


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


def _file_of(name: str, file: str | None, folder: Path, found: list[Path], manifest: Path) -> Path:
    fail = partial(InputError, client=name, path=manifest)
    if file is None:
        for path in found:
            if Reading(path).client == name:
                return path
        raise fail(
            f"the manifest describes the client {name!r}, but no file is called so",
            f'Say which it is: [clients.{name}] file = "…"; delete this table if the site left.',
        )
    inside = os.path.normpath(file)
    if os.path.isabs(inside) or inside.split(os.sep)[0] == os.pardir:
        raise fail(
            f"the manifest's file {file!r} lies outside the study's folder",
            "Move it into the folder, or put a link to it there.",
        )
    if not (folder / file).exists():
        raise fail(
            f"the manifest's file {file!r} does not exist",
            "Paths are relative to the manifest; delete this table if the site left.",
        )
    return folder / file


def _reading_of(
    path: Path,
    name: str | None,
    common: Mapping[str, Any],
    own: Mapping[str, Any],
    given: Mapping[str, Any],
) -> Reading:
    """How to read one client: as given, else as its own table says, else as the manifest's head."""

    def choose(key: str, default: Any = None) -> Any:
        return next((s[key] for s in (given, own, common) if s.get(key) is not None), default)

    return Reading(
        path,
        name,
        regime=choose("regime"),
        control=choose("control", CONTROL),
        rename={**common.get("rename", {}), **own.get("rename", {})},
        ignore=tuple(choose("ignore", ())),
        batch=choose("batch"),
        group=choose("group"),
        trim=choose("trim", 0.0),
        missing=choose("missing", "refuse"),
        na=tuple(choose("na", ())),
        covariates=tuple(choose("covariates", ())),
        up={**common.get("up", {}), **own.get("up", {})},
        units={**common.get("units", {}), **own.get("units", {})},
        n_latent=choose("n_latent"),
        interventions=own.get("interventions"),
        strict_rename="rename" in own,
        # A word about all files: some may lack the column.
        strict_ignore=given.get("ignore") is None and "ignore" in own,
        reduction=given.get("reduction"),
    )
