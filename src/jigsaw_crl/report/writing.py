"""The one-file page, made of template, style, script and data.

Its content security policy allows the style and the script in the page, by their hashes, and
nothing else. The template escapes all text; data are JSON in a block that browsers do not execute.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from jigsaw_crl.assembly import GlobalOrder
from jigsaw_crl.assembly.effects import UNEQUAL
from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.files import check_output, write_text
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.evidence.effects import INTERVAL
from jigsaw_crl.report.certificates import pack, pack_certificates
from jigsaw_crl.report.contents import Contents, client_log_odds, describe
from jigsaw_crl.report.drawing import Edge
from jigsaw_crl.report.layout import signed
from jigsaw_crl.result.exports import order_csv, to_graphml
from jigsaw_crl.result.folder import is_report
from jigsaw_crl.result.result import Result

__all__ = ["render_report", "write_report"]

SCRIPTS = (
    "data.js",
    "effects.js",
    "why.js",
    "diagram.js",
    "cells.js",
    "matrix.js",
    "table.js",
    "evidence.js",
    "whatif.js",
    "start.js",
)
# Evidence in hundredths as int16; the ends of the range mean certainty and no statement.
HUNDREDTHS, SURE, SILENT = 100.0, 32_000, -32_768
# The codes of `order.verdicts + 1`.
EDGE_CODES = {"undetermined": 0, "not direct": 1, "direct": 2}


def write_report(result: Result, path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write the one-file HTML report, and return its path.

    An existing file that is no report is overwritten with `force` only.
    """
    target = Path(path)
    check_output(target, is_report, force=force, what="a report of this package")
    return write_text(target, render_report(result))


def render_report(result: Result) -> str:
    """The page as text.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> result = jc.recover(jc.simulate.setting("A", 0).clients())
    >>> page = render_report(result)
    >>> page[:15], "http://" in page.replace("http://www.w3.org/2000/svg", "")
    ('<!doctype html>', False)
    """
    contents = describe(result)
    style, script = _asset("style.css"), _script()
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            c=contents,
            result=result,
            order=result.order,
            policy=policy,
            style=style,
            script=script,
            data=_as_json(_data(contents)),
        )
    )


def _data(contents: Contents) -> dict[str, Any]:
    """The data that the page's script needs."""
    order = contents.result.order
    yes, no = order.said.counts
    off = order.probabilities
    table = b"".join(
        [
            (order.verdicts + 1).astype(np.uint8).tobytes(),
            np.clip(yes, 0, 255).astype(np.uint8).tobytes(),
            np.clip(no, 0, 255).astype(np.uint8).tobytes(),
            # Not rounded, so that the page rounds as certificates do.
            (off * 10_000).astype("<f4").tobytes(),
        ]
    )
    layers = contents.diagram.layers
    across = [chip.x for chip in contents.diagram.chips]
    layered = sorted(range(len(order.labels)), key=lambda i: (layers[i], across[i]))
    return {
        "mode": order.mode,
        "labels": list(order.labels),
        "layered": layered,
        "table": pack(table),
        "certificates": pack_certificates(order),
        "clients": [
            {
                "name": claims.client,
                "members": claims.members.tolist(),
                "stance": pack((claims.stance + 1).astype(np.uint8).tobytes()),
                "evidence": pack(_hundredths(client_log_odds(order, k))),
            }
            for k, claims in enumerate(order.said.claims)
        ],
        "pooled": pack(_hundredths(order.evidence)) if order.mode == "evidence" else None,
        "rests": _rests(order),
        "bounds": pack(_floats(order.table.bounds.value) + _bytes(order.table.bounds.in_sd)),
        "effects": _effects(order),
        "files": {
            "order.csv": pack(order_csv(order).encode()),
            "hasse.graphml": pack(to_graphml(order).encode()),
        },
    }


def _rests(order: GlobalOrder) -> list[tuple[int, int]]:
    """Pairs that rest on one client, as their place in the table and the client's number."""
    number = {f.client: k for k, f in enumerate(order.fragments)}
    p = len(order.labels)
    return [
        (order.index(a) * p + order.index(d), number[client])
        for (a, d), client in order.rests_on.items()
    ]


def _effects(order: GlobalOrder) -> dict[str, Any] | None:
    """Total and direct effects, over all sites and by site; None without hard interventions."""
    effects, direct = order.effects, order.direct_effects
    if effects is None or direct is None:
        return None
    p = len(order.labels)
    verdicts = [[EDGE_CODES[direct.verdict(a, d)] for d in range(p)] for a in range(p)]
    sites = []
    for k, claims in enumerate(order.said.claims):
        own = np.ix_(claims.members, claims.members)
        value = effects.by_site.value[k][own]
        if not np.isnan(value).all():
            parts = _floats(value), _floats(effects.by_site.error[k][own])
            sites.append([k, pack(b"".join(parts) + _bytes(effects.set_aside[k][own]))])
    total = effects.estimate, effects.error, effects.heterogeneity
    return {
        "interval": INTERVAL,
        "unequal": UNEQUAL,
        "oriented": effects.oriented.tolist(),
        "total": pack(b"".join(_floats(table) for table in total)),
        "direct": pack(
            _floats(direct.weight)
            + _floats(direct.error)
            + _bytes(np.array(verdicts))
            + _bytes(direct.rests_on_open)
        ),
        "sites": sites,
    }


def _floats(table: FloatArray) -> bytes:
    return table.astype("<f4").tobytes()


def _bytes(table: npt.NDArray[Any]) -> bytes:
    return table.astype(np.uint8).tobytes()


def _hundredths(log_odds: FloatArray) -> bytes:
    """Log-odds as int16, row by row."""
    hundredths = np.round(np.nan_to_num(log_odds, posinf=0, neginf=0) * HUNDREDTHS)
    out = np.clip(hundredths, 1 - SURE, SURE - 1)
    out = np.where(np.isposinf(log_odds), SURE, np.where(np.isneginf(log_odds), -SURE, out))
    return np.where(np.isnan(log_odds), SILENT, out).astype("<i2").tobytes()


# -- assets ---------------------------------------------------------------------------------------


@cache
def _asset(name: str) -> str:
    return (files("jigsaw_crl.report") / "page" / name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    """The scripts inside one function, so that they define no globals."""
    parts = "\n".join(_asset(name) for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}\n}})();\n'


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _as_json(data: dict[str, Any]) -> Any:
    """JSON without angle brackets and ampersands, so that it cannot end its block."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Only the package's own files are marked as safe.
    environment.filters["own_file"] = Markup
    environment.filters["px"] = lambda value: f"{value:.1f}"
    environment.filters["ticks"] = _ticks
    environment.filters["pluralise"] = pluralise
    environment.filters["edge_class"] = _edge_class
    environment.filters["signed"] = signed
    environment.filters["thousands"] = lambda value: f"{value:,}"
    return environment


def _edge_class(edge: Edge) -> str:
    if edge.weight is None:
        return ""
    return f" {'direct' if edge.weight.decided else 'maybe'} {edge.weight.sign}"


def _ticks(text: str) -> Any:
    """Escaped text, with the parts between backticks as code."""
    parts = [escape(part) for part in text.split("`")]
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if i % 2 else part for i, part in enumerate(parts)
    )
