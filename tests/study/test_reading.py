"""From files and tables to clients."""

from __future__ import annotations

import string
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl.cli.simulated import write_table
from jigsaw_crl.study import merge_clients, read_any, read_client_with_findings, write_moments

FORMATS = ["csv", "parquet", "npz", "h5ad"]
SLOW_OR_SHARED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


def _regimes(n: int = 200, d: int = 4, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        r: rng.normal(size=(n + i, d)) * (1 + i) for i, r in enumerate(["control", "pump", "valve"])
    }


def _frame(regimes: dict[str, np.ndarray]) -> pd.DataFrame:
    rows = np.vstack(list(regimes.values()))
    frame = pd.DataFrame(rows, columns=[f"x{i + 1}" for i in range(rows.shape[1])])
    frame["regime"] = np.repeat(list(regimes), [len(x) for x in regimes.values()])
    return frame


def _assert_same(a: jc.Client, b: jc.Client) -> None:
    """Equal to the last bit."""
    assert a.labels == b.labels
    assert a.n_latent == b.n_latent
    assert a.n_samples == b.n_samples
    regimes = [(a.control, b.control)]
    for label in a.labels:
        regimes += zip(a.interventions[label], b.interventions[label], strict=True)
    for m, other in regimes:
        np.testing.assert_array_equal(m.mean, other.mean)
        np.testing.assert_array_equal(m.covariance, other.covariance)
        np.testing.assert_array_equal(m.fourth, other.fourth)


@pytest.fixture
def reference() -> jc.Client:
    regimes = _regimes()
    return jc.Client.from_samples(
        "lab-1", observational=regimes.pop("control"), interventions=regimes
    )


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_same_client(kind, tmp_path, reference):
    client = jc.read_client(write_table(_regimes(), tmp_path / f"lab-1.{kind}", kind))
    assert client.name == "lab-1"
    _assert_same(client, reference)


@pytest.mark.parametrize(
    "convert",
    [lambda f: f, pl.from_pandas, lambda f: pl.from_pandas(f).lazy(), pa.Table.from_pandas],
)
def test_every_table_in_memory_gives_the_same_client(convert, reference):
    client = jc.Client.from_table(convert(_frame(_regimes())), name="lab-1")
    _assert_same(client, reference)


def test_a_moments_file_stands_in_for_the_rows(tmp_path, reference):
    path = write_moments(reference, tmp_path / "any name.npz")
    again = jc.read_client(path)
    assert again.name == "lab-1"
    assert again.features == reference.features
    assert len(again.control.parts) == len(reference.control.parts) > 1
    _assert_same(again, reference)


def test_exact_moments_survive_their_file(tmp_path):
    client = jc.simulate.setting("A", 0).client(0)
    again = jc.read_client(write_moments(client, tmp_path / "m.npz"))
    assert again.is_population
    np.testing.assert_array_equal(again.control.covariance, client.control.covariance)


def test_rows_in_any_order_give_the_same_labels_and_sizes(tmp_path, reference):
    frame = _frame(_regimes()).sample(frac=1, random_state=0)
    frame.to_parquet(tmp_path / "lab-1.parquet", index=False)
    client = jc.read_client(tmp_path / "lab-1.parquet")
    assert client.n_samples == reference.n_samples
    np.testing.assert_allclose(
        client.control.covariance, reference.control.covariance, rtol=1e-12, atol=1e-14
    )


def test_a_partitioned_folder_is_one_client(tmp_path, reference):
    frame = _frame(_regimes())
    for regime, part in frame.groupby("regime", sort=False):
        folder = tmp_path / "lab-1" / f"regime={regime}"
        folder.mkdir(parents=True)
        half = len(part) // 2
        for i, piece in enumerate((part[:half], part[half:])):
            piece.drop(columns="regime").to_parquet(folder / f"{i}.parquet", index=False)
    _assert_same(jc.read_client(tmp_path / "lab-1"), reference)
    assert read_any(tmp_path / "lab-1").clients[0].name == "lab-1"
    assert jc.read_study(tmp_path).clients[0].name == "lab-1"


