"""Moments files, and adding new rows to them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl.study import merge_clients, write_moments

from .tables import assert_same, client_of, regimes_of


def test_a_moments_file_gives_the_client_of_its_rows(tmp_path, reference):
    path = write_moments(reference, tmp_path / "any name.npz")
    again = jc.read_client(path)
    assert again.name == "lab-1"
    assert again.features == reference.features
    assert len(again.control.parts) == len(reference.control.parts) > 1
    assert_same(again, reference)


def test_exact_moments_are_written_and_read_unchanged(tmp_path):
    client = jc.simulate.setting("A", 0).client(0)
    again = jc.read_client(write_moments(client, tmp_path / "m.npz"))
    assert again.is_population
    np.testing.assert_array_equal(again.control.covariance, client.control.covariance)


@given(st.integers(10, 190), st.permutations(range(4)))
def test_merged_clients_have_the_moments_of_all_rows_in_any_order_of_columns(cut, order):
    regimes, names = regimes_of(), [f"x{i + 1}" for i in range(4)]
    whole = client_of(regimes)
    rows = {k: v[cut:][:, order] for k, v in regimes.items()}
    later = jc.Client.from_samples(
        "lab-1",
        observational=rows.pop("control"),
        interventions=rows,
        features=[names[i] for i in order],
    )
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


def test_clients_that_do_not_belong_together_are_not_merged():
    regimes = regimes_of()
    client = client_of(regimes)
    with pytest.raises(jc.InputError, match="already in the file"):
        merge_clients(client, client)
    with pytest.raises(jc.InputError, match="client 'lab-2'"):
        merge_clients(client, client_of(regimes_of(seed=1), "lab-2"))
    with pytest.raises(jc.InputError, match="features differ: x5"):
        merge_clients(client, client_of(regimes_of(d=5)))
    halves = {**regimes_of(seed=1), "pump": [regimes["pump"][:90], regimes["pump"][90:]]}
    with pytest.raises(jc.InputError, match="1 strength cannot be merged with 2"):
        merge_clients(client, client_of(halves))
