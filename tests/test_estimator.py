"""BlockRecovery behaves as a scikit-learn transformer, and recovers what the client would."""

import numpy as np
import pandas as pd
import pytest

import jigsaw_crl as jc

from .study.tables import client_of


# scikit-learn's checks fit noise, about which the estimator rightly warns. Its check of array-API
# input skips itself, with a warning, unless SCIPY_ARRAY_API=1.
@pytest.mark.filterwarnings("ignore:the data are not fit for recovery")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("method", ["null-cone", "paper"])
def test_scikit_learns_own_checks_pass(method):
    from sklearn.utils.estimator_checks import check_estimator

    check_estimator(jc.BlockRecovery(method=method))


@pytest.fixture(scope="module")
def rows():
    return stacked(jc.simulate.setting("A", 0).sample(0, 5000, seed=1).regimes)


def stacked(regimes):
    """All rows, and the regime of each."""
    return np.vstack([*regimes.values()]), np.repeat([*regimes], [*map(len, regimes.values())])


def test_the_blocks_are_those_of_the_client(rows):
    X, y = rows
    model = jc.BlockRecovery(control="control").fit(X, y)
    fragment = jc.recover_fragment(client_of({label: X[y == label] for label in np.unique(y)}))
    assert model.blocks_ == fragment.blocks
    np.testing.assert_array_equal(model.transform(X), fragment.transform(X))


def test_it_works_in_a_pipeline_and_names_its_columns(rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=[f"sensor {i}" for i in range(X.shape[1])])
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    pipeline = make_pipeline(StandardScaler(), jc.BlockRecovery()).set_output(transform="pandas")
    latents = pipeline.fit_transform(frame, y)
    assert list(latents.columns) == sorted(set(y) - {"control"})
    assert latents.index.equals(frame.index)
    assert pipeline[-1].feature_names_in_.tolist() == frame.columns.tolist()


def test_regimes_may_be_numbers_with_the_smallest_as_control(rows):
    X, y = rows
    codes = {"control": 0} | {v: i + 1 for i, v in enumerate(sorted(set(y) - {"control"}))}
    model = jc.BlockRecovery().fit(X, np.array([codes[v] for v in y]))
    assert model.control_ == 0
    assert model.labels_ == tuple(str(i) for i in range(1, len(codes)))


def test_a_control_that_is_no_regime_is_refused(rows):
    X, y = rows
    with pytest.raises(jc.InputError, match="no row is in the control regime 99"):
        jc.BlockRecovery(control=99).fit(X, np.unique(y, return_inverse=True)[1])
    with pytest.raises(jc.InputError, match="no row is in the control regime 'vehicle'"):
        jc.BlockRecovery(control="vehicle").fit(X, y)


def test_data_without_signal_warn_or_raise_as_asked():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), np.repeat(["control", "a", "b"], 100)
    with pytest.warns(UserWarning, match="no signal"):
        jc.BlockRecovery().fit(X, y)
    with pytest.raises(jc.InputError, match="no signal"):
        jc.BlockRecovery(unfit="raise").fit(X, y)


def test_hard_interventions_give_effects_and_latents_of_unit_variance():
    world = jc.simulate.random_world(
        4, 1, 1.0, 731_000, intervention=jc.simulate.Intervention("hard", shift=2.0)
    )
    regimes = world.sample(0, 4_000).regimes
    X, y = stacked(regimes)
    assert jc.BlockRecovery().fit(X, y).fragment_.hard is None
    model = jc.BlockRecovery(interventions="hard").fit(X, y)
    assert {*model.fragment_.effects.effect, "control"} == set(regimes)
    assert np.allclose(model.transform(regimes["control"]).std(axis=0), 1.0, atol=0.1)
    with pytest.raises(jc.InputError, match="'nowhere', which no client has"):
        jc.BlockRecovery(interventions={"nowhere": "hard"}).fit(X, y)
    with pytest.raises(jc.InputError, match="interventions belongs to the null-cone method"):
        jc.BlockRecovery(method="paper", interventions="hard").fit(X, y)
