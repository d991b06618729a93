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
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from jigsaw_crl.base.documents import Number, WholeNumber
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import read_file
from jigsaw_crl.base.knowledge import Knowledge
from jigsaw_crl.base.labels import normal_label
from jigsaw_crl.base.problems import as_one, shortened
from jigsaw_crl.base.text import did_you_mean
from jigsaw_crl.client.client import CONTROL
from jigsaw_crl.moments.preparing import MOST_TRIMMED, RowOptions

MANIFEST = "study.toml"
LARGEST_MANIFEST = 1 << 24

# The reader of each format, imported when it is used. Tables in memory have no ending.
READERS = {
    **dict.fromkeys((".csv", ".csv.gz", ".tsv", ".tsv.gz"), "jigsaw_crl.study.delimited:csv_table"),
    ".parquet": "jigsaw_crl.study.arrow:parquet_table",
    ".npz": "jigsaw_crl.study.moments_file:read_npz",
    ".h5ad": "jigsaw_crl.study.h5ad:h5ad_table",
    ".xlsx": "jigsaw_crl.study.arrow:excel_table",
    "": "jigsaw_crl.study.arrow:frame_table",
}
ENDINGS = tuple(filter(None, READERS))
# Tables whose entries join those above all clients; other fields replace them.
_JOINED = ("rename", "up", "units")
# Lists that a caller may pass.
_LISTS = ("ignore", "covariates", "na")


_Kind = Literal["soft", "hard"]
# A single text stands for a list of one.
_Texts = Annotated[list[str], BeforeValidator(lambda x: [x] if isinstance(x, str) else x)]


class _Common(BaseModel):
    """Fields that stand above all tables or in that of a client; each shows what to write."""

    # A number where a text is expected is that text: regimes are often numbers.
    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

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
    labels: Annotated[_Texts, AfterValidator(lambda own: [normal_label(x) for x in own])] = Field(
        [], description='labels = ["LABEL"]'
    )
    clients: dict[str, _Client] = Field({}, description='[clients.NAME] and below it file = "FILE"')
    knowledge: dict[str, Any] = Field(
        {}, description='[knowledge] and below it ancestor = ["LABEL -> LABEL"]'
    )


# What each field looks like.
TOP_FIELDS, CLIENT_FIELDS = (
    {name: field.description or "" for name, field in table.model_fields.items()}
    for table in (_Top, _Client)
)


class Reading(_Client):
    """How the table of one client is read: the fields of its manifest, and some of its own.

    Parameters
    ----------
    path : Path or None
        The file; None for a table in memory.
    frame : table
        The table in memory.
    name : str
        The client's name as it is asked for; empty for that of its file.
    client : str
        The client's name: by default that of its file, without the ending.
    ending : str
        Which of the endings that are read the file has; empty if it has another.
    named : mapping of str to str
        The columns of the "regime", "batch" and "group", where there are such.
    handle, size : BufferedReader or None, int
        The open file and its bytes; None and 0 for a folder or a table in memory.
    strict_rename : bool
        Refuse a renamed value that does not occur.
    reduction : Reduction or None
        Directions along which rows are read, if they are known before.
    cluster : str, distributed.Client or None
        Dask cluster whose workers read the files of a folder.
    problems : list of InputError
        What is wrong and was passed over, to find further problems.
    """

    path: Path | None = None
    frame: Any = None
    name: str = ""
    client: str = ""
    ending: str = ""
    named: dict[str, str] = Field(default_factory=dict)
    handle: Any = None
    size: int = 0
    strict_rename: bool = False
    reduction: Any = None
    cluster: Any = None
    problems: list[Any] = Field(default_factory=list)

    @classmethod
    def of(cls, path: Path | None, *tables: Mapping[str, Any], **asked: Any) -> Self:
        """The reading of a file as tables of a manifest say, later ones first, and the caller.

        None leaves a field open, and so does an empty list of the caller.
        """
        lists = {key: [str(x) for x in asked[key]] or None for key in _LISTS if key in asked}
        joined: dict[str, Any] = {"path": path}
        for table in (*tables, {**asked, **lists}):
            for key, value in table.items():
                if value is not None:
                    joined[key] = {**joined.get(key, {}), **value} if key in _JOINED else value
        made = cls.model_construct(**joined)
        # It checks its values.
        RowOptions(made.trim, made.missing, batched=bool(made.batch))
        file, folder = (path.name, os.path.isdir(path)) if path is not None else ("", False)
        ends = (x for x in ENDINGS if file.casefold().endswith(x))
        made.ending = ".parquet" if folder else max(ends, key=len, default="")
        stem = file if folder else file[: len(file) - len(made.ending)]
        made.client = made.name or stem.removesuffix(".moments") or stem
        regime = made.regime or ("perturbation" if made.ending == ".h5ad" else "regime")
        columns = {"regime": regime, "batch": made.batch, "group": made.group}
        made.named = {what: column for what, column in columns.items() if column}
        return made

    def fail(self, what: str, remedy: str, regime: str | None = None) -> InputError:
        """The error about this table; a name in it may be of any length."""
        what = shortened(what, 2_000)
        return InputError(what, remedy, client=self.client, regime=regime, path=self.path)

    def note(self, what: str, remedy: str, regime: str | None = None) -> None:
        """Keep a problem; reading goes on, as if it were corrected, to find further ones."""
        self.problems.append(self.fail(what, remedy, regime))


