"""The mixture says what the plain specification says."""

import numpy as np
import pytest

from jigsaw_crl.evidence import mixture
from jigsaw_crl.evidence.hypotheses import HYPOTHESES, Component, Hypotheses, Hypothesis
from jigsaw_crl.evidence.mixture import Statistics

from . import reference

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
        )
    ),
}


def random_pairs(rng, n_regimes, n_readings=4):
    """Statistics of all pairs of regimes, their units and reference, and weights of readings."""
    i, j = np.triu_indices(n_regimes, 1)
    k = len(i)
    root = rng.normal(size=(k, n_readings, 3, 3)) * 0.05
    covariance = root @ np.swapaxes(root, 2, 3) + 1e-4 * np.eye(3)
    values = rng.normal(size=(k, n_readings, 3)) * rng.choice([0.02, 0.5], size=(k, 1, 3))
    exists = rng.random((k, n_readings)) < 0.7
    exists[:, 0] = True
    free = rng.random((k, n_readings, 2)) < 0.7
    statistics = Statistics(i, j, values, covariance, exists, free)
    size = rng.uniform(0.2, 2.0, n_regimes)
    units = np.stack([np.ones(k), size[j], size[i]], axis=-1)
    return statistics, (units, units / 3.0), rng.normal(size=(k, n_readings))


def assert_close(found, wanted):
    impossible = np.isneginf(wanted)
    np.testing.assert_array_equal(np.isneginf(found), impossible)
    np.testing.assert_allclose(found[~impossible], wanted[~impossible], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("seed", range(2))
def test_log_densities_agree_with_the_specification(table, seed):
    statistics, sizes, _ = random_pairs(np.random.default_rng(seed), 7)
    found = mixture.densities(statistics, table, *sizes)
    wanted = reference.densities(statistics, table, *sizes)
    assert_close(found, wanted)
    with np.errstate(divide="ignore"):
        together = np.logaddexp.reduce(wanted + np.log(table.priors), axis=2)
    assert_close(mixture.in_all(found, table), together)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_factors_by_label_agree_with_the_specification(table):
    rng = np.random.default_rng(5)
    statistics, sizes, weight = random_pairs(rng, 8)
    rows = mixture.densities(statistics, table, *sizes)
    owner = np.array([0, 1, 1, 2, 3, 4, 4, 4])
    keep = owner[statistics.first] != owner[statistics.second]
    first, second = statistics.first[keep], statistics.second[keep]
    of_pairs = (statistics.values, statistics.covariance, statistics.exists, statistics.free)
    kept = mixture.Statistics(first, second, *(x[keep] for x in of_pairs))
    given = (kept, rows[keep], weight[keep], table, owner, 6)
    found, wanted = mixture.by_label(*given), reference.by_label(*given)
    assert np.isnan(found[:, 5]).all(), "the label without a regime says nothing"
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
