"""A small valid table, and ways to write it."""

import re
from pathlib import Path

import numpy as np
import pandas as pd


def good(
    rows: int = 20, labels: tuple[str, ...] = ("a", "b"), d: int = 3, seed: int = 7
) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    regimes = ["control", *labels]
    frame = pd.DataFrame(
        rng.normal(size=(rows * len(regimes), d)), columns=[f"x{i + 1}" for i in range(d)]
    )
    frame.insert(0, "regime", np.repeat(regimes, rows))
    return frame


def csv(frame: pd.DataFrame, path: Path) -> Path:
    frame.to_csv(path, index=False)
    return path


def parquet(frame: pd.DataFrame, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(path, index=False)
    return path


def claim_page(path: Path) -> Path:
    """Let the first page of a Parquet file claim to take two gigabytes of it."""
    data = path.read_bytes()
    # A page begins with its kind, its size, and its compressed size: numbers of several bytes, of
    # which the last is below 128.
    size = re.match(rb"\x15.\x15[\x80-\xff]*.\x15([\x80-\xff]*.)", data[4:], re.DOTALL)
    assert size is not None
    path.write_bytes(data[: 4 + size.start(1)] + b"\xfe\xff\xff\xff\x0f" + data[4 + size.end(1) :])
    return path