def read_manifest(path: Path) -> dict[str, Any]:
    """The fields of a manifest, checked; the study's name is by default that of the folder."""
    fail = partial(InputError, path=path)
    try:
        document = tomllib.loads(read_file(path, LARGEST_MANIFEST, "manifest").decode("utf-8"))
    except (ValueError, RecursionError) as error:
        # Also for an integer of more digits than Python turns into a number.
        what = f"the manifest is not valid TOML ({str(error)[:200]})"
        raise fail(what, 'Texts stand in quotes, as in a = "b".') from None
    faults, fields = dict[tuple[Any, ...], bool](), dict[str, Any]()
    try:
        fields = _Top.model_validate(document).model_dump(exclude_unset=True)
    except ValidationError as error:
        for fault in error.errors(include_url=False, include_context=False):
            place = fault["loc"][:3] if fault["loc"][0] == "clients" else fault["loc"][:1]
            faults.setdefault(place, fault["type"] == "extra_forbidden")
    problems = [fail(*_explained(document, place, unknown)) for place, unknown in faults.items()]
    if isinstance(document.get("knowledge"), dict):
        try:
            fields["knowledge"] = Knowledge.from_document(document["knowledge"])
        except InputError as error:
            problems.append(error.located(path=path))
    if problems:
        raise as_one(problems, path=path)
    return {"name": path.parent.resolve().name, **fields}


def _explained(document: dict[str, Any], place: tuple[Any, ...], unknown: bool) -> tuple[str, str]:
    """What is wrong with a field of the manifest, and what to write."""
    value: Any = document
    for part in place:
        value = value[part]
    key, known, other, where = place[-1], TOP_FIELDS, CLIENT_FIELDS, "the manifest"
    if len(place) == 3:
        known, other, where = CLIENT_FIELDS, TOP_FIELDS, f"clients.{place[1]}"
    elif len(place) == 2:
        remedy = f'Write [clients.{key}] and below it file = "FILE".'
        return f"clients.{key} is not a table", remedy
    if not unknown:
        text = str(value).lower() if isinstance(value, bool) else repr(value)
        return f"{where}: the field {key!r} is {shortened(text, 60)}", f"Write {known[key]}."
    fields = f"The fields are {', '.join(known)}."
    if key in other:
        above = "below [clients.NAME]" if other is CLIENT_FIELDS else "above all tables"
        remedy = f"It stands {above}: {other[key]}."
    elif isinstance(value, dict) and known is TOP_FIELDS:
        remedy = f"If it is a client, write [clients.{key}]. {fields}"
    else:
        remedy = f"{did_you_mean(key.replace('-', '_'), known)} {fields}".strip()
    return f"{where} has an unknown field {key!r}", remedy
