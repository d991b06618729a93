"""Closed JSON documents: what a file or a message may hold, checked by pydantic.

Import this module only where documents are read or written: it loads pydantic.
"""

from __future__ import annotations

import codecs
import json
import tomllib
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import read_file

# Neither takes a number written as text, nor a boolean.
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
WholeNumber = Annotated[int, Field(strict=True)]

# Names of fields and values come from the document: characters that an error quotes of one.
_QUOTED, _SAID = 80, 300


def _once(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a JSON text; the parser itself would keep the last of two fields of one name."""
    if len(found := dict(fields)) < len(fields):
        raise ValueError("a field occurs twice")
    return found


def _refuse(word: str) -> None:
    raise ValueError(f"it has no {word}")


class Closed(BaseModel):
    """A part of a document. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Document(Closed):
    """A whole document, read with `from_file`, `from_text` or `from_document`.

    A subclass with fields `format` and `version` declares them first, so that the error for a
    different kind of file says so.
    """

    kind: ClassVar[str]
    """What errors call it, for instance ``"fragment"``."""
    remedy: ClassVar[str]
    """What the user can do about an invalid one."""
    largest_file: ClassVar[int] = 1 << 30
    """A larger file is refused before it is read."""

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read, parse and check a JSON file; raises `InputError`, which names it."""
        return cls.from_text(read_file(path, cls.largest_file, cls.kind), path=path)

    @classmethod
    def from_toml(cls, path: Path) -> Self:
        """Read, parse and check a TOML file; raises `InputError`, which names it."""
        text = read_file(path, cls.largest_file, cls.kind)
        try:
            document = tomllib.loads(text.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"the {cls.kind} is not valid TOML ({error})", cls.remedy, path=path
            ) from None
        return cls.from_document(document, path=path)

    @classmethod
    def from_text(cls, text: str | bytes, *, path: object | None = None) -> Self:
        """Parse and check a JSON text in UTF-8; raises `InputError`, which names `path`."""
        try:
            if isinstance(text, bytes):
                text = text.removeprefix(codecs.BOM_UTF8).decode()
            document = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"the {cls.kind} is not valid JSON ({error})", cls.remedy, path=path
            ) from None
        return cls.from_document(document, path=path)

    @classmethod
    def from_document(cls, document: object, *, path: object | None = None) -> Self:
        """Check a parsed document; the first fault is raised as `InputError`."""
        given = document if isinstance(document, dict) else {}
        fault: Any
        try:
            made = cls.model_validate(document)
            if type(given.get("version", 0)) is int:
                return made
            # Python holds that 1 == 1.0 == True.
            fault = {"type": "int_type", "loc": ("version",), "msg": "It is not a whole number"}
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
        what, remedy = cls._explain(fault, given.get("written_by"))
        client = given.get("client")
        name = client[:_QUOTED] if isinstance(client, str) and client else None
        raise InputError(what, remedy, client=name, path=path)

    @classmethod
    def _explain(cls, fault: Any, writer: object | None) -> tuple[str, str]:
        """The message for one of pydantic's errors, and the remedy."""
        kind = fault["type"]
        place = ".".join(str(part)[:_QUOTED] for part in fault["loc"])[:_QUOTED]
        if place == "format" or (kind == "model_type" and not place):
            return f"this is not a jigsaw-crl {cls.kind}", cls.remedy
        if kind == "literal_error" and place == "version":
            given, known = fault["input"], fault["ctx"]["expected"]
            newer = isinstance(given, int) and given > int(known.split()[-1])
            by = "" if writer is None else f" (written by {str(writer)[:_QUOTED]})"
            return (
                f"the {cls.kind} has format version {repr(given)[:_QUOTED]}{by}, "
                f"this program reads {known}",
                "Upgrade jigsaw-crl." if newer else cls.remedy,
            )
        if kind == "missing":
            return f"the {cls.kind} has no field {place!r}", cls.remedy
        if kind == "extra_forbidden":
            return f"the {cls.kind} has an unknown field {place!r}", cls.remedy
        where = f"the field {place!r} of the {cls.kind}" if place else f"the {cls.kind}"
        said = fault["msg"].removeprefix("Value error, ")[:_SAID]
        return f"{where} is not valid: {said}", cls.remedy
