"""The client that every way of reading the same rows must give."""

import pytest

import jigsaw_crl as jc

from .tables import client_of, regimes_of


@pytest.fixture
def reference() -> jc.Client:
    return client_of(regimes_of())
