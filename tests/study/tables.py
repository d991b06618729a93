"""The rows of a small client, as a table, and what makes two clients the same."""

from __future__ import annotations

import numpy as np
import pandas as pd

import jigsaw_crl as jc
from jigsaw_crl.study import read_one


def regimes_of(n: int = 200, d: int = 4, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        r: rng.normal(size=(n + i, d)) * (1 + i) for i, r in enumerate(["control", "pump", "valve"])
    }


def frame_of(regimes: dict[str, np.ndarray]) -> pd.DataFrame:
    rows = np.vstack(list(regimes.values()))
    frame = pd.DataFrame(rows, columns=[f"x{i + 1}" for i in range(rows.shape[1])])
    frame["regime"] = np.repeat(list(regimes), [len(x) for x in regimes.values()])
    return frame


def assert_same(a: jc.Client, b: jc.Client) -> None:
    """Equal to the last bit."""
    assert a.labels == b.labels
    assert a.n_latent == b.n_latent
    assert a.n_samples == b.n_samples
    regimes = [(a.control, b.control)]
    for label in a.labels:
        regimes += zip(a.interventions[label], b.interventions[label], strict=True)
    for m, other in regimes:
        np.testing.assert_array_equal(m.mean, other.mean)
        np.testing.assert_array_equal(m.covariance, other.covariance)
        np.testing.assert_array_equal(m.fourth, other.fourth)


def client_of(regimes: dict[str, np.ndarray], name: str = "lab-1") -> jc.Client:
    labelled = {label: rows for label, rows in regimes.items() if label != "control"}
    return jc.Client.from_samples(name, observational=regimes["control"], interventions=labelled)


def read_with_findings(path, **asked):
    """A client and the findings from reading it."""
    one = read_one(path, **asked)
    return one.clients[0], list(one.findings)
