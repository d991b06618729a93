"""The client that every way of reading the same rows must give."""

import pytest

from .tables import client_of, regimes_of


@pytest.fixture
def reference():
    return client_of(regimes_of())
