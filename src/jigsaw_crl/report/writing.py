"""The one-file page, made of template, style, script and data; and what notebooks show.

The page's content security policy allows the style and the script in the page, by their hashes, and
nothing else. The template escapes all text; data are JSON in a block that browsers do not execute.
"""

from __future__ import annotations

import base64
import hashlib
import os
from functools import cache
from html import escape as escaped
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from jigsaw_crl.assembly.evidence import SPEAKS
from jigsaw_crl.assembly.order import GlobalOrder
from jigsaw_crl.base.files import check_output, write_text
from jigsaw_crl.base.text import pluralise, signed
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.report.contents import describe
from jigsaw_crl.report.drawing import MANY, Picture, draw_graph, draw_piece
from jigsaw_crl.report.pairs import page_data
from jigsaw_crl.result.folder import is_report
from jigsaw_crl.result.result import Result

SCRIPTS = (
    *("data", "effects", "why", "diagram", "cells"),
    *("matrix", "table", "evidence", "whatif", "start"),
)
# Lines about a result in a notebook; the report has all of them.
MOST_LINES = 12


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
    contents, style = describe(result), _asset("style.css")
    # Inside one function, so that the scripts define no globals.
    parts = "\n".join(_asset(f"{name}.js") for name in SCRIPTS)
    script = f'(() => {{\n"use strict";\n{parts}\n}})();\n'
    diagram = contents["diagram"]
    return _template("report.html.j2").render(
        c=contents,
        result=result,
        order=result.order,
        policy=f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'",
        style=style,
        script=script,
        data=page_data(result, diagram, svg(diagram, contents["title"])),
    )


def svg(picture: Picture, title: str = "") -> str:
    """A picture as SVG that needs no style sheet, under its title."""
    return _template("picture.svg.j2").render(picture=picture, title=title)


# -- notebooks ------------------------------------------------------------------------------------


def order_html(order: GlobalOrder) -> str:
    """The diagram of the order under what its repr says."""
    if len(order.labels) > 2 * MANY:
        return f"<div>{escaped(repr(order))}. Too large to draw here: write the report.</div>"
    return f"<div>{escaped(repr(order))}{svg(draw_graph(order))}</div>"


def fragment_html(fragment: Fragment) -> str:
    """A client's blocks and districts."""
    head = escaped(f"{fragment!r}: {fragment.outcome}")
    if len(fragment.labels) > 2 * MANY:
        return f"<div>{head}. Too large to draw here.</div>"
    with np.errstate(invalid="ignore"):
        said = np.argwhere(fragment.evidence > SPEAKS).tolist()
    says = {(fragment.labels[i], fragment.labels[j]) for i, j in said}
    return f"<div>{head}{svg(draw_piece(fragment, says))}</div>"


def result_html(result: Result) -> str:
    """The order, what was left out and what was found."""
    told = [result.summary, *(f"left out: {part}" for part in result.left_out)]
    told += [str(finding) for finding in result.diagnostics]
    if len(told) > MOST_LINES:
        told[MOST_LINES:] = [f"and {len(told) - MOST_LINES} more"]
    lines = "".join(f"<p>{escaped(line)}</p>" for line in told)
    return f"<div>{order_html(result.order)}{lines}</div>"


# -- templates ------------------------------------------------------------------------------------


@cache
def _asset(name: str) -> str:
    """The text of one of the page's own files."""
    return (files("jigsaw_crl.report") / "page" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


@cache
def _template(name: str) -> Template:
    """A template; it escapes all text but the package's own files."""
    environment = Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "own_file": Markup,
        "px": lambda value: f"{value:.1f}",
        "thousands": lambda value: f"{value:,}",
        "pluralise": pluralise,
        "signed": signed,
        "ticks": _ticks,
    }
    return environment.get_template(name)


def _ticks(text: str) -> Any:
    """Escaped text, with the parts between backticks as code."""
    parts = [escape(part) for part in text.split("`")]
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if i % 2 else part for i, part in enumerate(parts)
    )
