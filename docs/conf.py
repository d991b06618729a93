"""Sphinx configuration. `make docs` builds the site without network access; warnings are errors."""

from __future__ import annotations

import json
from typing import Any

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser

from jigsaw_crl import __version__

project = "jigsaw-crl"
author = "The jigsaw-crl developers"
copyright = "The jigsaw-crl developers"
release = version = __version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown", ".ipynb": "notebook"}
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = False
# Text in single backquotes in a docstring is code: a formula, a name or a value.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "furo"
html_title = f"jigsaw-crl {release}"
html_static_path: list[str] = []
html_show_copyright = False


class NotebookParser(MystParser):
    """Shows a notebook with the output that is stored in it; nothing is run."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        cells = json.loads(inputstring)["cells"]
        super().parse("\n\n".join(map(_as_markdown, cells)), document)


def _as_markdown(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    return "\n\n".join([_fenced("python", source), *map(_output, cell["outputs"])])


def _output(output: dict[str, Any]) -> str:
    if "text" in output:
        return _fenced("text", "".join(output["text"]))
    data = output["data"]
    if "text/html" in data:
        return _fenced("{raw} html", "".join(data["text/html"]))
    return _fenced("text", "".join(data["text/plain"]))


def _fenced(kind: str, text: str) -> str:
    return f"````{kind}\n{text.rstrip()}\n````"


def setup(app: Any) -> None:
    app.add_source_parser(NotebookParser)
