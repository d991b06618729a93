"""A small valid table, and ways to write it."""

import re

import numpy as np

from ..study.tables import frame_of


def good(rows=20, labels=("a", "b"), seed=7):
    rng = np.random.default_rng(seed)
    return frame_of({regime: rng.normal(size=(rows, 3)) for regime in ("control", *labels)})


def csv(frame, path):
    frame.to_csv(path, index=False)
    return path


def parquet(frame, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(path, index=False)
    return path


def claim_page(path):
    """Let the first page of a Parquet file claim to take two gigabytes of it."""
    data = path.read_bytes()
    # A page begins with its kind, its size, and its compressed size: numbers of several bytes, of
    # which the last is below 128.
    size = re.match(rb"\x15.\x15[\x80-\xff]*.\x15([\x80-\xff]*.)", data[4:], re.DOTALL)
    assert size is not None
    path.write_bytes(data[: 4 + size.start(1)] + b"\xfe\xff\xff\xff\x0f" + data[4 + size.end(1) :])
    return path