def test_an_archive_may_hold_one_array_per_regime(tmp_path, reference):
    np.savez(tmp_path / "lab-1.npz", **_regimes())
    _assert_same(jc.read_client(tmp_path / "lab-1.npz"), reference)


def test_an_archive_in_fortran_order_is_read_alike(tmp_path, reference):
    arrays = {k: np.asfortranarray(v) for k, v in _regimes().items()}
    np.savez_compressed(tmp_path / "lab-1.npz", **arrays)
    _assert_same(jc.read_client(tmp_path / "lab-1.npz"), reference)


def test_sparse_anndata_is_read_alike(tmp_path):
    anndata = pytest.importorskip("anndata", reason="the extra 'anndata' is not installed")
    from scipy.sparse import csr_matrix

    regimes = {k: np.where(np.abs(v) > 1, v, 0) for k, v in _regimes().items()}
    rows = np.vstack(list(regimes.values()))
    names = np.repeat(list(regimes), [len(x) for x in regimes.values()])
    obs = pd.DataFrame({"perturbation": names}, index=[str(i) for i in range(len(rows))])
    anndata.AnnData(csr_matrix(rows), obs=obs).write_h5ad(tmp_path / "lab-1.h5ad")
    client = jc.read_client(tmp_path / "lab-1.h5ad")
    dense = jc.Client.from_samples(
        "lab-1", observational=regimes.pop("control"), interventions=regimes
    )
    _assert_same(client, dense)


def test_columns_may_have_other_names(tmp_path, reference):
    frame = _frame(_regimes()).rename(columns={"regime": "arm"})
    frame["arm"] = frame["arm"].replace("control", "untreated")
    frame.to_csv(tmp_path / "x.csv", index=False)
    client = jc.read_client(tmp_path / "x.csv", regime="arm", control="untreated", name="lab-1")
    assert client.control_name == "untreated"
    np.testing.assert_array_equal(client.control.covariance, reference.control.covariance)


@pytest.mark.parametrize(("delimiter", "name"), [(";", "a.csv"), ("\t", "a.tsv")])
def test_semicolons_and_tabs_are_understood(delimiter, name, tmp_path, reference):
    _frame(_regimes()).to_csv(tmp_path / name, index=False, sep=delimiter)
    _assert_same(jc.read_client(tmp_path / name, name="lab-1"), reference)


def test_a_zipped_csv_file_with_a_byte_order_mark_is_understood(tmp_path, reference):
    _frame(_regimes()).to_csv(tmp_path / "lab-1.csv.gz", index=False, encoding="utf-8-sig")
    _assert_same(jc.read_client(tmp_path / "lab-1.csv.gz"), reference)


def test_regimes_may_be_whole_numbers(tmp_path):
    frame = _frame(_regimes())
    frame["regime"] = frame.regime.map({"control": 0, "pump": 1, "valve": 2})
    frame.to_parquet(tmp_path / "lab-1.parquet", index=False)
    client = jc.read_client(tmp_path / "lab-1.parquet", control="0")
    assert client.labels == ("1", "2")


def test_text_and_constant_columns_are_left_out_and_reported(tmp_path, reference):
    frame = _frame(_regimes()).assign(batch="b1", shift=3.25, when=pd.Timestamp("2026-01-01"))
    for kind in ("csv", "parquet"):
        path = tmp_path / f"lab-1.{kind}"
        (frame.to_csv if kind == "csv" else frame.to_parquet)(path, index=False)
        client, findings = read_client_with_findings(path)
        _assert_same(client, reference)
        text = " ".join(f.message for f in findings)
        assert all(name in text for name in ("batch", "shift", "when"))


def test_a_pandas_index_that_was_written_is_left_out(tmp_path, reference):
    _frame(_regimes()).to_csv(tmp_path / "lab-1.csv")
    _assert_same(jc.read_client(tmp_path / "lab-1.csv"), reference)


