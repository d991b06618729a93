"""Checks of what a client is built from; most are tested through its constructors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.labels import label_key
from jigsaw_crl.client.checks import check_rank
from jigsaw_crl.client.given import given_matrices


@given(st.integers(-10_000, 10_000))
def test_a_number_has_one_key_however_it_is_written(number):
    assert label_key(f"{number}.0") == label_key(f"{number}") == label_key(f"{number}.00 ")
    assert label_key(f"{number}") != label_key(f"{number + 1}")


def test_a_list_of_matrices_is_several_and_a_list_of_rows_is_one():
    matrix = np.ones((4, 2))
    data = {"a": [matrix, matrix], "b": matrix, "c": matrix.tolist(), "d": [[1.0, 2.0], [3.0]]}
    given = given_matrices("lab", matrix, data, "control", n_samples=7)
    assert [one.regime for one in given] == ["control", "a", "a", "b", "c", "d"]
    assert {one.beside["n_samples"] for one in given} == {7}
    sizes = {"control": 5, "a": [3, 4], "b": 2, "c": 6, "d": 1}
    given = given_matrices("lab", matrix, data, "control", n_samples=sizes)
    assert [one.beside["n_samples"] for one in given] == [5, 3, 4, 2, 6, 1]


def test_a_low_rank_is_explained_by_units_where_they_differ():
    with pytest.raises(InputError, match="units differ too much"):
        check_rank(np.diag([1e14, 1.0]), 2, client="lab", regime="control")
    with pytest.raises(InputError, match="'clock' is the widest"):
        check_rank(
            np.diag([1.0, 1e14]), 2, client="lab", regime="control", features=["flow", "clock"]
        )
    with pytest.raises(InputError, match="copies of other columns"):
        check_rank(np.ones((2, 2)), 2, client="lab", regime="control")
    check_rank(np.diag([1e8, 1.0]), 2, client="lab", regime="control")
