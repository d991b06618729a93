"""Mean shifts of regimes whose batches are offset, and their errors."""

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.client.batches import batch_means
from jigsaw_crl.moments.regime import Moments

from ..study.tables import client_of as from_rows

P = 6


def client_of(table, omega, seed, spread=1.0):
    """A client with `table[j, b]` white rows of regime j in batch b; the control is regime 0.

    The regimes have no effect, so that every shift is an error.
    """
    rng = np.random.default_rng(seed)
    offsets = np.sqrt(omega) * rng.normal(size=(table.shape[1], P))

    def moments(counts):
        cells = {}
        for b in np.flatnonzero(counts).tolist():
            mean = offsets[b] + spread * rng.normal(size=P) / np.sqrt(counts[b])
            cells[f"b{b}"] = Moments(int(counts[b]), mean, np.eye(P))
        return Moments.of_batches(cells)

    control, *others = [moments(counts) for counts in table]
    return jc.Client.from_moments(
        "lab",
        control=control,
        interventions={f"z{j}": m for j, m in enumerate(others)},
        n_latent=P,
    )


def means_of(client):
    return batch_means(client, client.white.rows.W)


OWN = np.vstack([np.full(6, 200), np.diag(np.full(6, 400))])
APART = np.block(
    [
        [np.zeros((1, 5), int), np.full((1, 30), 100)],
        [np.diag(np.full(5, 400)), np.zeros((5, 30), int)],
    ]
)
CROSSED = np.full((5, 6), 100)
MIXED = np.array([[300, 200, 0, 0], [0, 400, 100, 0], [0, 0, 150, 250], [100, 0, 0, 300]])


@pytest.mark.parametrize(
    "table", [OWN, APART, CROSSED, MIXED], ids=["own", "apart", "crossed", "mixed"]
)
def test_means_and_errors_are_those_of_generalised_least_squares(table):
    client = client_of(table, 0.5, seed=1)
    shifts, errors = means_of(client)
    omega = errors.wander.size**2
    cells = [(j, b) for j in range(len(table)) for b in range(table.shape[1]) if table[j, b]]
    X = np.array([[j == k for k in range(len(table))] for j, _ in cells], dtype=float)
    Z = np.array([[b == k for k in range(table.shape[1])] for _, b in cells], dtype=float)
    regimes = [m.batches for _, m in client.named_regimes]
    m = np.array([next(x.mean for x in regimes[j] if x.name == f"b{b}") for j, b in cells])
    S = np.diag([1 / table[j, b] for j, b in cells]) + omega * Z @ Z.T
    covariance = np.linalg.inv(X.T @ np.linalg.solve(S, X))
    best = covariance @ X.T @ np.linalg.solve(S, m)
    np.testing.assert_allclose(shifts, best[1:] - best[0], atol=1e-9)
    contrast = np.hstack([-np.ones((len(table) - 1, 1)), np.eye(len(table) - 1)])
    V = contrast @ covariance @ contrast.T
    np.testing.assert_allclose(errors.variance, np.diag(V), rtol=1e-9)
    off = ~np.eye(len(V), dtype=bool)
    np.testing.assert_allclose((errors.shared / errors.n_control)[off], V[off], atol=1e-9)
    assert errors.between[0, 1] == pytest.approx(V[0, 0] + V[1, 1] - 2 * V[0, 1])


def test_without_a_regime_in_two_batches_only_means_of_the_controls_batch_are_known():
    table = np.array([[200, 0], [200, 0], [0, 200]])
    _, errors = means_of(client_of(table, 1.0, seed=0))
    assert errors.wander.degrees == 0
    assert errors.known.tolist() == [True, False]
    assert errors.precision.tolist() == [100.0, 0.0]


def rows_of():
    return jc.simulate.setting("A", 0).sample(0, 600).regimes


def test_rows_know_their_batches_by_name_or_number_one_by_one_or_together():
    rows = rows_of()
    days = np.arange(600) % 3
    client = from_rows(rows, batch={**dict.fromkeys(rows, days), "control": days.astype(str)})
    assert client.batches == ("0", "1", "2")
    assert client.n_samples == dict.fromkeys(rows, 600)
    assert client.control.n == 598
    doses = {k: v if k == "control" else [v[:300], v[300:]] for k, v in rows.items()}
    named = {key: [days[:300], "late"] for key in rows} | {"control": days}
    client = from_rows(doses, batch=named)
    assert client.batches == ("0", "1", "2", "late")


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ("monday", "batch is a str"),
        ({"control": "monday"}, "batch has no entry"),
        ({"control": ["monday"] * 7}, r"batch has shape \(7,\) for 600 rows"),
        ({"control": ["monday"] * 599 + [None]}, "row 600 has no batch"),
        ({"control": [1.0] * 599 + [float("nan")]}, "row 600 has no batch"),
    ],
)
def test_batches_that_do_not_fit_the_rows_are_refused(batch, message):
    rows = rows_of()
    if isinstance(batch, dict) and len(np.atleast_1d(batch["control"])) > 1:
        batch = {**dict.fromkeys(rows, "monday"), **batch}
    with pytest.raises(jc.InputError, match=message):
        from_rows(rows, batch=batch)


def test_regimes_with_and_without_batches_are_not_mixed():
    m = Moments.from_rows(np.random.default_rng(0).normal(size=(50, 2)))
    with pytest.raises(jc.InputError, match="some regimes have batches"):
        jc.Client.from_moments(
            "lab", control=m, interventions={"z": Moments.of_batches({"monday": m})}
        )
