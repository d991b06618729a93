"""Fragments assembled on a cluster of processes of this machine."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.assembly import cluster as clusters
from jigsaw_crl.assembly import panel as panels
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.spool import Mapped
from jigsaw_crl.cli.app import run
from jigsaw_crl.fragment.fragment import BayesFactors
from jigsaw_crl.fragment.keys import generate_key, read_private_key
from jigsaw_crl.fragment.packed import packable
from jigsaw_crl.fragment.signing import pack_text, sign_fragment

from ..malformed.conftest import refused
from .clients import lab

__all__ = ["refused"]

distributed = pytest.importorskip("distributed", reason="needs the extra 'cluster'")

from .. import dask_cluster  # noqa: E402

LABELS = tuple("abcdefghijklmn")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with dask_cluster.two_workers(tmp_path_factory.mktemp("cluster")) as found:
        yield found


def site(name, rng):
    """A site that weighs half of the pairs of an alphabetical order; some labels are in doubt."""
    mine = np.sort(rng.choice(len(LABELS), 8, replace=False))
    labels = tuple(LABELS[i] for i in mine)
    blocks = tuple(frozenset(x) for x in labels)
    x = np.where(np.triu(np.ones((8, 8)), 1), 5.0, -5.0) + 3 * rng.normal(size=(2, 8, 8))
    x[:, rng.random((8, 8)) < 0.2] = np.nan
    lean = rng.normal(size=(8, 8))
    single = tuple((rng.random(8) < 0.4).tolist())
    factors = BayesFactors((0.5, 0.08), x, np.full((8, 8), -3.0), lean + lean.T, single)
    above = jc.PartialOrder.from_pairs(blocks, [])
    return jc.Fragment(name, "null-cone", labels, blocks, above, blocks, bayes=factors)


@pytest.fixture(scope="module")
def pieces():
    """Sites that weigh, one that states, and two that sent the same evidence."""
    rng = np.random.default_rng(0)
    pieces = [packable(site(f"site-{k}", rng)) for k in range(9)]
    states = lab("states", ["a", "b", "c"], yes=[("a", "b")], no=[("c", "b")])
    return [*pieces, replace(pieces[2], client="a twin"), states]


@pytest.fixture(scope="module")
def folder(pieces, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fragments")
    # Names of files are no order of clients.
    for k, piece in enumerate(reversed(pieces)):
        jc.save_fragment(piece, folder / f"{k}{('.bin', '.json')[k % 2]}")
    return folder


@pytest.fixture(autouse=True)
def many(monkeypatch):
    """As if fourteen labels were too many to sample orders of."""
    monkeypatch.setattr(panels, "MOST_SAMPLED", 10)


@pytest.fixture(scope="module")
def alone(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(panels, "MOST_SAMPLED", 10)
        return jc.assemble(folder)


def assert_same_bits(one, other):
    assert one.labels == other.labels
    for name in ("verdicts", "probabilities", "evidence", "decoded"):
        x, y = getattr(one, name), getattr(other, name)
        assert (x.dtype, x.tobytes()) == (y.dtype, y.tobytes())
    assert one.client_weights == other.client_weights
    assert (one.notes, one.mode, one.rate) == (other.notes, other.mode, other.rate)


def test_a_cluster_gives_the_bits_of_one_machine(cluster, folder, alone):
    there = jc.assemble(folder, cluster=cluster[0])
    assert_same_bits(there, alone)
    assert any("sent the same evidence" in note for note in alone.notes)
    assert (there.verdicts == 1).any()
    # What is asked later is read from the files.
    assert isinstance(there.fragments, Mapped)
    for pair in (alone.labels[:2], next(iter(alone.pairs()))):
        assert str(there.explain(*pair)) == str(alone.explain(*pair))


@pytest.mark.parametrize(("part", "block", "each"), [(200, 60, 3), (10**9, 10**9, 0)])
def test_the_number_of_parts_and_blocks_does_not_matter(
    cluster, folder, alone, monkeypatch, part, block, each
):
    for name, value in (("PART", part), ("BLOCK", block), ("EACH", each)):
        monkeypatch.setattr(clusters, name, value)
    assert_same_bits(jc.assemble(folder, cluster=cluster[0]), alone)


def test_what_is_wrong_with_a_file_is_said_in_one_line(cluster, pieces, tmp_path):
    for k in range(4):
        jc.save_fragment(pieces[k], tmp_path / f"{k}.bin")
    (tmp_path / "2.bin").write_bytes((tmp_path / "2.bin").read_bytes()[:-30])
    with pytest.raises(InputError, match=r"2\.bin': the packed fragment is not valid"):
        jc.assemble(tmp_path, cluster=cluster[0])
    jc.save_fragment(pieces[0], tmp_path / "2.bin")
    with pytest.raises(InputError, match=r"2\.bin', .*: another file holds a fragment of the same"):
        jc.assemble(tmp_path, cluster=cluster[0])


def test_a_file_that_changes_meanwhile_is_refused(cluster, folder, tmp_path, monkeypatch):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    begin = clusters.OnCluster.__init__

    def changed(*given):
        (tmp_path / "3.json").write_bytes((tmp_path / "1.json").read_bytes())
        begin(*given)

    monkeypatch.setattr(clusters.OnCluster, "__init__", changed)
    with pytest.raises(InputError, match=r"3\.json': the file has changed since it was read first"):
        jc.assemble(tmp_path, cluster=cluster[0])


def test_what_a_cluster_does_not_do_is_refused(cluster, folder, pieces, tmp_path, monkeypatch):
    address = cluster[0]
    with pytest.raises(InputError, match="a cluster reads fragments from files"):
        jc.assemble(pieces, cluster=address)
    with pytest.raises(InputError, match="Leave out method and start"):
        jc.assemble(folder, cluster=address, method="paper")
    with pytest.raises(InputError, match="effects are bounded for"):
        jc.assemble(folder, cluster=address, smallest_effect=0.1)
    exact = [lab(name, LABELS, yes=[("a", "b")]) for name in ("one", "two")]
    for piece in exact:
        jc.save_fragment(piece, tmp_path / f"{piece.client}.json")
    with pytest.raises(InputError, match="all fragments come from exact moments"):
        jc.assemble(tmp_path, cluster=address)
    monkeypatch.setattr(panels, "MOST_SAMPLED", 100)
    with pytest.raises(InputError, match="there are 14 labels, and a cluster assembles"):
        jc.assemble(folder, cluster=address)


def test_a_worker_that_does_not_see_the_files_is_said(cluster, folder, monkeypatch):
    monkeypatch.setattr(clusters, "fragment_paths", lambda _: [folder / "elsewhere.bin"])
    with pytest.raises(InputError, match="a worker of the cluster does not see this file"):
        jc.assemble(folder, cluster=cluster[0])


def test_a_worker_with_another_version_is_said(cluster, folder, monkeypatch):
    monkeypatch.setattr(clusters, "__version__", "0.0.1")
    with pytest.raises(InputError, match=r"has version .* of this package, not 0\.0\.1"):
        jc.assemble(folder, cluster=cluster[0])


def test_the_command_takes_a_cluster(cluster, folder, tmp_path, capsys, refused):
    tables = [tmp_path / "here.csv", tmp_path / "there.csv"]
    for table, more in zip(tables, ([], ["--cluster", cluster[0]]), strict=True):
        assert run(["assemble", str(folder), "--pairs", str(table), *more]) == 0
    assert tables[0].read_bytes() == tables[1].read_bytes()
    capsys.readouterr()
    refused(["assemble", str(folder), "--cluster", cluster[0]], "for very many labels", "--pairs")


def test_signed_fragments_are_verified_before_the_cluster_reads_them(
    cluster, pieces, folder, alone, tmp_path, capsys
):
    (tmp_path / "signed").mkdir()
    lines = ['study = "study"', "[sites]"]
    for k, piece in enumerate(pieces):
        lines.append(generate_key(piece.client, tmp_path / f"{k}.key"))
        private = read_private_key(tmp_path / f"{k}.key")
        text = sign_fragment(piece, private, study="study", round_name="first")
        (tmp_path / "signed" / f"{k}.bin").write_bytes(pack_text(text))
    keys = tmp_path / "site-keys.toml"
    keys.write_text("\n".join(lines))
    table = tmp_path / "pairs.csv"
    given = ["assemble", str(tmp_path / "signed"), "--pairs", str(table), "--cluster", cluster[0]]
    given += ["--keys", str(keys), "--round", "first", "--json"]
    assert run(given) == 0
    assert json.loads(capsys.readouterr().out)["client_weights"] == dict(alone.client_weights)


def test_a_killed_worker_costs_nothing(cluster, folder, alone, monkeypatch):
    address, workers = cluster
    measure, killed = clusters.OnCluster.agreements, []

    def kill(self, total, *given):
        if not killed:
            held = self._connection.has_what()
            fullest = max(held, key=lambda worker: len(held[worker]))
            # It has blocks, sums and claims now.
            assert len(held[fullest]) > 5
            (pid,) = self._connection.run(os.getpid, workers=[fullest]).values()
            killed.extend(process for process in workers if process.pid == pid)
            killed[0].kill()
            killed[0].wait()
        return measure(self, total, *given)

    monkeypatch.setattr(clusters.OnCluster, "agreements", kill)
    assert_same_bits(jc.assemble(folder, cluster=address), alone)
    assert len(killed) == 1


def test_a_cluster_without_workers_is_said(cluster, folder, monkeypatch):
    for worker in cluster[1]:
        worker.kill()
    monkeypatch.setattr("jigsaw_crl.base.cluster.WITHOUT_WORKERS", 0.5)
    monkeypatch.setattr("jigsaw_crl.base.cluster.LOOK_EVERY", 0.2)
    with pytest.raises(InputError, match="the cluster has had no worker for"):
        jc.assemble(folder, cluster=cluster[0])
