"""Rows in memory, with groups, trimming and missing values, as a table has them."""

import numpy as np
import pytest

import jigsaw_crl as jc

from ..study.tables import client_of, frame_of


def arrays(seed=0, n=1_200):
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(5, 3))
    gains = {"control": 1, "a": (3, 1, 1), "b": (1, 3, 1), "c": (1, 1, 3)}
    found = {r: (rng.normal(size=(n, 3)) * gain) @ G.T for r, gain in gains.items()}
    for x in found.values():
        x[::50] *= 8
        x[3::40, 1] = np.nan
    return found


def both(regimes, group=None, **asked):
    direct, frame, named = client_of(regimes, group=group, **asked), frame_of(regimes), {}
    if group is not None:
        frame["subject"] = np.concatenate([group[regime] for regime in regimes])
        named = {"group": "subject"}
    return direct, jc.Client.from_table(frame, name="lab-1", **named, **asked)


@pytest.mark.parametrize(
    "asked",
    [{"missing": "drop"}, {"missing": "drop", "trim": 0.05}, {"missing": "em"}],
)
@pytest.mark.parametrize("grouped", [False, True])
def test_rows_and_a_table_give_the_same_client(asked, grouped):
    regimes, rng = arrays(), np.random.default_rng(1)
    group = {r: rng.integers(0, 60, len(x)).astype(str) for r, x in regimes.items()}
    direct, read = both(regimes, group if grouped else None, **asked)
    assert direct.n_samples == read.n_samples
    for (_, a), (_, b) in zip(direct.named_regimes, read.named_regimes, strict=True):
        assert a.covariance == pytest.approx(b.covariance, rel=1e-9)
        assert (a.n, a.counted, a.groups) == (b.n, b.counted, b.groups)


def test_bad_words_are_refused_in_one_line():
    regimes = arrays()
    for asked, said in (
        ({"missing": "refuse"}, "values are missing or infinite"),
        ({"group": {"control": "x"}, "missing": "drop"}, "group has no entry for this regime"),
        ({"group": {r: ["x"] for r in regimes}, "missing": "drop"}, "group has shape"),
        *(({"trim": share}, "trim is") for share in (-0.1, 0.6, "5 %", True, np.nan)),
    ):
        with pytest.raises(jc.InputError, match=said):
            client_of(regimes, **asked)
    empty = {r: np.full((30, 5), np.nan) for r in ("control", "a")}
    with pytest.raises(jc.InputError, match=r"regime 'control': none of its 30 rows is complete"):
        both(empty, missing="drop")


def test_one_number_names_the_batch_of_all_rows_of_several_matrices():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 30, 2))
    client = jc.Client.from_samples(
        "lab", observational=x[0], interventions={"v": [x[1], x[2]], "w": x[3]},
        batch={"control": 1, "v": 2, "w": 1},
    )  # fmt: skip
    assert [[b.name for b in m.batches] for m in client.interventions["v"]] == [["2"], ["2"]]
