"""Sphinx configuration. `make docs` builds the site without network access; warnings are errors."""

from __future__ import annotations

from jigsaw_crl import __version__

project = "jigsaw-crl"
author = "The jigsaw-crl developers"
copyright = "The jigsaw-crl developers"
release = version = __version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
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
