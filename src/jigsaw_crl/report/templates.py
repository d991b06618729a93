"""The templates of the page and of pictures, and what they use."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from jigsaw_crl.base.text import pluralise, signed
from jigsaw_crl.report.drawing import Edge, Picture

__all__ = ["asset", "render", "svg"]


@cache
def asset(name: str) -> str:
    """The text of one of the package's own files."""
    return (files("jigsaw_crl.report") / "page" / name).read_text(encoding="utf-8")


def render(name: str, **values: Any) -> str:
    """A template with values; all text is escaped."""
    return _environment().get_template(name).render(**values)


def svg(picture: Picture) -> str:
    """A picture as SVG that needs no style sheet."""
    return render("picture.svg.j2", picture=picture)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(asset),
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
