"""Archives and tables that claim more than they hold are refused before memory is taken; wide
tables are read."""

import gzip
import io
import json
import struct
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as files

import jigsaw_crl as jc
from jigsaw_crl.study import write_moments
from jigsaw_crl.study.delimited import csv_table
from jigsaw_crl.study.files import opened
from jigsaw_crl.study.manifest import Reading

from .tables import claim_page, csv, good, parquet

MEGABYTE = 1 << 20


def _claim(shape, kind="<f8", fortran=False):
    """The beginning of an array file that claims a shape and has no data."""
    head = io.BytesIO()
    about = {"descr": kind, "fortran_order": fortran, "shape": shape}
    np.lib.format.write_array_header_1_0(head, about)
    return head.getvalue()


def _archive(path, arrays, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in arrays.items():
            archive.writestr(f"{name}.npy", data)
    return path


def _appended(path, name, parts, method=zipfile.ZIP_DEFLATED):
    """Add an array to an archive, part by part."""
    with (
        zipfile.ZipFile(path, "a", method, compresslevel=1) as archive,
        archive.open(f"{name}.npy", "w") as file,
    ):
        for part in parts:
            file.write(part)


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("<f8", (1, 10**10)),
        ("<f8", (10**12, 3)),
        ("<f8", (2**40, 2**40)),
        ("|u1", (1, 10**9)),
        ("<f8", (-3, -4)),
    ],
)
@pytest.mark.parametrize("fortran", [False, True])
def test_an_array_that_claims_more_than_the_archive_holds_is_refused(
    kind, shape, fortran, tmp_path, refused, little_memory
):
    path = _archive(tmp_path / "lab.npz", {"control": _claim(shape, kind, fortran)})
    assert path.stat().st_size < 500
    refused(["check", path], "lab.npz", "'control'", "claims shape")


@pytest.mark.parametrize("name", ["features", "regime"])
def test_texts_that_take_no_bytes_are_refused(name, tmp_path, refused, little_memory):
    arrays = {"X": _claim((3, 2)) + bytes(48), "regime": _claim((3,), "<U1") + bytes(12)}
    path = _archive(tmp_path / "lab.npz", arrays | {name: _claim((10**10,), "<U0")})
    refused(["check", path], "lab.npz", name, "empty")


@pytest.mark.parametrize("name", ["features", "regime"])
def test_texts_beyond_unicode_are_refused(name, tmp_path, refused):
    arrays = {
        "X": _claim((3, 2)) + bytes(48),
        "regime": _claim((3,), "<U7") + np.full(3, "control").tobytes(),
        name: _claim((2 if name == "features" else 3,), "<U1") + b"\xff" * 12,
    }
    refused(["check", _archive(tmp_path / "lab.npz", arrays)], "lab.npz", "beyond Unicode")


def test_an_array_of_more_columns_than_can_be_used_is_refused(tmp_path, refused, little_memory):
    data = _claim((2, 10**6)) + bytes(2 * 8 * 10**6)
    path = _archive(tmp_path / "lab.npz", {"control": data}, zipfile.ZIP_DEFLATED)
    refused(["check", path], "1000000 columns")


def test_a_compressed_array_is_refused_if_it_fills_memory(tmp_path, refused, little_memory):
    parts = (_claim((10**7, 2), fortran=True), *[bytes(10**6)] * 160)
    _appended(tmp_path / "lab.npz", "control", parts)
    refused(["check", tmp_path / "lab.npz"], "'control'", "152 MB", "not compressed")


def test_a_long_header_of_an_array_is_not_read(tmp_path, refused, little_memory):
    head = b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31)
    _appended(tmp_path / "lab.npz", "control", (head, *[bytes(MEGABYTE)] * 150))
    refused(["check", tmp_path / "lab.npz"], "lab.npz", "array version (2, 0)")


