"""Reads that were stopped go on where they were, with the same result to the last bit."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import jigsaw_crl as jc
from jigsaw_crl.cli import app as cli
from jigsaw_crl.study import checkpoint, delimited, read_client_with_findings, source, write_moments
from jigsaw_crl.study.checkpoint import Checkpoint
from jigsaw_crl.study.regime_streams import RegimeStreams
from jigsaw_crl.study.unfinished_file import FIRST_LINE, load, save

from ..client.wide_rows import wide_regimes

N = 130


def frame_of(columns: int) -> pd.DataFrame:
    """Rows of five regimes, of which the last two are mixed."""
    regimes = wide_regimes(columns, N, latents=4)
    rows = np.vstack(list(regimes.values())).round(4)
    table = pd.DataFrame(rows, columns=[f"gene {i}" for i in range(columns)])
    table = table.assign(regime=np.repeat(list(regimes), N), day=np.tile(["a", "b"], 5 * N // 2))
    return pd.concat([table[: 3 * N], table[3 * N :].sample(frac=1, random_state=0)])


@pytest.fixture(scope="module")
def wide() -> pd.DataFrame:
    return frame_of(510)


@pytest.fixture(scope="module")
def narrow() -> pd.DataFrame:
    return frame_of(12)


@pytest.fixture
def often(monkeypatch):
    """Small chunks, and a write after each."""
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", np.inf)
    monkeypatch.setattr(source, "_CHUNK_VALUES", 1)
    monkeypatch.setattr(delimited, "_BLOCK", 1 << 14)


def written(frame: pd.DataFrame, path: Path) -> Path:
    rows, names = frame.drop(columns=["regime", "day"]), frame["regime"].to_numpy(dtype=str)
    if path.name == "arrays.npz":
        np.savez(path, **{x: rows[names == x].to_numpy() for x in dict.fromkeys(names)})
    elif path.suffix == ".npz":
        np.savez(path, X=rows.to_numpy(), regime=names)
    elif path.suffix == ".parquet":
        rows.assign(regime=names).to_parquet(path, index=False, row_group_size=190)
    elif path.suffix == ".h5ad":
        anndata = pytest.importorskip("anndata", reason="the extra 'anndata' is not installed")
        obs = pd.DataFrame({"perturbation": names}, index=[str(i) for i in range(len(names))])
        x = np.where(np.abs(rows) > rows.std(axis=0).to_numpy(), rows, 0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            anndata.AnnData(csr_matrix(x), obs=obs).write_h5ad(path)
    elif path.suffix == "":
        for i in range(3):
            path.mkdir(exist_ok=True)
            written(frame[i::3], path / f"part-{i}.parquet")
    else:
        rows.assign(regime=names).to_csv(path, index=False)
    return path


class Reads:
    """Reads a table several times, each stopped after some chunks."""

    def __init__(self, monkeypatch, path: Path, **options: object) -> None:
        self.path, self.options = path, options
        self.said: list[str] = []
        self.kept = Checkpoint(path.with_name("kept.unfinished"), self.said.append)
        self.rows, self.chunks, self.last = 0, 0, np.inf
        add = RegimeStreams.add

        def counted(collected: RegimeStreams, chunk: source.Chunk) -> None:
            if self.chunks == self.last:
                raise KeyboardInterrupt
            self.chunks += 1
            self.rows += len(chunk.codes)
            add(collected, chunk)

        monkeypatch.setattr(RegimeStreams, "add", counted)

    def stop_after(self, chunks: int) -> None:
        self.last = self.chunks + chunks
        with pytest.raises(KeyboardInterrupt):
            self.read()
        self.last = np.inf

    def read(self) -> jc.Client:
        return read_client_with_findings(self.path, checkpoint=self.kept, **self.options)[0]

    def moments(self) -> bytes:
        """What the moments file of the whole table holds."""
        found = write_moments(self.read(), self.path.with_name("found.npz")).read_bytes()
        self.kept.remove()
        return found


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("name", ["a.npz", "a.parquet", "a.h5ad", "a.csv"])
def test_a_wide_table_is_read_on_in_both_reads(tmp_path, wide, monkeypatch, name):
    monkeypatch.setattr(delimited, "_BLOCK", 1 << 19)
    reads = Reads(monkeypatch, written(wide, tmp_path / name))
    expected = reads.moments()
    rows, chunks = reads.rows // 2, reads.chunks // 2
    assert rows == len(wide)
    assert chunks > 2
    reads.stop_after(2)
    reads.stop_after(chunks - 2 + 2)
    assert reads.moments() == expected
    # No row was read twice.
    assert reads.rows == 2 * 2 * rows
    first, second = (x.removeprefix(str(reads.kept.path)) for x in reads.said)
    assert re.fullmatch(r" holds an unfinished run: going on after row \d+", first)
    assert re.fullmatch(f"{first[:-3]}\\d+ of the second read", second)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("name", ["arrays.npz", "a.csv.gz", "a.tsv", "folder"])
def test_a_narrow_table_is_read_on(tmp_path, narrow, monkeypatch, name):
    reads = Reads(monkeypatch, written(narrow, tmp_path / name))
    expected = reads.moments()
    for _ in range(2):
        reads.stop_after(1)
    assert reads.moments() == expected
    assert reads.rows == 2 * len(narrow)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("options", [{"batch": "day"}, {"group": "day"}, {"missing": "drop"}])
def test_batches_groups_and_rows_left_out_are_kept(tmp_path, narrow, monkeypatch, options):
    table = narrow.reset_index(drop=True)
    table.loc[[3, 600], "gene 4"] = np.nan
    table = table if "missing" in options else table.dropna()
    table = table if "day" in options.values() else table.drop(columns="day")
    table.to_parquet(tmp_path / "a.parquet")
    reads = Reads(monkeypatch, tmp_path / "a.parquet", **options)
    expected = reads.moments()
    said = read_client_with_findings(reads.path, **options)[1]
    reads.stop_after(2)
    assert read_client_with_findings(reads.path, checkpoint=reads.kept, **options)[1] == said
    reads.kept.remove()
    reads.stop_after(2)
    assert reads.moments() == expected


@pytest.mark.usefixtures("often")
def test_what_is_kept_of_another_table_is_not_used(tmp_path, narrow, monkeypatch):
    path = written(narrow, tmp_path / "a.npz")
    reads = Reads(monkeypatch, path)
    reads.stop_after(2)
    changes: list[Callable[[], object]] = [
        lambda: os.utime(path, ns=(0, 0)),
        lambda: reads.options.update(n_latent=4),
        lambda: written(narrow[:-1], path),
    ]
    for change in changes:
        change()
        reads.said.clear()
        reads.stop_after(2)
        (line,) = reads.said
        assert "is of another table or of other options: reading from the beginning" in line
    found = reads.moments()
    assert not reads.kept.path.exists()
    assert reads.moments() == found


@pytest.mark.usefixtures("often")
def test_a_damaged_file_is_not_used_and_one_of_somebody_else_not_touched(
    tmp_path, narrow, monkeypatch
):
    reads = Reads(monkeypatch, written(narrow, tmp_path / "a.npz"))
    expected = reads.moments()
    reads.stop_after(2)
    whole, path = reads.kept.path.read_bytes(), reads.kept.path
    claims = b'{"arrays": [["<f8", [1000000, 1000000], "C", true]], "tree": null}'
    for spoilt in (
        whole[:-8],
        whole[:30],
        whole.replace(b"Accumulator", b"os_system_i"),
        FIRST_LINE + len(claims).to_bytes(8, "little") + claims,
        FIRST_LINE + (10**5).to_bytes(8, "little") + b"[" * 10**5,
    ):
        path.write_bytes(spoilt)
        reads.said.clear()
        assert reads.moments() == expected
        assert "is damaged" in reads.said[0]
    path.write_text("my own notes")
    reads.said.clear()
    assert reads.moments() == expected
    assert "exists and is none of an unfinished run" in reads.said[0]
    reads.kept.remove()
    assert path.read_text() == "my own notes"


@pytest.mark.usefixtures("often")
def test_bad_rows_leave_no_file_behind(tmp_path, narrow, monkeypatch):
    table = narrow.copy()
    table.iloc[-1, 0] = np.nan
    reads = Reads(monkeypatch, written(table, tmp_path / "a.npz"))
    reads.stop_after(2)
    assert reads.kept.path.exists()
    assert reads.kept.path.stat().st_mode & 0o077 == 0
    with pytest.raises(jc.InputError, match="missing in column"):
        reads.read()
    assert not reads.kept.path.exists()


@pytest.mark.usefixtures("often")
def test_without_room_for_the_file_the_read_goes_on(tmp_path, narrow, monkeypatch):
    reads = Reads(monkeypatch, written(narrow, tmp_path / "a.npz"))
    expected = reads.moments()
    reads.kept = Checkpoint(tmp_path / "nowhere" / "kept", reads.said.append)
    assert reads.moments() == expected
    (line,) = reads.said
    assert "cannot be written" in line
    assert line.endswith("if this run is stopped, it begins anew")


def test_a_short_read_writes_nothing(tmp_path, narrow, monkeypatch):
    reads = Reads(monkeypatch, written(narrow, tmp_path / "a.npz"))
    reads.read()
    assert not reads.kept.path.exists()


def test_arrays_keep_their_order_and_nothing_of_other_modules_is_made(tmp_path):
    x = np.arange(12.0).reshape(3, 4)
    kept = [x, x.T, x[:, 1:3], x.astype(">i4")[:0], {("a", 1): {2.5, None}}, np.float32]
    with (tmp_path / "kept").open("wb") as file:
        save(kept, file)
    found = load(tmp_path / "kept")
    for own, other in zip(kept[:4], found[:4], strict=True):
        np.testing.assert_array_equal(own, other, strict=True)
    assert [a.flags.f_contiguous for a in found[:2]] == [False, True]
    assert found[4:] == kept[4:]
    text = b'{"arrays": [], "tree": ["record", "os:system", "true"]}'
    (tmp_path / "kept").write_bytes(FIRST_LINE + len(text).to_bytes(8, "little") + text)
    with pytest.raises(ValueError, match="not one of its classes"):
        load(tmp_path / "kept")
    with pytest.raises(ValueError, match="not one of its classes"):
        save(Path("x"), io.BytesIO())


@pytest.mark.usefixtures("often")
def test_a_fragment_is_begun_where_its_table_was_read_to(tmp_path, narrow, monkeypatch, capsys):
    reads = Reads(monkeypatch, written(narrow, tmp_path / "a.npz"))
    output = tmp_path / "a.json"
    command = ["fragment", str(reads.path), "-o", str(output)]
    assert cli.run(command) == 0
    expected, reads.last = output.read_bytes(), reads.chunks + 2
    output.unlink()
    assert cli.run(command) == cli.INTERRUPTED
    reads.last = np.inf
    assert cli.run(command) == 0
    assert output.read_bytes() == expected
    assert "a.json.unfinished holds an unfinished run" in capsys.readouterr().err
    assert reads.rows == 2 * len(narrow)
    assert {x.name for x in tmp_path.iterdir()} == {"a.npz", "a.json"}


# The command line in a process of its own that is killed, by nobody's leave, before a chunk.
KILLED = """
import os, signal, sys
from jigsaw_crl.cli import main
from jigsaw_crl.study import checkpoint, source
from jigsaw_crl.study.regime_streams import RegimeStreams
checkpoint.SECONDS, checkpoint.SHARE, source._CHUNK_VALUES = 0.0, float("inf"), 1
left, add = int(sys.argv.pop(1)), RegimeStreams.add
def counted(self, chunk):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    print(len(chunk.codes), file=sys.stderr)
    add(self, chunk)
RegimeStreams.add = counted
main()
"""


@pytest.mark.slow
@pytest.mark.usefixtures("often")
def test_a_killed_process_is_taken_up_again(tmp_path, wide):
    table, output = written(wide, tmp_path / "a.npz"), tmp_path / "a.moments.npz"
    read: list[int] = []

    def run(chunks: int) -> int:
        command = (sys.executable, "-c", KILLED, str(chunks), "moments", table, "-o", output)
        done = subprocess.run(command, capture_output=True, text=True)
        read.append(sum(int(x) for x in done.stderr.split("\n") if x.isdigit()))
        return done.returncode

    expected = write_moments(jc.read_client(table), tmp_path / "b.npz").read_bytes()
    (tmp_path / "b.npz").unlink()
    assert run(2) == -signal.SIGKILL
    assert {x.name for x in tmp_path.iterdir()} == {"a.npz", "a.moments.npz.unfinished"}
    assert run(3) == -signal.SIGKILL
    assert not output.exists()
    assert run(-1) == 0
    assert output.read_bytes() == expected
    # No row is read twice.
    assert read == [512, 650, 138]
    assert sum(read) == 2 * len(wide)
    assert {x.name for x in tmp_path.iterdir()} == {"a.npz", "a.moments.npz"}
