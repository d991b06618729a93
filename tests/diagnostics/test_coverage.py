"""Several clients: which labels they share, and rows that are the same."""

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.diagnostics.checks import check_copies, check_coverage
from jigsaw_crl.usable import usable

from ..study.tables import client_of

NOISE = {
    "gaussian": lambda rng, size: rng.normal(size=size),
    "uniform": lambda rng, size: rng.uniform(-1, 1, size=size),
    "two values": lambda rng, size: rng.choice([-1.0, 1.0], size=size),
}


def rows(seed, n, p=5, noise="gaussian"):
    """Rows of one plant: the same system and sensors for every seed."""
    system = np.random.default_rng(p)
    effects, sensors = np.tril(system.normal(size=(p, p)), -1), system.normal(size=(p + 1, p))
    rng = np.random.default_rng([seed, 1])
    out = {}
    for j in range(-1, p):
        A, e = effects.copy(), NOISE[noise](rng, (n, p))
        if j >= 0:
            A[j] *= 2
            e[:, j] *= 1.7
        name = "control" if j < 0 else f"z{j}"
        out[name] = np.linalg.solve(np.eye(p) - A, e.T).T @ sensors.T
    return out


def found(one, two):
    return [f.check for f in check_copies([client_of(one, "one"), client_of(two, "two")])]


def test_each_copy_is_named_once_and_the_original_is_not():
    one = rows(0, 500)
    clients = [client_of(one, name) for name in ("one", "two", "three")]
    copies = list(check_copies(clients))
    assert [(f.check, f.client) for f in copies] == [
        ("duplicated-client", "two"),
        ("duplicated-client", "three"),
    ]
    assert [c.name for c in usable(clients, copies)] == ["one"]


def unchanged(regimes):
    return regimes


def standardised(regimes):
    return {k: (x - x.mean(axis=0)) / x.std(axis=0) for k, x in regimes.items()}


def whitened(regimes):
    """As a site may do before anything else: its control then has the identity as covariance."""
    control = regimes["control"][:, :5]
    root = np.linalg.cholesky(np.linalg.inv(np.cov(control.T, bias=True)))
    return {k: (x[:, :5] - control.mean(axis=0)) @ root for k, x in regimes.items()}


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("prepare", [unchanged, standardised, whitened])
def test_independent_rows_of_the_very_same_plant_are_no_copies(noise, prepare):
    """The nearest that honest sites can come: one law, one size, light tails, unit variances."""
    for seed in range(8):
        for p in (2, 3, 5) if prepare is unchanged else (5,):
            pair = [prepare(rows(10 * seed + k, 200, p, noise)) for k in (1, 2)]
            assert found(*pair) == []


def test_half_of_the_rows_in_common_is_not_called_a_copy():
    one, more = rows(0, 1000), rows(1, 1000)
    assert found(one, {k: np.vstack([x[:500], more[k][:500]]) for k, x in one.items()}) == []


def test_clients_with_other_sensors_or_exact_moments_are_not_compared():
    one = rows(0, 500)
    assert found(one, {k: x[:, :-1] for k, x in one.items()}) == []
    world = jc.simulate.setting("A", 0)
    assert list(check_copies([world.client(0), world.client(0)])) == []


@pytest.mark.parametrize(
    ("labels", "check", "value", "word"),
    [
        (["abc", "cd"], "unseen-pairs", 2 / 6, "a–d"),
        (["ab", "cd", "be"], "disconnected", 2, "groups"),
        (["ab", "abx"], "lonely-labels", 1, "x (lab-1)"),
    ],
)
def test_what_clients_do_not_share_is_counted_and_named(labels, check, value, word):
    found = check_coverage({f"lab-{k}": list(own) for k, own in enumerate(labels)})
    (finding,) = (f for f in found if f.check == check)
    assert finding.value == pytest.approx(value)
    assert word in finding.message


@pytest.mark.parametrize(
    ("own", "meant"),
    [
        (["vlave", "pump"], "valve"),
        (["valv", "pump"], "valve"),
        (["Valve s", "pump"], "valve"),
        (["TankTemp", "pump"], "tank_temp"),
        (["stream", "pump"], ""),
        (["step 12", "pump"], ""),
        # A client that has both spellings tells them apart.
        (["vlave", "valve"], ""),
    ],
)
def test_a_lonely_label_that_may_be_misspelt_or_written_in_two_parts_is_asked_about(own, meant):
    others = ["valve", "step 21", "tank_temp", "pump"]
    labels = {"essen": own, "bonn": others, "celle": others}
    (told,) = (f.message for f in check_coverage(labels) if f.check == "lonely-labels")
    assert told.endswith(f"{own[0]} (essen; is it {meant}?)" if meant else f"{own[0]} (essen)")
