"""Mean shifts of regimes whose batches are offset, and their errors."""

from __future__ import annotations

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.client.batches import Means, batch_means
from jigsaw_crl.client.noise import noise_model
from jigsaw_crl.moments.regime import Moments

from ..study.tables import client_of as from_rows

P = 6


def client_of(table: np.ndarray, omega: float, seed: int, spread: float = 1.0) -> jc.Client:
    """A client with `table[j, b]` white rows of regime j in batch b; the control is regime 0.

    The regimes have no effect, so that every shift is an error.
    """
    rng = np.random.default_rng(seed)
    offsets = np.sqrt(omega) * rng.normal(size=(table.shape[1], P))

    def moments(counts: np.ndarray) -> Moments:
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


def means_of(client: jc.Client) -> Means:
    return batch_means(client, noise_model(client))


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
    found = means_of(client)
    omega = found.wander.size**2
    cells = [(j, b) for j in range(len(table)) for b in range(table.shape[1]) if table[j, b]]
    X = np.array([[j == k for k in range(len(table))] for j, _ in cells], dtype=float)
    Z = np.array([[b == k for k in range(table.shape[1])] for _, b in cells], dtype=float)
    regimes = [client.control, *(m for ms in client.interventions.values() for m in ms)]
    m = np.array([next(x.mean for x in regimes[j].batches if x.name == f"b{b}") for j, b in cells])
    S = np.diag([1 / table[j, b] for j, b in cells]) + omega * Z @ Z.T
    covariance = np.linalg.inv(X.T @ np.linalg.solve(S, X))
    best = covariance @ X.T @ np.linalg.solve(S, m)
    np.testing.assert_allclose(found.shifts, best[1:] - best[0], atol=1e-9)
    contrast = np.hstack([-np.ones((len(table) - 1, 1)), np.eye(len(table) - 1)])
    V = contrast @ covariance @ contrast.T
    errors = found.errors
    np.testing.assert_allclose(errors.variance, np.diag(V), rtol=1e-9)
    off = ~np.eye(len(V), dtype=bool)
    np.testing.assert_allclose((errors.shared / errors.n_control)[off], V[off], atol=1e-9)
    assert errors.between(0, 1) == pytest.approx(V[0, 0] + V[1, 1] - 2 * V[0, 1])


@pytest.mark.parametrize("offset", [0.0, 0.1, 1.0])
@pytest.mark.parametrize(
    "table", [OWN, APART, CROSSED, MIXED], ids=["own", "apart", "crossed", "mixed"]
)
def test_errors_of_shifts_are_as_large_as_stated(table, offset):
    scores, products = [], []
    for seed in range(80):
        found = means_of(client_of(table, offset**2, seed))
        errors = found.errors
        scores.append(found.shifts / np.sqrt(errors.variance)[:, None])
        stated = errors.shared[0, 1] / errors.n_control
        products.append((found.shifts[0] @ found.shifts[1] / P - stated) / errors.variance.max())
    # With four batches the size of the offsets itself is known to a third only.
    slack = 0.16 if table is MIXED else 0.1
    assert np.std(scores) == pytest.approx(1.0, abs=slack)
    assert np.mean(products) == pytest.approx(0.0, abs=0.14)


def test_batches_that_do_not_wander_are_seldom_said_to():
    found = [means_of(client_of(OWN, 0.0, seed)).wander for seed in range(150)]
    assert np.mean([w.strength > 1 for w in found]) < 0.02
    assert np.mean([w.uneven for w in found]) < 0.08


def test_offsets_along_one_direction_count_by_their_largest_size():
    table = CROSSED
    rng = np.random.default_rng(0)
    client = client_of(table, 0.0, seed=0)
    moved = {f"b{b}": rng.normal() * np.eye(P)[0] for b in range(table.shape[1])}

    def shifted(m: Moments) -> Moments:
        return Moments.of_batches(
            {b.name: Moments(b.n, b.mean + moved[b.name], np.eye(P)) for b in m.batches}
        )

    client = jc.Client.from_moments(
        "lab",
        control=shifted(client.control),
        interventions={x: shifted(ms[0]) for x, ms in client.interventions.items()},
        n_latent=P,
    )
    found = means_of(client).wander
    assert found.uneven
    spread = np.std([v[0] for v in moved.values()], ddof=1)
    assert found.size == pytest.approx(spread, rel=0.1)


def test_without_a_regime_in_two_batches_only_means_of_the_controls_batch_are_known():
    table = np.array([[200, 0], [200, 0], [0, 200]])
    found = means_of(client_of(table, 1.0, seed=0))
    assert found.wander.degrees == 0
    assert found.errors.known.tolist() == [True, False]
    assert found.errors.precision.tolist() == [100.0, 0.0]


def rows_of(seed: int = 0) -> dict[str, np.ndarray]:
    control, regimes = jc.simulate.setting("A", seed).rows(0, 600)
    return {"control": control, **regimes}


def test_rows_know_their_batches_by_name_or_number_one_by_one_or_together():
    rows = rows_of()
    days = np.arange(600) % 3
    client = from_rows(rows, batch={**dict.fromkeys(rows, days), "control": days.astype(str)})
    assert client.batches == ("0", "1", "2")
    assert client.n_samples == dict.fromkeys(rows, 600)
    assert client.control.n == 598
    doses = {k: [v[:300], v[300:]] for k, v in rows.items() if k != "control"}
    named = {"control": days, **{k: [days[:300], "late"] for k in doses}}
    client = jc.Client.from_samples(
        "lab", observational=rows["control"], interventions=doses, batch=named
    )
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


def test_every_batch_costs_a_row():
    m = Moments.from_rows(np.random.default_rng(0).normal(size=(2, 2)))
    few = Moments.of_batches({str(i): m for i in range(2)})
    with pytest.raises(
        jc.InputError, match=r"4 control rows in 2 batches are too few for 3 latents"
    ):
        jc.Client.from_moments(
            "lab",
            control=few.select(np.array([0, 1, 0])),
            interventions={"z": few.select(np.array([0, 1, 0]))},
            n_latent=3,
        )
