"""The manifest of a study, `study.toml`: its fields, and what to write in place of a wrong one.

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
    ignore = ["operator"]           # columns that are not features; also per client
    labels = ["pump", "valve"]      # the permitted labels
    interventions = "hard"          # or "soft" (default), or a table; also per client

    [knowledge]                     # what is known before the data
    tiers = [["pump"], ["valve", "flow"], ["tank"]]   # nothing acts on an earlier tier
    ancestor = ["pump -> tank"]
    not_ancestor = ["valve -> flow"]

    [rename]                        # regime value -> label; also per client
    "pump (5 V)" = "pump"

    [clients.lab-1]
    file = "data/first lab.csv"     # relative to the manifest
    n_latent = 7
    interventions = {pump = "soft"}   # this client's word counts before the one above
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import read_file
from jigsaw_crl.base.knowledge import Knowledge
from jigsaw_crl.base.text import did_you_mean
from jigsaw_crl.moments.trimming import check_trim
from jigsaw_crl.study.problems import Problems

__all__ = ["MANIFEST", "read_manifest"]

MANIFEST = "study.toml"
LARGEST_MANIFEST = 1 << 24
# What a field looks like; its type is that of the value.
_COMMON: dict[str, str] = {
    "regime": 'regime = "COLUMN"',
    "control": 'control = "VALUE"',
    "batch": 'batch = "COLUMN"',
    "group": 'group = "COLUMN"',
    "trim": "trim = 0.05",
    "missing": 'missing = "drop", missing = "em" or missing = "refuse"',
    "na": 'na = ["VALUE"]',
    "ignore": 'ignore = ["COLUMN"]',
    "rename": '[rename] and below it "VALUE" = "LABEL"',
    "interventions": 'interventions = "hard" or "soft", or a table LABEL = "hard"',
}
_TOP = {
    **_COMMON,
    "name": 'name = "NAME"',
    "labels": 'labels = ["LABEL"]',
    "clients": '[clients.NAME] and below it file = "FILE"',
    "knowledge": '[knowledge] and below it ancestor = ["LABEL -> LABEL"]',
}
_CLIENT = {**_COMMON, "file": 'file = "FILE"', "n_latent": "n_latent = 7"}
# Other words for fields, by the field that is meant.
_MEANT = {
    "missing": ("drop", "dropna", "drop_na", "drop_missing", "drop_missing_rows"),
    "na": ("nan", "na_values", "null_values", "missing_values"),
    "ignore": ("exclude", "skip", "drop_columns", "ignore_columns"),
    "regime": ("regimes", "regime_column", "arm", "condition", "perturbation", "intervention"),
    "control": ("controls", "control_value", "baseline"),
    "n_latent": ("latents", "latent", "n_latents"),
}


def read_manifest(path: Path) -> dict[str, Any]:
    """The fields of a manifest, checked; the study's name is by default that of the folder."""
    fail = partial(InputError, path=path)
    try:
        document = tomllib.loads(read_file(path, LARGEST_MANIFEST, "manifest").decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise fail(
            f"the manifest is not valid TOML ({error})", 'Texts stand in quotes, as in a = "b".'
        ) from None
    problems = Problems()
    _check_table(document, _TOP, "the manifest", fail, problems)
    clients = document.get("clients", {})
    for name, table in clients.items() if isinstance(clients, dict) else ():
        if isinstance(table, dict):
            _check_table(table, _CLIENT, f"clients.{name}", fail, problems)
        else:
            remedy = f'Write [clients.{name}] and below it file = "FILE".'
            problems.note(fail(f"clients.{name} is not a table", remedy))
    if isinstance(document.get("knowledge"), dict):
        try:
            document["knowledge"] = Knowledge.from_document(document["knowledge"])
        except InputError as error:
            problems.note(error.located(path=path))
    problems.raise_all(path=path)
    return {"name": path.parent.resolve().name, **document}


def _check_table(
    table: Mapping[str, Any],
    known: Mapping[str, str],
    where: str,
    fail: partial[InputError],
    problems: Problems,
) -> None:
    for key, value in table.items():
        if key not in known:
            what = f"{where} has an unknown field {key!r}"
            problems.note(fail(what, _instead_of_unknown(key, value, known)))
        elif not _fits(key, value):
            what = f"{where}: the field {key!r} is {_shown(value)}"
            problems.note(fail(what, f"Write {_corrected(key, value) or known[key]}."))


def _fits(key: str, value: Any) -> bool:
    """Is this a value that the field may have?"""
    if key == "interventions":
        kinds = value.values() if isinstance(value, dict) else [value]
        return all(kind in ("soft", "hard") for kind in kinds)
    if key in ("ignore", "labels", "na"):
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if key == "rename":
        return isinstance(value, dict) and all(isinstance(x, str) for x in value.values())
    if key == "missing":
        return value in ("refuse", "drop", "em")
    if key == "trim":
        return _is_share(value)
    kind: type = {"clients": dict, "knowledge": dict, "n_latent": int}.get(key, str)
    return isinstance(value, kind) and not isinstance(value, bool)


def _is_share(value: Any) -> bool:
    try:
        check_trim(value)
    except (InputError, TypeError):
        return False
    return isinstance(value, int | float) and not isinstance(value, bool)


def _corrected(key: str, value: Any) -> str:
    """What the user probably meant by a wrong value; empty if that is not clear."""
    if key == "missing" and (value is True or value == "true"):
        return 'missing = "drop"'
    if key == "missing" and (value is False or value == "false"):
        return 'missing = "refuse", or leave it out'
    if key in ("ignore", "labels", "na") and isinstance(value, str):
        return f'{key} = ["{value}"]'
    plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    if key in ("regime", "control", "batch", "group", "name", "file") and plain:
        return f'{key} = "{value}"'
    if key == "n_latent" and isinstance(value, str) and value.isdigit():
        return f"n_latent = {value}"
    return ""


def _instead_of_unknown(key: str, value: Any, known: Mapping[str, str]) -> str:
    """What to write in place of a field that does not exist."""
    folded = key.strip().casefold().replace("-", "_")
    other = _TOP if known is _CLIENT else _CLIENT
    for field, words in _MEANT.items():
        if folded in words and field in known:
            return f"Write {_corrected(field, value) or known[field]}."
        if folded in words and field in other:
            key = field
    if key in other:
        place = "below [clients.NAME]" if other is _CLIENT else "above all tables"
        return f"It stands {place}: {other[key]}."
    if isinstance(value, dict) and known is _TOP:
        return f"If it is a client, write [clients.{key}]. The fields are {', '.join(known)}."
    near = did_you_mean(folded, known)
    return f"{near} The fields are {', '.join(known)}.".strip()


def _shown(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
