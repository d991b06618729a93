"""Clients: every constructor, and the errors it raises."""

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.client.checks import rank_of
from jigsaw_crl.moments.regime import Moments

from .builders import (
    C0,
    C1,
    C2,
    X0,
    X1,
    X2,
    from_covariances,
    from_moments,
    from_precisions,
    from_samples,
)

# -- constructors ---------------------------------------------------------------------------------


def test_covariances_and_means_say_what_the_rows_say():
    mild = jc.simulate.Intervention("mild", shift=3.0)
    world = jc.simulate.random_world(6, 1, 1.0, seed=2, intervention=mild)
    control, regimes = world.rows(0, 4000)
    rows = jc.Client.from_samples("lab-1", observational=control, interventions=regimes)
    given = jc.Client.from_covariances(
        "lab-1",
        observational=np.cov(control.T, bias=True),
        interventions={label: np.cov(x.T, bias=True) for label, x in regimes.items()},
        means={"control": control.mean(axis=0), **{k: x.mean(axis=0) for k, x in regimes.items()}},
        n_samples=4000,
    )
    expected, found = (jc.recover_fragment(c).evidence for c in (rows, given))
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert (np.abs(expected[~np.isnan(expected)]) > 3).any()


def test_a_regime_without_a_mean_has_the_controls():
    client = from_covariances(means={"control": [1, 2, 3, 4], "pump": [1, 2, 3, 5]})
    means = {x: client.interventions[x][0].mean.tolist() for x in client.labels}
    assert client.control.mean.tolist() == means["valve"] == [1, 2, 3, 4]
    assert means["pump"] == [1, 2, 3, 5]


def test_all_constructors_agree_on_the_covariances():
    samples = from_samples()
    for other in (from_covariances(), from_precisions(), from_moments()):
        assert other.labels == samples.labels == ("valve", "pump")
        assert np.allclose(other.control.covariance, samples.control.covariance)
        for label in samples.labels:
            assert np.allclose(
                other.interventions[label][0].covariance,
                samples.interventions[label][0].covariance,
            )
        assert other.n_samples == {"control": 60, "valve": 60, "pump": 60}


def test_a_label_may_have_several_regimes():
    client = from_samples(interventions={"valve": [X1, X2], "pump": X2.tolist()})
    assert [m.n for m in client.interventions["valve"]] == [60, 60]
    assert client.n_samples == {"control": 60, "valve": 120, "pump": 60}
    assert len(client.second_moments("valve")) == 2
    sized = from_covariances(
        interventions={"valve": [C1, C2]}, n_samples={"control": 60, "valve": [30, 40]}
    )
    assert [m.n for m in sized.interventions["valve"]] == [30, 40]


def test_second_moments_are_taken_about_the_control_mean():
    client = from_samples(interventions={"valve": X1 + 5})
    centred = X1 + 5 - X0.mean(axis=0)
    assert np.allclose(client.second_moments("valve")[0], centred.T @ centred / 60)


@pytest.mark.parametrize("build", [from_samples, from_covariances])
def test_inputs_are_copied_and_never_changed(build):
    arrays = (X0, X1, X2) if build is from_samples else (C0, C1, C2)
    given = [a.copy() for a in arrays]
    labelled = {"valve": given[1], "pump": given[2]}
    client = build(observational=given[0], interventions=labelled)
    before = client.control.covariance.copy()
    assert all(np.array_equal(a, b) for a, b in zip(given, arrays, strict=True))
    for a in given:
        a[:] = 0
    del labelled["pump"]
    assert client.labels == ("valve", "pump")
    assert np.array_equal(client.control.covariance, before)
    with pytest.raises(TypeError):
        client.interventions["new"] = ()
    with pytest.raises(ValueError, match="read-only"):
        client.control.covariance[0, 0] = 1


# -- errors ---------------------------------------------------------------------------------------

holes = X1.copy()
holes[3, 1] = np.nan
endless = X1.copy()
endless[0, 0] = np.inf
crooked = C1.copy()
crooked[0, 1] += 1e-3 * C1.max()
indefinite = C1 - (np.linalg.eigvalsh(C1)[0] + 1e-3 * C1.max()) * np.eye(4)
hollow = C1.copy()
hollow[0, 0] = np.nan
thin = np.outer(np.ones(4), np.ones(4))
one_huge_row = np.vstack([X0, 1e9 * np.arange(1, 5)])

TWICE, ONCE = {"valve": [C1, C2]}, {"valve": [X1[0]]}


def moments(n, covariance):
    return Moments(n, np.zeros(4), covariance)


