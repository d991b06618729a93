"""T10: ancestry from means and differences of covariances, whatever the noise of the sensors is."""

import numpy as np
import pytest

import jigsaw_crl as jc


def a_client(seed, sensors, noise, hidden=0, step=0.0, labels=5, rows=5_000, stated=False):
    """A client with shifted hard interventions and sensors in different units, and the truth."""
    rng = np.random.default_rng(seed)
    p = labels + hidden
    edges = np.tril(rng.random((p, p)) < 0.4, -1)
    A = np.where(edges, rng.uniform(0.4, 1.2, (p, p)) * rng.choice([-1, 1], (p, p)), 0.0)
    own = rng.permutation(p)[:labels]
    G, units = rng.normal(size=(sensors, labels)), np.exp(1.5 * rng.normal(size=sensors))

    spread = np.sqrt(np.einsum("dp,dp->d", G, G))

    def measured(target=None):
        Z = np.zeros((rows, p))
        for i in range(p):
            Z[:, i] = Z @ A[i] + rng.normal(size=rows)
            if i == target:
                Z[:, i] = 1.5 + 0.7 * rng.normal(size=rows)
        X = Z[:, own] @ G.T
        X = X / spread + noise * rng.normal(size=X.shape)
        return units * (np.round(X / step) * step if step else X)

    regimes = {f"z{i}": measured(i) for i in own}
    sd = {f"x{i + 1}": noise * unit for i, unit in enumerate(units.tolist())} if stated else None
    client = jc.Client.from_samples(
        "one", observational=measured(), interventions=regimes, sensor_noise=sd
    )
    B = np.linalg.inv(np.eye(p) - A)
    above = np.abs(B[np.ix_(own, own)]).T > 1e-9
    names = [f"z{i}" for i in own]
    return client, jc.PartialOrder.from_matrix(names, above & ~np.eye(labels, dtype=bool))


def counted(order, true):
    """The verdicts, none of which is wrong."""
    counts = jc.metrics.verdict_counts(true, order)
    assert counts.wrong_yes == counts.wrong_no == 0
    return counts


@pytest.mark.parametrize("sensors", [5, 6, 7])
@pytest.mark.parametrize("noise", [0.01, 0.2])
def test_unknown_noise_of_the_sensors_makes_no_verdict_wrong(sensors, noise):
    found = possible = 0
    for seed in range(3):
        client, true = a_client(seed, sensors, noise)
        result = jc.recover([client], interventions="hard", confounding="none")
        counts = counted(result.order, true)
        found, possible = found + counts.yes, possible + counts.ancestors
        assert "not-hard" not in {f.check for f in result.diagnostics}
    assert found >= 0.6 * possible


@pytest.mark.parametrize(
    ("made", "confounding"),
    [({"noise": 0.1, "hidden": 3}, "allow"), ({"noise": 0.0, "step": 0.3}, "none")],
    ids=["hidden causes", "rounded readings without a spare sensor"],
)
def test_with_as_many_sensors_as_labels_no_verdict_is_wrong(made, confounding):
    for seed in range(4):
        client, true = a_client(seed, 5, **made)
        counted(jc.recover([client], interventions="hard", confounding=confounding).order, true)


def test_features_that_show_no_noise_are_read_with_their_metric():
    for noise, known in ((0.0, True), (0.1, False)):
        client, _ = a_client(1, 6, noise)
        fragment = jc.recover([client], interventions="hard").fragments["one"]
        assert (fragment.effects is not None) == known
        assert ("noise of the sensors" not in fragment.outcome.message) == known


@pytest.mark.parametrize(("noise", "step"), [(0.1, 0.0), (0.0, 0.3)])
def test_noise_that_is_stated_is_taken_off_and_gives_effects(noise, step):
    effects = 0
    for seed in range(4):
        client, true = a_client(seed, 5, noise, step=step, stated=True)
        known = jc.recover([client], interventions="hard")
        assert jc.metrics.verdict_counts(true, known.order).wrong_yes == 0
        effects += known.fragments["one"].effects is not None
        unknown = jc.recover([a_client(seed, 5, noise, step=step)[0]], interventions="hard")
        assert unknown.fragments["one"].effects is None
        assert len(known.order.pairs()) >= len(unknown.order.pairs())
    # Noise that exceeds the weakest direction of the signal cannot be taken off.
    assert effects >= 2


def test_a_no_without_a_metric_says_what_it_excludes():
    client, _ = a_client(0, 5, 0.1)
    order = jc.recover([client], interventions="hard").order
    frame = order.to_frame()
    denied = frame[frame.verdict == "not ancestor"]
    assert len(denied)
    assert (denied.excludes_above < 1.0).all()
