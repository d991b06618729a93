"""The result folder: complete or not there, and read back as it was."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import jigsaw_crl as jc


@pytest.fixture(scope="module")
def results() -> dict[str, jc.Result]:
    world = jc.simulate.setting("A", 0)
    samples = world.clients(n_samples=3000, seed=2)
    return {
        "exact": jc.recover(world.clients()),
        "evidence": jc.recover(samples),
        "paper": jc.recover(samples, method="paper"),
    }


@pytest.fixture(params=["exact", "evidence", "paper"])
def result(request, results) -> jc.Result:
    return results[request.param]


def _files(root: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(root.iterdir())}


def test_the_latent_basis_is_not_saved(result, tmp_path):
    again = jc.load_result(result.save(tmp_path / "out"))
    assert all(fragment.basis is None for fragment in again.fragments.values())
    assert "basis" not in (tmp_path / "out" / "result.json").read_text()


def test_the_order_can_be_made_again_from_the_saved_fragments(result, tmp_path):
    again = jc.load_result(result.save(tmp_path / "out"))
    order = jc.assemble(again.order.fragments, **again.options)
    np.testing.assert_array_equal(order.verdicts, result.order.verdicts)


def test_saving_twice_leaves_one_result_and_the_users_own_files(results, tmp_path):
    root = tmp_path / "out"
    results["exact"].save(root)
    (root / "notes.txt").write_text("mine")
    results["evidence"].save(root)
    assert (root / "notes.txt").read_text() == "mine"
    assert jc.load_result(root).order.mode == "evidence"
    assert not [p for p in root.iterdir() if p.name.startswith(".")]


def test_the_same_result_gives_the_same_bytes(results, tmp_path):
    one, two = (results["evidence"].save(tmp_path / name) for name in ("one", "two"))
    assert _files(one) == _files(two)


def test_a_result_of_a_newer_version_is_refused_by_name(results, tmp_path):
    root = results["exact"].save(tmp_path / "out")
    document = json.loads((root / "result.json").read_text())
    document |= {"version": 7, "written_by": "jigsaw-crl 9.1"}
    (root / "result.json").write_text(json.dumps(document))
    with pytest.raises(jc.InputError, match=r"version 7 \(written by jigsaw-crl 9.1\).*Upgrade"):
        jc.load_result(root)


def test_a_proposal_is_kept_with_the_result(results, tmp_path):
    result = results["evidence"].with_proposal(size=3)
    assert result.proposal == jc.next_client(result.order, size=3)
    assert jc.load_result(result.save(tmp_path / "out")).proposal == result.proposal


def test_a_result_without_a_proposal_says_how_to_get_one(results, tmp_path):
    page = results["evidence"].report(tmp_path / "page.html").read_text()
    assert "jigsaw design DIR --size" in page


def test_algorithm_3_proposes_no_client(results):
    assert results["paper"].with_proposal().proposal is None


def test_strange_labels_survive(tmp_path):
    world = jc.simulate.setting("A", 0)
    names = dict(zip(world.labels, ["<b>&", 'q"uote', "emoji 🧩", "ä, ;", "x" * 200], strict=True))
    clients = []
    for client in world.clients():
        regimes = {names[k]: v for k, v in client.interventions.items()}
        clients.append(
            jc.Client.from_moments(client.name, control=client.control, interventions=regimes)
        )
    result = jc.recover(clients)
    again = jc.load_result(result.save(tmp_path / "out"))
    assert again.order.pairs() == result.order.pairs()
    assert set(nx.read_graphml(tmp_path / "out" / "hasse.graphml").nodes) == set(names.values())
