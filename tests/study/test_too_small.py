"""A regime without a covariance is left out, and the study is used without it."""

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.diagnostics import check_client
from jigsaw_crl.usable import usable

from .tables import client_of, regimes_of, write_table

NAMES = ["pump", "valve", "flow"]


def _world():
    chain = np.diag([0.9, -0.8], k=-1)
    return jc.simulate.world_from_graph(chain, [NAMES, NAMES], (5, 4), seed=3, names=NAMES)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda x: x[:1], "1 row, too few"),
        (lambda x: np.repeat(x[:1], 12, axis=0), "the same values in all rows"),
    ],
    ids=["one row", "twelve equal rows"],
)
@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_a_small_bad_regime_is_left_out_alone(spoil, says, kind, tmp_path):
    world = _world()
    for k in range(2):
        regimes = world.sample(k, 2_000).regimes
        if k == 0:
            regimes["pump"] = spoil(regimes["pump"])
        write_table(regimes, tmp_path / f"s{k}.{kind}", kind)
    result = jc.recover(jc.read_study(tmp_path))
    assert [(part.client, part.label) for part in result.left_out] == [("s0", "pump")]
    assert says in result.left_out[0].because
    assert set(result.order.labels) == set(NAMES)
    with pytest.warns(UserWarning, match=says):
        assert set(jc.read_client(tmp_path / f"s0.{kind}").labels) == {"valve", "flow"}


def test_a_strength_of_a_label_is_left_out_and_the_label_stays(tmp_path):
    regimes = regimes_of()
    regimes["pump (9 V)"] = regimes["pump"][:1]
    write_table(regimes, tmp_path / "lab-1.csv", "csv")
    (tmp_path / "study.toml").write_text('[rename]\n"pump (9 V)" = "pump"\n')
    study = jc.read_study(tmp_path)
    assert len(study["lab-1"].interventions["pump"]) == 1
    assert [(f.check, f.severity) for f in study.findings] == [("unusable-regime", "warning")]


def test_a_client_without_any_usable_regime_is_refused(tmp_path):
    regimes = {
        label: rows if label == "control" else rows[:1] for label, rows in regimes_of().items()
    }
    write_table(regimes, tmp_path / "lab-1.csv", "csv")
    with pytest.raises(jc.InputError, match="1 row is too few"):
        jc.read_client(tmp_path / "lab-1.csv")


def test_labels_that_stay_keep_their_kind_when_another_is_left_out():
    regimes = _world().sample(0, 500).regimes
    regimes["flow"] = 50 * np.random.default_rng(0).normal(size=regimes["flow"].shape)
    client = client_of(regimes, hard=["pump", "flow"])
    (kept,) = usable([client], check_client(client).findings)
    assert set(kept.labels) == {"pump", "valve"}
    assert kept.hard == {"pump"}
    assert kept.n_latent == client.n_latent
