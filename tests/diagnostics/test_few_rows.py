"""Regimes of few Gaussian rows beside a large control are sound data."""

from __future__ import annotations

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.diagnostics import check_client


def client(seed: int, n: int, *, latents: int = 12, name: str = "lab") -> jc.Client:
    rng = np.random.default_rng([seed, n])
    G = np.linalg.qr(rng.normal(size=(latents, latents)))[0]
    step = 3.0 * np.eye(latents)
    rows = {f"z{i}": (rng.normal(size=(n, latents)) + step[i]) @ G for i in range(latents)}
    control = rng.normal(size=(1500, latents)) @ G
    return jc.Client.from_samples(name, observational=control, interventions=rows)


@pytest.mark.parametrize("n", [8, 12, 20, 30, 45, 60])
def test_few_gaussian_rows_are_neither_outliers_nor_several_targets(n):
    found = [f.check for seed in range(5) for f in check_client(client(seed, n)).findings]
    said = set(found) - {"unseen-latents", "drifting-control"}
    assert said <= ({"weak-intervention"} if n <= 12 else set())


def test_a_copy_among_small_regimes_is_still_found():
    whole = client(0, 12)
    twice = {**whole.interventions, "z1": whole.interventions["z0"]}
    report = check_client(jc.Client.from_moments("lab", control=whole.control, interventions=twice))
    (copy,) = [f for f in report.findings if f.check == "duplicated-regime"]
    assert copy.regime == "z1"
