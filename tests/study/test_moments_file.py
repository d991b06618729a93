"""Moments files, and adding new rows to them."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl.study import merge_clients, write_moments

from ..client.wide_rows import wide_regimes
from ..test_public_objects import assert_equal
from .tables import client_of, frame_of, regimes_of


def table():
    """Rows with plates, rounded readings and a gap."""
    frame = frame_of(regimes_of()).round(1)
    frame.loc[7, "x2"] = np.nan
    return frame.assign(plate=np.resize(["p1", "p2", "p3"], len(frame)))


def read(**asked):
    asked = {"name": "lab", "missing": "drop", "ignore": ["plate"], **asked}
    if {"batch", "group"} & set(asked):
        del asked["ignore"]
    return jc.Client.from_table(table(), **asked)


CLIENTS: dict[str, Callable[[], jc.Client]] = {
    "exact": lambda: jc.simulate.setting("A", 0).client(0),
    "rounded": read,
    "hard": lambda: read(interventions={"pump": "hard"}),
    "batches": lambda: read(batch="plate"),
    "groups": lambda: read(group="plate"),
    "gaps": lambda: read(missing="em"),
    "trimmed": lambda: read(trim=0.05),
    "covariates": lambda: read(covariates=["x4"], n_latent=2),
    "sensors": lambda: read(sensor_noise=0.5).with_sensors({"pump": "x1"}, {"x2": "bar"}),
    "wide": lambda: client_of(wide_regimes(520, 200, latents=4)),
}


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_moments_file_gives_the_client_in_every_field(kind, tmp_path):
    client = CLIENTS[kind]()
    again = jc.read_client(write_moments(client, tmp_path / "any name.npz"))
    # Not kept: how latents were counted, a step of 0, skewness that not all regimes have. The
    # centre of directions is rounded.
    lost = {"gaps": {"third", "fourth"}, "wide": {"step", "centre"}}.get(kind, set())
    assert_equal(again, client, ignore={"counted", *lost})
    one, other = (jc.recover_fragment(c) for c in (again, client))
    np.testing.assert_array_equal(one.evidence, other.evidence)


@given(st.integers(10, 190), st.permutations(range(4)))
def test_merged_clients_have_the_moments_of_all_rows_in_any_order_of_columns(cut, order):
    regimes, names = regimes_of(), [f"x{i + 1}" for i in range(4)]
    whole = client_of(regimes)
    rows = {k: v[cut:][:, order] for k, v in regimes.items()}
    later = client_of(rows, features=[names[i] for i in order])
    merged = merge_clients(client_of({k: v[:cut] for k, v in regimes.items()}), later)
    assert merged.n_samples == whole.n_samples
    assert merged.features == whole.features
    for label in whole.labels:
        (found,), (expected,) = merged.interventions[label], whole.interventions[label]
        np.testing.assert_allclose(found.covariance, expected.covariance, rtol=1e-12, atol=1e-13)


def test_a_label_of_only_one_client_is_kept():
    regimes = regimes_of()
    first = client_of({k: v[:90] for k, v in regimes.items() if k != "valve"})
    second = client_of({k: v[90:] for k, v in regimes.items() if k != "pump"})
    merged = merge_clients(first, second)
    assert merged.n_samples == {"control": 200, "pump": 90, "valve": 112}
    assert merged.n_latent == 2
    hard = merge_clients(first.with_interventions("hard"), second.with_interventions("hard"))
    assert hard.hard == {"pump", "valve"}


OTHERS: dict[str, tuple[Callable[[dict[str, np.ndarray]], jc.Client], str]] = {
    "itself": (client_of, "already in the file"),
    "another client": (lambda _: client_of(regimes_of(seed=1), "lab-2"), "client 'lab-2'"),
    "a feature more": (lambda _: client_of(regimes_of(d=5)), "features differ: x5"),
    "two strengths": (
        lambda r: client_of({**regimes_of(seed=1), "pump": [r["pump"][:90], r["pump"][90:]]}),
        "1 strength cannot be merged with 2",
    ),
    "batches": (
        lambda r: client_of(regimes_of(seed=1), batch=dict.fromkeys(r, "monday")),
        "moments with batches cannot be merged with moments without",
    ),
    "groups": (
        lambda r: client_of(
            regimes_of(seed=1), group={k: np.arange(len(v)) // 9 for k, v in r.items()}
        ),
        "moments with groups cannot be merged with moments without",
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_clients_that_do_not_belong_together_are_not_merged(case):
    make, message = OTHERS[case]
    regimes = regimes_of()
    with pytest.raises(jc.InputError, match=message):
        merge_clients(client_of(regimes), make(regimes))
