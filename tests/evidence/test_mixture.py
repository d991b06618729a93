"""The mixture says what the plain specification says."""

from __future__ import annotations

import numpy as np
import pytest

from jigsaw_crl.evidence import mixture
from jigsaw_crl.evidence.hypotheses import HYPOTHESES, Component, Hypotheses, Hypothesis

from . import reference
from .pairs import random_pairs

TABLES = {
    "as it is": HYPOTHESES,
    "without districts": HYPOTHESES.without("district"),
    "with another scale": HYPOTHESES.plus(
        Hypothesis("ancestor, faint", "ancestor", (Component(qc=0.01),), scale=0.01, free=("j",))
    ),
    "two rows": Hypotheses(
        (
            Hypothesis("unrelated", "unrelated", (Component(),)),
            Hypothesis("district", "district", (Component(0.5, 0.5, 0.5), Component(1, 0, 0))),
        ),
        reference=Component(1, 1, 1),
    ),
}


def assert_close(found, wanted):
    impossible = np.isneginf(wanted)
    np.testing.assert_array_equal(np.isneginf(found), impossible)
    np.testing.assert_allclose(found[~impossible], wanted[~impossible], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("seed", range(2))
def test_log_densities_agree_with_the_specification(table, seed):
    statistics, sizes, _ = random_pairs(np.random.default_rng(seed), 7)
    found = mixture.densities(statistics, table, sizes)
    wanted = reference.densities(statistics, table, sizes)
    assert_close(found, wanted)
    with np.errstate(divide="ignore"):
        together = np.logaddexp.reduce(wanted + np.log(table.priors), axis=2)
    assert_close(mixture.in_all(found, table), together)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_factors_by_label_agree_with_the_specification(table):
    rng = np.random.default_rng(5)
    statistics, sizes, weight = random_pairs(rng, 8)
    rows = mixture.densities(statistics, table, sizes)
    owner = np.array([0, 1, 1, 2, 3, 4, 4, 4])
    keep = owner[statistics.first] != owner[statistics.second]
    first, second = statistics.first[keep], statistics.second[keep]
    of_pairs = (statistics.values, statistics.covariance, statistics.exists, statistics.free)
    kept = mixture.Statistics(first, second, *(x[keep] for x in of_pairs))
    given = (kept, rows[keep], weight[keep], table, owner, 6)
    found, wanted = mixture.by_label(*given), reference.by_label(*given)
    assert np.isnan(found[:, 5]).all(), "the label without a regime says nothing"
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


def test_swapping_the_two_targets_mirrors_every_hypothesis():
    statistics, sizes, weight = random_pairs(np.random.default_rng(3), 6)
    swap = [0, 2, 1]
    turned = mixture.Statistics(
        statistics.second,
        statistics.first,
        np.ascontiguousarray(statistics.values[:, :, swap]),
        np.ascontiguousarray(statistics.covariance[:, :, swap][:, :, :, swap]),
        statistics.exists,
        np.ascontiguousarray(statistics.free[:, :, ::-1]),
    )
    mirrored = dict(sizes)
    for name in ("size", "apart"):
        mirrored[f"{name}_i"], mirrored[f"{name}_j"] = sizes[f"{name}_j"], sizes[f"{name}_i"]
    owner = np.arange(6)
    factors = []
    for s, q in ((statistics, sizes), (turned, mirrored)):
        rows = mixture.densities(s, HYPOTHESES, q)
        factors.append(mixture.by_label(s, rows, weight, HYPOTHESES, owner, 6))
    np.testing.assert_allclose(factors[0], factors[1], rtol=1e-9, atol=1e-9)
