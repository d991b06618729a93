"""Every malformed input leads to exit code 2 and one line that says what, where and what to do;
nothing is printed on stdout, written or changed."""

import tracemalloc

import pytest

MEGABYTE = 1 << 20


@pytest.fixture
def little_memory():
    """Fail if more than 120 MB are allocated at a time."""
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 120 * MEGABYTE
