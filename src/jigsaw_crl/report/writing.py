"""The one-file page, made of template, style, script and data.

Its content security policy allows the style and the script in the page, by their hashes, and
nothing else. The template escapes all text; data are JSON in a block that browsers do not execute.
"""

from __future__ import annotations

import base64
import hashlib
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
from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.files import check_output, write_text
from jigsaw_crl.base.text import pluralise, signed
from jigsaw_crl.evidence.effects import INTERVAL
from jigsaw_crl.report.contents import describe
from jigsaw_crl.report.drawing import Edge, Picture
from jigsaw_crl.report.pairs import LEFT_OUT, pack, pack_texts
from jigsaw_crl.result.folder import graphml, is_report, order_csv
from jigsaw_crl.result.result import Result

__all__ = ["render_report", "svg", "write_report"]

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
        _templates()
        .get_template("report.html.j2")
        .render(
            c=contents,
            result=result,
            order=result.order,
            policy=policy,
            style=style,
            script=script,
            data=_data(result, contents["diagram"], contents["title"]),
        )
    )


def _data(result: Result, diagram: Picture, title: str) -> dict[str, Any]:
    """The data that the page's script needs."""
    order, pairs = result.order, result.order.table
    p, n = len(order.labels), len(order.fragments)
    total, error = np.full((2, p, p), np.nan)
    sites = np.full((3, n, p, p), np.nan)
    for _, effects, some in order.known_effects:
        total[some], error[some] = effects.estimate[some], effects.error[some]
        by_site = effects.by_site.value, effects.by_site.error, effects.set_aside
        sites[:, :, some] = [table[:, some] for table in by_site]
    table: dict[str, npt.NDArray[Any]] = {
        "verdict": pairs.verdict + 1,
        "yes": pairs.yes,
        "no": pairs.no,
        "probability": pairs.probability,
        "evidence": pairs.evidence if order.mode == "evidence" else np.full((p, p), np.nan),
        "rests": pairs.rests_on,
        "contested": pairs.contested,
        "total": total,
        "error": error,
    }
    across = [shape.x for shape in diagram.shapes]
    return {
        "mode": order.mode,
        "labels": list(order.labels),
        "layered": sorted(range(p), key=lambda i: (diagram.layers[i], across[i])),
        "columns": list(table),
        "table": _tables(*table.values()),
        "texts": pack_texts(order),
        "left_out": LEFT_OUT,
        "clients": [_client(order, k, sites[:, k]) for k in range(n)],
        "interval": INTERVAL if order.known_effects else None,
        "effect": next((kind for kind, _, _ in order.known_effects), ""),
        "files": {
            "order.csv": pack(order_csv(order).encode()),
            "hasse.graphml": pack(graphml(order.hasse()).encode()),
            "diagram.svg": pack(svg(diagram, title).encode()),
        },
    }


def _client(order: GlobalOrder, k: int, sizes: FloatArray) -> dict[str, Any]:
    """What one client brings: stance and evidence, and its effects if it measured any."""
    fragment, claims = order.panel.fragments[k], order.said.claims[k]
    if claims.bayes is not None:
        brought = np.where(claims.says, claims.log_factor, np.nan)
        np.fill_diagonal(brought, np.nan)
    else:
        rows = [fragment.index(order.labels[i]) for i in claims.members]
        brought = fragment.evidence[np.ix_(rows, rows)]
    tables, own = [claims.stance, brought], np.ix_(claims.members, claims.members)
    if not np.isnan(sizes[0][own]).all():
        tables += [table[own] for table in sizes]
    members = claims.members.tolist()
    return {"name": claims.client, "members": members, "table": _tables(*tables)}


def _tables(*tables: npt.NDArray[Any]) -> str:
    """Tables as floats, row by row and one after the other."""
    return pack(b"".join(table.astype("<f8").tobytes() for table in tables))


@cache
def _script() -> str:
    """The scripts inside one function, so that they define no globals."""
    parts = "\n".join(_asset(name) for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}\n}})();\n'


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


# -- templates ------------------------------------------------------------------------------------


@cache
def _asset(name: str) -> str:
    """The text of one of the page's own files."""
    return (files("jigsaw_crl.report") / "page" / name).read_text(encoding="utf-8")


def svg(picture: Picture, title: str = "") -> str:
    """A picture as SVG that needs no style sheet, under its title."""
    return _templates().get_template("picture.svg.j2").render(picture=picture, title=title)


@cache
def _templates() -> Environment:
    """The templates; they escape all text."""
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
