"""Methods whose work is done by a package above their own."""

from __future__ import annotations

from inspect import getdoc, signature

import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.late_methods import LATE_METHODS, late_method

OWNERS = {
    "client": jc.Client,
    "fragment": jc.Fragment,
    "order": jc.GlobalOrder,
    "result": jc.Result,
}


@pytest.mark.parametrize("name", LATE_METHODS)
def test_a_late_method_names_a_function_that_exists(name):
    module, function = LATE_METHODS[name].split(":")
    assert late_method(name).__name__ == function
    assert late_method(name).__module__ == module


@pytest.mark.parametrize("name", [n for n in LATE_METHODS if not n.endswith(".html")])
def test_a_late_method_shows_its_signature_and_docstring(name):
    owner, method = name.split(".")
    shown = getattr(OWNERS[owner], method)
    assert getdoc(shown)
    assert set(signature(shown).parameters) - {"self"} <= set(
        signature(late_method(name)).parameters
    )