BAD_DATA = {
    # The constructor, what it is passed, the regime at fault, and what the message says.
    from_samples: [
        ({"interventions": {"valve": X1, "pump": X2[:, :3]}}, "pump", "3 features"),
        ({"interventions": {"valve": X1[0], "pump": X2}}, "valve", "shape"),
        ({"interventions": {"valve": X1[:0], "pump": X2}}, "valve", "shape"),
        ({"interventions": {"valve": holes, "pump": X2}}, "valve", "missing"),
        ({"interventions": {"valve": endless, "pump": X2}}, "valve", "infinite"),
        ({"observational": holes}, "control", "1 of 240 values"),
        ({"interventions": {"valve": [["a"] * 4] * 9}}, "valve", "not numbers"),
        ({"interventions": {"valve": [[[1, 2], [3]]]}}, "valve", "not numbers"),
        ({"interventions": {"valve": X1[:1], "pump": X2}}, "valve", "too few"),
        ({"observational": X0[:2]}, "control", "2 control rows are too few for 2 lat"),
        ({"observational": np.ones((60, 4))}, "control", "span 0 dimensions"),
        ({"observational": one_huge_row}, "control", "--trim 0.05"),
    ],
    from_covariances: [
        ({"interventions": {"valve": crooked}}, "valve", "not symmetric"),
        ({"interventions": {"valve": indefinite}}, "valve", "indefinite"),
        ({"interventions": {"valve": hollow}}, "valve", "missing or infinite"),
        ({"interventions": {"valve": C1[:3]}}, "valve", "square"),
        ({"observational": thin, "n_latent": 2}, "control", "span 1 dimension,"),
        ({"n_samples": {"control": 60, "valve": 9}}, "pump", "no entry"),
        ({"n_samples": {"control": 60, "valve": [9, 9], "pump": 9}}, "valve", "2 entries for 1"),
        ({"n_samples": {"control": 60, "valve": None, "pump": 60}}, "valve", "whole number"),
        ({"means": {"pump": [1, 2, 3]}}, "pump", "3 entries for 4 features"),
        ({"means": {"pump": ["a"] * 4}}, "pump", "not a row of finite numbers"),
        ({"interventions": TWICE, "means": ONCE}, "valve", "means lists 1 entry for 2 matrices"),
    ],
    from_precisions: [({"observational": thin}, "control", "span 1 dimension,")],
    from_moments: [
        ({"control": moments(None, C0)}, "valve", "exact and estimated"),
        ({"interventions": {"valve": moments(9, hollow)}}, "valve", "missing or infinite"),
        ({"interventions": {"valve": moments(9, np.eye(3))}}, "valve", "4 entries for 3 features"),
        ({"interventions": {"valve": []}}, "valve", "no moments"),
    ],
}


@pytest.mark.parametrize(
    ("build", "changes", "regime", "says"),
    [(build, *case) for build, cases in BAD_DATA.items() for case in cases],
)
def test_bad_data_is_refused_with_its_client_regime_and_remedy(build, changes, regime, says):
    with pytest.raises(InputError, match=says) as caught:
        build(**changes)
    error = caught.value
    assert (error.client, error.regime) == ("lab-1", regime)
    assert "client 'lab-1', regime " in str(error)
    assert error.remedy.endswith(".")


BAD_SHAPE = [
    (lambda: from_samples(interventions={}), "no interventional regime"),
    (lambda: from_samples(interventions=[X1, X2]), "not a mapping"),
    (lambda: from_moments(interventions=[Moments.from_rows(X1)]), "not a mapping"),
    (lambda: from_samples(interventions={"": X1}), "empty"),
    (lambda: from_samples(interventions={3: X1}), "not text"),
    (lambda: from_samples(interventions={"pump": X1, "Pump ": X2}), "differ only by case"),
    (lambda: from_samples(interventions={"control": X1}), "also an intervention label"),
    (lambda: from_samples(n_latent=1), "n_latent is 1"),
    (lambda: from_samples(n_latent=2.5), "n_latent is 2.5"),
    (lambda: from_samples(n_latent=5), "4 features cannot show 5 latents"),
    (lambda: from_samples(interventions=dict.fromkeys("abcde", X1)), "cannot show 5 latents"),
    (lambda: from_samples(features=["a", "b"]), "2 distinct feature names"),
    (lambda: from_samples(features=["a", "b", "c", "c"]), "3 distinct feature names"),
    (lambda: from_covariances(n_samples=60.0), "n_samples is a float"),
    (lambda: from_covariances(means=[X1[0]]), "means is a list"),
    (lambda: from_covariances(means={"tank": X1[0]}), "means names the regime 'tank'"),
    (lambda: from_covariances(n_samples={"tank": 60}), "n_samples names the regime 'tank'"),
    (lambda: from_samples(batch={"tank": "a"}), "batch names the regime 'tank'"),
    (lambda: from_precisions(n_latent=-3), "n_latent is -3"),
]


@pytest.mark.parametrize(("build", "says"), BAD_SHAPE)
def test_inconsistent_arguments_are_refused(build, says):
    with pytest.raises(InputError, match=says) as caught:
        build()
    assert caught.value.client == "lab-1"
    assert caught.value.remedy.endswith(".")


@pytest.mark.parametrize("name", ["", "  ", None, 3])
def test_a_client_without_a_name_is_refused(name):
    with pytest.raises(InputError, match="not a name"):
        jc.Client.from_samples(name, observational=X0, interventions={"valve": X1})


def test_a_low_rank_is_explained_by_units_where_they_differ():
    with pytest.raises(InputError, match="units differ too much"):
        rank_of(np.diag([1e14, 1.0]), 2, client="lab", regime="control")
    with pytest.raises(InputError, match="'clock' is the widest"):
        rank_of(np.diag([1.0, 1e14]), 2, client="lab", regime="control", features=["flow", "clock"])
    with pytest.raises(InputError, match="copies of other columns"):
        rank_of(np.ones((2, 2)), 2, client="lab", regime="control")
    rank_of(np.diag([1e8, 1.0]), 2, client="lab", regime="control")


def test_data_frames_are_aligned_by_the_names_of_their_columns():
    pd = pytest.importorskip("pandas")
    control, valve, pump = (pd.DataFrame(x, columns=list("abcd")) for x in (X0, X1, X2))
    turned = {"valve": valve, "pump": pump[["c", "a", "d", "b"]]}
    plain, named = from_samples(), from_samples(observational=control, interventions=turned)
    assert named.features == ("a", "b", "c", "d")
    for one, other in zip(named.regimes, plain.regimes, strict=True):
        np.testing.assert_array_equal(one.covariance, other.covariance)
    other = {"pump": pump.rename(columns={"a": "e"})}
    with pytest.raises(InputError, match="not those of the control"):
        from_samples(observational=control, interventions=other)
