"""Methods whose work is done by a package above their own."""

from __future__ import annotations

from inspect import getdoc, signature

import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.faces import FACES, face

OWNERS = {
    "client": jc.Client,
    "fragment": jc.Fragment,
    "order": jc.GlobalOrder,
    "result": jc.Result,
}


@pytest.mark.parametrize("name", FACES)
def test_a_face_names_a_function_that_exists(name):
    module, function = FACES[name].split(":")
    assert face(name).__name__ == function
    assert face(name).__module__ == module


@pytest.mark.parametrize("name", [n for n in FACES if not n.endswith(".html")])
def test_the_method_of_a_face_shows_its_signature_and_docstring(name):
    owner, method = name.split(".")
    shown = getattr(OWNERS[owner], method)
    assert getdoc(shown)
    assert set(signature(shown).parameters) - {"self"} <= set(signature(face(name)).parameters)


@pytest.mark.parametrize("owner", ["fragment", "order", "result"])
def test_a_face_for_notebooks_is_a_method(owner):
    assert callable(OWNERS[owner]._repr_html_)
