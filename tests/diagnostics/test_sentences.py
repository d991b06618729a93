"""Sentences of findings on data for which other sentences would be false."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.findings import Finding, ReadingNote
from jigsaw_crl.diagnostics import check_client, check_districts
from jigsaw_crl.diagnostics.findings import finding
from jigsaw_crl.diagnostics.labels import after_recovery


def said(control, regimes):
    client = jc.Client.from_samples("plant", observational=control, interventions=regimes)
    return {f.check: f for f in check_client(client).findings}


def test_a_regime_whose_small_feature_moved_is_not_said_to_be_like_the_control():
    # The moved feature is tiny beside the others, so the directions of the latents do not show it.
    rng = np.random.default_rng(5)
    scale = np.array([1e4, 1e4, 1e4, 1.0])
    control, same, moved = rng.normal(size=(3, 2_000, 4)) * scale
    moved[:, 3] += 4.0
    client = jc.Client.from_samples(
        "plant", observational=control, interventions={"same": same, "moved": moved}, n_latent=2
    )
    told = check_client(client).findings
    about = {f.regime: f.message for f in told if f.check == "weak-intervention"}
    assert "cannot be told from the control" in about["same"]
    assert "cannot be told" not in about["moved"]
    assert "the mean of" in about["moved"]
    assert "standard errors" in about["moved"]
    (study,) = (f.message for f in told if f.check == "no-signal")
    assert "no regime differs" not in study


def test_a_regime_that_recovery_discounts_is_not_said_to_be_like_the_control():
    note = ReadingNote("pump", "weak-intervention", 0.4, 1.0)
    (told,) = after_recovery("lab", [], frozenset(["pump", "valve"]), [note])
    assert "differs from the control" in told.message
    weak = finding("weak-intervention", 0.8, 1.0, client="lab", regime="pump", need="")
    assert after_recovery("lab", [weak], frozenset(["pump", "valve"]), [note]) == (weak,)


def test_if_every_regime_looks_like_several_targets_the_sensors_are_named():
    labels = ("pump", "valve", "tank")
    notes = [ReadingNote(label, "several-targets", 4.0, 1.5) for label in labels]
    all_of = after_recovery("lab", [], frozenset(labels), notes)
    assert all("the sensors are not linear" in f.message for f in all_of)
    one = after_recovery("lab", [], frozenset(labels), notes[:1])
    assert "sensors" not in one[0].message


def test_noise_is_compared_with_each_features_own_variance():
    # Two latents, six sensors with the same relative noise in units from 1 to 1,000.
    rng = np.random.default_rng(6)
    mixing = rng.normal(size=(6, 2))
    mixing *= (2.0 / np.linalg.norm(mixing, axis=1))[:, None]
    units = np.array([1.0, 1.0, 30.0, 30.0, 1e3, 1e3])

    def rows(change, noise):
        latents = rng.normal(size=(20_000, 2)) * change
        return (latents @ mixing.T + noise * rng.normal(size=(20_000, 6))) * units

    regimes = ([1, 1], [2, 1], [1, 2])
    control, one, two = (rows(np.array(c), 0.3) for c in regimes)
    assert "uneven-noise" not in said(control, {"a": one, "b": two})
    uneven = np.array([0.1, 0.1, 0.1, 0.8, 0.8, 0.8])
    control, one, two = (rows(np.array(c), uneven) for c in regimes)
    message = said(control, {"a": one, "b": two})["uneven-noise"].message
    assert "%" in message
    assert "e+" not in message


@pytest.mark.parametrize("share", [0.002, 0.03])
def test_a_code_for_missing_readings_is_named(share):
    rng = np.random.default_rng(7)
    control, regime = rng.normal(10.0, 2.0, size=(2, 3_000, 3))
    regime[:, 0] *= 2.0
    control[rng.random(3_000) < share, 1] = -9999.0
    found = said(control, {"pump": regime})
    assert "-9999" in found["missing-code"].message
    assert "--drop-missing" in found["missing-code"].remedy
    assert not {"heavy-tails", "outliers"} & found.keys()


def test_outliers_that_are_no_code_are_not_called_one():
    rng = np.random.default_rng(8)
    control, regime = rng.normal(size=(2, 3_000, 3))
    control[:4, 1] = [700.0, -650.0, 420.0, 380.0]
    found = said(control, {"pump": 2.0 * regime})
    assert "missing-code" not in found
    assert {"outliers", "heavy-tails"} & found.keys()


def test_numbers_of_findings_are_for_people():
    one = Finding("c", "info", "m", "Do.", 73_412.0, 1.0)
    assert str(one) == "info: m (73,400, threshold 1). Do."


def test_pairs_are_called_confounded_on_evidence_only():
    world = jc.simulate.random_world(4, 1, 1.0, seed=3)
    fragment = jc.recover_fragment(world.client(0, n_samples=2_000))
    (block,) = blocks = (frozenset(fragment.labels),)
    joined = replace(
        fragment,
        blocks=blocks,
        block_order=jc.PartialOrder.from_pairs(blocks, []),
        districts=(block,),
    )
    pairs = set(permutations(fragment.labels, 2))
    assert check_districts({"lab": joined}, pairs) == []
    clear = replace(fragment.bayes, district=np.full((4, 4), 2_000.0))
    assert check_districts({"lab": replace(joined, bayes=clear)}, pairs)