@pytest.mark.parametrize("long", ["regime", "plate"])
def test_regimes_and_batches_of_an_archive_are_read_beside_its_rows(long, tmp_path, little_memory):
    # 140 MB of text.
    n, path = 100_000, tmp_path / "lab.npz"
    rows = np.random.default_rng(0).normal(size=(n, 2))
    values = {"regime": ("control", "pump"), "plate": ("p1", "p2")}
    short = {key: np.repeat(names, n // 2) for key, names in values.items() if key != long}
    np.savez(path, X=rows, **short)
    texts = (np.full(n // 100, name, "<U350").tobytes() for name in values[long])
    parts = (_claim((n,), "<U350"), *(r for r in texts for _ in range(50)))
    _appended(path, long, parts, zipfile.ZIP_STORED)
    client = jc.read_client(path, batch="plate")
    assert client.n_samples == {"control": n // 2, "pump": n // 2}
    assert client.batches == ("p1", "p2")


@pytest.mark.parametrize("name", ["regime", "plate"])
def test_a_text_of_a_million_characters_is_refused_in_a_column(
    name, tmp_path, refused, little_memory
):
    short = _claim((3,), "<U7") + np.full(3, "control").tobytes()
    arrays = {"X": _claim((3, 2)) + bytes(48), "regime": short, "plate": short}
    arrays[name] = _claim((3,), "<U1000000") + bytes(12 * 10**6)
    path = _archive(tmp_path / "lab.npz", arrays, zipfile.ZIP_DEFLATED)
    refused(["check", path, "--batch", "plate"], f"'{name}'", "4000000 bytes each")


def _header(labels, d):
    """The header of exact moments of d features."""
    header = {
        "format": "jigsaw-crl/moments",
        "version": 1,
        "written_by": "a test",
        "client": "lab",
        "control": "control",
        "labels": labels,
        "n_latent": len(labels),
        "features": [f"x{i}" for i in range(d)],
        "regimes": [{"n": None}] * (1 + len(labels)),
    }
    return np.array(json.dumps(header))


def test_a_small_moments_archive_that_unpacks_to_much_is_refused(tmp_path, refused, little_memory):
    d = 2_000
    path = tmp_path / "lab.moments.npz"
    np.savez_compressed(path, header=_header(["a", "b"], d), mean=np.zeros((3, d)))
    _appended(path, "covariance", (_claim((3, d, d)), *[bytes(8 * d)] * 3 * d))
    assert path.stat().st_size < MEGABYTE
    refused(["check", path], "lab.moments.npz", "'covariance'", "91 MB")


@pytest.mark.parametrize(
    ("batches", "message"),
    [({"p1": 10, "p2": 11}, ("batch_mean", "(4, 8000000)")), ({}, ("batch_mean", "122 MB"))],
)
def test_shapes_of_batches_are_compared_with_the_header_before_they_are_read(
    batches, message, tmp_path, refused, little_memory
):
    path = write_moments(jc.read_client(csv(good(), tmp_path / "lab.csv")), tmp_path / "lab.npz")
    with np.load(path) as archive:
        arrays = {key: archive[key] for key in archive.files}
    header = json.loads(str(arrays["header"]))
    header["regimes"][0] |= {"n": 20, "batches": batches}
    path.unlink()
    np.savez(path, **arrays | {"header": np.array(json.dumps(header))})
    # 128 MB of means, in a file of much less.
    _appended(path, "batch_mean", (_claim((4, 8_000_000), "<f4"), *[bytes(10**6)] * 128))
    refused(["check", path], *message)


# -- wide tables ------------------------------------------------------------------------------
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_csv_with_twenty_thousand_columns_is_read(delimiter, tmp_path):
    names = [f"ENSG{i:011d}.1" for i in range(20_000)]
    rows = np.round(np.random.default_rng(1).normal(size=(6, len(names))), 12)
    lines = [delimiter.join(["regime", *names])]
    for i, row in enumerate(rows):
        lines.append(delimiter.join(["pump" if i % 2 else "control", *map(repr, row.tolist())]))
    path = tmp_path / "wide.csv"
    path.write_text("\n".join(lines) + "\n")
    assert len(lines[0]) > 128 * 1024
    with opened(Reading.of(path)) as reading:
        source = csv_table(reading)
        assert source.features == tuple(names)
        chunks = list(source.rows(source))
    np.testing.assert_array_equal(np.vstack([c.rows for c in chunks]), rows)
    coded = [c.beside["regime"] for c in chunks]
    regimes = [names[code] for names, codes in coded for code in codes]
    assert regimes == ["control", "pump"] * 3


@pytest.mark.parametrize("name", ["lab.csv", "lab.csv.gz", "lab.parquet"])
def test_a_table_of_more_columns_than_can_be_used_is_refused(name, tmp_path, refused, monkeypatch):
    from jigsaw_crl.study import table

    monkeypatch.setattr(table, "MOST_COLUMNS", 1_000)
    path = tmp_path / name
    names = ["regime", *(f"x{i}" for i in range(1_000))]
    if name.endswith("parquet"):
        files.write_table(
            pa.table({n: ["control"] if n == "regime" else [0.5] for n in names}), path
        )
    else:
        text = "\n".join([",".join(names), ",".join(["control", *["1"] * 1_000])]) + "\n"
        path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    refused(["check", path], name, "1001 columns")


@pytest.mark.slow
def test_a_compressed_line_without_an_end_is_refused(tmp_path, refused):
    path = tmp_path / "lab.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(100):
            file.write(b"x" * MEGABYTE)
    refused(["check", path], "lab.csv.gz", "longer than 64 MB")


def test_a_page_that_claims_gigabytes_takes_no_memory(tmp_path, refused):
    path = claim_page(parquet(good(), tmp_path / "lab.parquet"))
    before = pa.default_memory_pool().max_memory()
    refused(["check", path], "lab.parquet")
    assert pa.default_memory_pool().max_memory() < before + 100 * MEGABYTE


@pytest.mark.slow
def test_a_text_that_unpacks_to_far_more_than_its_file_is_refused(tmp_path, refused, little_memory):
    path = tmp_path / "lab.parquet"
    pump = pa.py_buffer(bytes(80 * MEGABYTE))
    offsets = pa.py_buffer(np.array([0, pump.size], dtype=np.int32))
    text = pa.StringArray.from_buffers(1, offsets, pump)
    table = pa.table({"regime": text, "x": [1.0]})
    files.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=False)
    assert path.stat().st_size < MEGABYTE
    refused(["check", path], "lab.parquet", "row group 1 would take 80 MB", "shorter texts")
