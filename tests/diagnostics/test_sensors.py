"""The reason why the noise of each sensor is unknown is the true one."""

from __future__ import annotations

import numpy as np

import jigsaw_crl as jc
from jigsaw_crl.diagnostics import check_client


def said(n: int, features: int, check: str) -> list[str]:
    rng = np.random.default_rng(0)
    G = rng.normal(size=(features, 3))
    size = np.geomspace(0.1, 10, features)

    def rows(gain):
        noise = size * rng.normal(size=(n, features))
        return (rng.normal(size=(n, 3)) * gain) @ G.T + noise

    client = jc.Client.from_samples(
        "lab",
        observational=rows(1),
        interventions={f"z{j}": rows(1 + 3 * np.eye(3)[j]) for j in range(3)},
        n_latent=3,
    )
    found = check_client(client).findings
    return [f"{f.message}. {f.remedy}" for f in found if f.check == check]


def test_few_rows_are_not_called_few_features():
    (few_rows,) = said(11, 30, "uneven-noise")
    assert "no regime counts for 12 rows" in few_rows
    assert "features are too few" not in few_rows
    (enough,) = said(2_000, 30, "uneven-noise")
    assert "each feature is divided by the size of its noise" in enough


def test_a_regime_at_the_edge_of_chance_is_not_told_to_take_as_many_rows_as_it_has():
    at_the_edge = 0
    for size in np.linspace(1.0, 1.5, 40):
        rng = np.random.default_rng(0)
        x0, x1, x2 = (rng.normal(size=(300, 2)) for _ in range(3))
        x1[:, 0] *= size
        client = jc.Client.from_samples(
            "lab", observational=x0, interventions={"pump": x1, "valve": x2 * [1, 4]}
        )
        weak = [f for f in check_client(client).findings if f.check == "weak-intervention"]
        for f in weak:
            more = (1 / max(f.value, 0.1)) ** 2
            at_the_edge += more < 1.1
            assert (f"about {more:.1f} times" in f.message) == (more >= 1.1)
            assert ("times" in f.message) == (more >= 1.1)
    assert at_the_edge


def test_rows_that_cannot_be_trimmed_are_not_told_to_be():
    rng = np.random.default_rng(1)

    def rows(n: int) -> np.ndarray:
        x = rng.normal(size=(n, 40))
        x[0, 3] = 1e4
        return x

    client = jc.Client.from_samples(
        "lab", observational=rng.normal(size=(400, 40)), interventions={"a": rows(60)}
    )
    (found,) = (f for f in check_client(client).findings if f.check == "outliers")
    assert found.regime == "a"
    assert "--trim" not in found.remedy
    assert "--ignore" in found.remedy
