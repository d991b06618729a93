"""The client that every way of reading the same rows must give."""

import pytest

from .tables import client_of, frame_of, regimes_of


@pytest.fixture
def reference():
    return client_of(regimes_of())


@pytest.fixture
def folder(tmp_path):
    """A folder with a table of one client."""
    frame_of(regimes_of()).to_csv(tmp_path / "lab1.csv", index=False)
    return tmp_path
