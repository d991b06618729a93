"""Simulated batches: who is measured where, and offsets of the stated size."""

import numpy as np
import pytest

from jigsaw_crl.truth.simulate import Batches, setting


def client(batches):
    return setting("A", 0).client(0, 1_201, batches=batches)


@pytest.mark.parametrize(("layout", "count"), [("own", 4), ("apart", 4 + 6), ("crossed", 6)])
def test_a_layout_says_which_regime_is_in_which_batch(layout, count):
    one = client(Batches(0.3, layout, count=6))
    assert len(one.batches) == count
    assert one.n_samples == dict.fromkeys(("control", *one.labels), 1_201)
    own = {b.name for b in one.control.batches}
    for label in one.labels:
        (m,) = one.interventions[label]
        assert len(m.batches) == (6 if layout == "crossed" else 1)
        assert ({b.name for b in m.batches} <= own) == (layout != "apart")


def test_the_learner_may_not_be_told():
    told, untold = client(Batches(0.3, "crossed")), client(Batches(0.3, "crossed", told=False))
    assert untold.batches == ()
    np.testing.assert_allclose(untold.control.mean, told.control.mean)
    between = sum(
        b.n * np.outer(b.mean - told.control.mean, b.mean - told.control.mean)
        for b in told.control.batches
    )
    np.testing.assert_allclose(
        untold.control.uncounted().n * untold.control.covariance,
        told.control.n * told.control.covariance + between,
    )


def test_offsets_have_the_stated_size():
    one = client(Batches(2.0, "crossed", count=200))
    means = np.array([b.mean for b in one.control.batches])
    spread = np.sqrt(np.diag(client(None).control.covariance))
    np.testing.assert_allclose(np.mean(means.std(axis=0) / spread), 2.0, rtol=0.1)
