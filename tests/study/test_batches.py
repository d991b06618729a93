"""The batch and the group column, in every format that a client can be read from."""

import numpy as np
import polars as pl
import pytest

import jigsaw_crl as jc
from jigsaw_crl.study import collected

from .tables import assert_same, client_of, frame_of, regimes_of, write_frame


def table():
    """Rows of three regimes; plates are text, and the last regime has a plate of its own."""
    frame = frame_of(regimes_of())
    plates = np.array(["p1", "p2", "p3"])[np.arange(len(frame)) % 3]
    frame["plate"] = np.where(frame["regime"] == "valve", "p4", plates)
    return frame


def expected():
    plates = {k: part["plate"].to_numpy() for k, part in table().groupby("regime")}
    return client_of(regimes_of(), batch=plates)


def assert_same_batches(a, b):
    assert_same(a, b)
    assert a.batches == b.batches
    for (_, m), (_, other) in zip(a.named_regimes, b.named_regimes, strict=True):
        assert [(x.name, x.n) for x in m.batches] == [(x.name, x.n) for x in other.batches]
        for x, y in zip(m.batches, other.batches, strict=True):
            np.testing.assert_array_equal(x.mean, y.mean)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "npz", "h5ad"])
def test_every_format_gives_the_batches_groups_and_moments_of_the_rows(ending, tmp_path):
    path = write_frame(table(), tmp_path / f"lab-1.{ending}", ending)
    client = jc.read_client(path, batch="plate")
    assert client.batches == ("p1", "p2", "p3", "p4")
    assert client.n_features == 4
    assert_same_batches(client, expected())
    grouped = jc.read_client(path, group="plate")
    assert_same(grouped, jc.Client.from_table(table(), name="lab-1", group="plate"))
    assert (grouped.control.groups, grouped.interventions["valve"][0].groups) == (3, 1)


@pytest.mark.parametrize("convert", [lambda x: x, pl.from_pandas])
def test_tables_in_memory_have_batches_and_groups_whatever_the_chunks(convert, monkeypatch):
    frame = convert(table())
    groups = jc.Client.from_table(frame, name="lab-1", group="plate")
    monkeypatch.setattr("jigsaw_crl.study.arrow.chunk_rows", lambda _: 7)
    client = jc.Client.from_table(frame, name="lab-1", batch="plate")
    assert_same_batches(client, expected())
    assert_same(jc.Client.from_table(frame, name="lab-1", group="plate"), groups)


@pytest.mark.parametrize("what", ["batch", "group"])
def test_the_manifest_names_the_column_and_the_caller_may_override_it(what, tmp_path):
    def found(study):
        client = study["lab-1"]
        return len(client.control.batches) if what == "batch" else client.control.groups

    frame = table().assign(day="monday")
    frame.to_csv(tmp_path / "lab-1.csv", index=False, float_format="%.17g")
    (tmp_path / "study.toml").write_text(f'{what} = "plate"\n')
    read = jc.read_study(tmp_path)
    assert found(read) == 3
    recorded = [f.message for f in read.findings if f.check == "grouped-rows"]
    said = "rows are taken in groups by 'plate': 3 of 'control', 3 of 'pump', 1 of 'valve'"
    assert recorded == ([said] if what == "group" else [])
    assert found(jc.read_study(tmp_path, **{what: "day"})) == 1
    (tmp_path / "study.toml").write_text(f'{what} = "plate"\n[clients.lab-1]\n{what} = "day"\n')
    assert found(jc.read_study(tmp_path)) == 1


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"batch": "plat"}, r"no column 'plat' for the batch.*did you mean 'plate'\?"),
        ({"group": "plat"}, r"no column 'plat' for the group.*did you mean 'plate'\?"),
        ({"group": "regime"}, "the column 'regime' is both the regime and the group"),
        ({"group": "plate", "batch": "plate"}, "is both the batch and the group"),
    ],
)
def test_a_column_that_cannot_be_the_batch_or_the_group_is_refused(asked, message, tmp_path):
    path = write_frame(table(), tmp_path / "lab-1.csv", "csv")
    with pytest.raises(jc.InputError, match=f"(?i){message}"):
        jc.read_client(path, **asked)


@pytest.mark.parametrize("what", ["batch", "group"])
@pytest.mark.parametrize("value", [None, " "])
@pytest.mark.parametrize("ending", ["csv", "parquet", "h5ad"])
def test_a_row_without_a_batch_or_a_group_is_refused(what, ending, value, tmp_path):
    frame = table()
    frame.loc[4, "plate"] = value
    path = write_frame(frame, tmp_path / f"lab-1.{ending}", ending)
    with pytest.raises(jc.InputError, match=f"row 5 has no {what}"):
        jc.read_client(path, **{what: "plate"})


def test_decimal_numbers_are_no_batches():
    with pytest.raises(jc.InputError, match="batch column 'plate' holds decimal numbers"):
        jc.Client.from_table(table().assign(plate=1.5), name="lab-1", batch="plate")


def test_an_archive_with_one_array_per_regime_has_no_batch_column(tmp_path):
    np.savez(tmp_path / "lab-1.npz", **regimes_of())
    with pytest.raises(jc.InputError, match="one array per regime has no batch column"):
        jc.read_client(tmp_path / "lab-1.npz", batch="plate")


@pytest.mark.parametrize(
    ("what", "limit", "says"),
    [
        ("batch", "MOST_CELLS", "more than 100 combinations of regime and batch"),
        ("group", "MOST_GROUPS", "there are more than 100 groups"),
    ],
)
def test_a_column_with_too_many_values_is_refused(what, limit, says, monkeypatch):
    monkeypatch.setattr(collected, limit, 100)
    frame = frame_of(regimes_of())
    frame["plate"] = [f"row {i}" for i in range(len(frame))]
    with pytest.raises(jc.InputError, match=says):
        jc.Client.from_table(frame, name="lab-1", **{what: "plate"})