def test_a_column_can_be_ignored(tmp_path, reference):
    frame = _frame(_regimes()).assign(noise=np.arange(603.0))
    frame.to_csv(tmp_path / "lab-1.csv", index=False)
    _assert_same(jc.read_client(tmp_path / "lab-1.csv", ignore=["noise"]), reference)


def test_tomorrows_rows_are_added_to_todays_moments(tmp_path):
    regimes = _regimes()
    whole = jc.Client.from_samples(
        "lab-1",
        observational=regimes["control"],
        interventions={k: v for k, v in regimes.items() if k != "control"},
    )
    halves = []
    for part in (slice(None, 90), slice(90, None)):
        rows = {k: v[part] for k, v in regimes.items()}
        halves.append(
            jc.Client.from_samples("lab-1", observational=rows.pop("control"), interventions=rows)
        )
    merged = merge_clients(*halves)
    assert merged.n_samples == whole.n_samples
    for label in whole.labels:
        np.testing.assert_allclose(
            merged.interventions[label][0].covariance,
            whole.interventions[label][0].covariance,
            rtol=1e-12,
            atol=1e-13,
        )


# -- studies ------------------------------------------------------------------------------------


def _study(root: Path) -> Path:
    root.mkdir(exist_ok=True)
    write_table(_regimes(seed=1), root / "lab-1.csv", "csv")
    write_table(_regimes(seed=2), root / "lab-2.parquet", "parquet")
    return root


def test_a_study_has_one_client_per_file(tmp_path):
    root = _study(tmp_path / "study")
    (root / "truth").mkdir()
    (root / "truth" / "truth.json").write_text("{}")
    (root / ".hidden.csv").write_text("")
    (root / "README.md").write_text("notes")
    study = jc.read_study(root)
    assert [c.name for c in study] == ["lab-1", "lab-2"]
    assert study.labels == ("pump", "valve")
    assert study["lab-2"].n_features == 4
    assert study.name == "study"


def test_a_manifest_overrides_names_and_columns(tmp_path):
    root = _study(tmp_path / "study")
    frame = _frame(_regimes(seed=3)).rename(columns={"regime": "arm"})
    frame["arm"] = frame.arm.replace({"pump": "pump (5 V)", "valve": "pump (9 V)"})
    (root / "raw").mkdir()
    frame.to_csv(root / "raw" / "first lab.csv", index=False)
    (root / "study.toml").write_text(
        'name = "tunnel"\n'
        "[clients.lab-3]\n"
        'file = "raw/first lab.csv"\nregime = "arm"\nn_latent = 3\n'
        '[clients.lab-3.rename]\n"pump (5 V)" = "pump"\n"pump (9 V)" = "pump"\n'
    )
    for path in (root, root / "study.toml"):
        study = jc.read_study(path)
        assert study.name == "tunnel"
        assert {c.name for c in study} == {"lab-1", "lab-2", "lab-3"}
        lab = study["lab-3"]
        assert lab.labels == ("pump",)
        assert len(lab.interventions["pump"]) == 2
        assert lab.n_latent == 3


def test_the_command_line_wins_over_the_manifest(tmp_path):
    root = tmp_path / "study"
    root.mkdir()
    _frame(_regimes()).rename(columns={"regime": "arm"}).to_csv(root / "a.csv", index=False)
    (root / "study.toml").write_text('regime = "other"\n')
    assert jc.read_study(root, regime="arm").labels == ("pump", "valve")


def test_a_study_survives_pickling():
    import pickle

    study = jc.Study("s", tuple(jc.simulate.setting("A", 0).clients()), sources={"x": "y"})
    again = pickle.loads(pickle.dumps(study))
    assert again.sources == study.sources
    assert [c.name for c in again] == [c.name for c in study]


def test_clients_with_one_name_are_refused():
    client = jc.simulate.setting("A", 0).client(0)
    with pytest.raises(jc.InputError, match="two clients"):
        jc.Study("s", (client, client))


# -- properties ---------------------------------------------------------------------------------

_LABELS = st.lists(
    st.text(string.ascii_letters + string.digits + " .,;'\"äß漢-", min_size=1, max_size=12)
    .map(str.strip)
    .filter(lambda s: s and s.casefold() not in ("control", "na", "n/a", "null", "none", "nan")),
    min_size=1,
    max_size=4,
    unique_by=lambda s: s.casefold(),
)


@settings(max_examples=25, deadline=None, suppress_health_check=SLOW_OR_SHARED)
@given(labels=_LABELS, kind=st.sampled_from(["csv", "parquet", "npz"]), seed=st.integers(0, 999))
def test_any_labels_and_numbers_survive_every_format(labels, kind, seed, tmp_path):
    rng = np.random.default_rng(seed)
    d = len(labels) + 1
    scale = 10.0 ** rng.uniform(-3, 3)
    regimes = {r: scale * rng.normal(size=(d + 5, d)) for r in ("control", *labels)}
    path = write_table(regimes, tmp_path / f"lab.{kind}", kind)
    client = jc.read_client(path)
    assert client.labels == tuple(sorted(labels))
    expected = jc.Moments.from_rows(regimes["control"])
    np.testing.assert_array_equal(client.control.covariance, expected.covariance)


@settings(max_examples=40, deadline=None, suppress_health_check=SLOW_OR_SHARED)
@given(data=st.binary(max_size=400), ending=st.sampled_from([".csv", ".parquet", ".npz", ".h5ad"]))
def test_arbitrary_bytes_are_refused_by_name(data, ending, tmp_path):
    path = tmp_path / f"lab{ending}"
    path.write_bytes(data)
    with pytest.raises(jc.InputError) as caught:
        jc.read_client(path)
    assert "\n" not in str(caught.value)
    assert path.name in str(caught.value)


@settings(max_examples=30, deadline=None, suppress_health_check=SLOW_OR_SHARED)
@given(cut=st.integers(1, 3000), kind=st.sampled_from(["parquet", "npz", "h5ad"]))
def test_a_truncated_file_never_gives_a_client(cut, kind, tmp_path):
    path = write_table(_regimes(50), tmp_path / f"lab.{kind}", kind)
    data = path.read_bytes()
    path.write_bytes(data[: max(len(data) - cut, 0)])
    with pytest.raises(jc.InputError):
        jc.read_client(path)


# -- archives -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["features", "columns"])
def test_an_archive_of_regimes_may_name_its_columns(name, tmp_path):
    regimes = _regimes()
    names = [f"sensor {i}" for i in range(regimes["control"].shape[1])]
    np.savez(tmp_path / "lab-1.npz", **regimes, **{name: np.array(names)})
    client = jc.read_client(tmp_path / "lab-1.npz")
    assert client.features == tuple(names)
    assert set(client.labels) == set(regimes) - {"control"}


@pytest.mark.parametrize("layout", ["one array per regime", "X and regime"])
def test_a_column_of_an_archive_can_be_ignored(layout, tmp_path):
    regimes = _regimes()
    path = tmp_path / "lab-1.npz"
    if layout == "X and regime":
        labels = np.repeat(list(regimes), [len(x) for x in regimes.values()])
        np.savez(path, X=np.vstack(list(regimes.values())), regime=labels, notes=np.array(["hm"]))
    else:
        np.savez(path, **regimes, notes=np.array(["hm"]))
    client = jc.read_client(path, ignore=["x2", "notes"])
    whole = jc.read_client(path, ignore=["notes"])
    assert client.features == tuple(f for f in whole.features if f != "x2")
    kept = [i for i, f in enumerate(whole.features) if f != "x2"]
    np.testing.assert_allclose(
        client.control.covariance, whole.control.covariance[np.ix_(kept, kept)]
    )
    with pytest.raises(jc.InputError, match=r"no column 'x22' to ignore\. Did you mean 'x2'"):
        jc.read_client(path, ignore=["x22", "notes"])
