"""The result folder: complete or not there, and read back as it was."""

from __future__ import annotations

from pathlib import Path

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


def test_a_proposal_is_kept_with_the_result(results, tmp_path):
    result = results["evidence"].with_proposal(size=3)
    assert result.proposal == jc.next_client(result.order, size=3)
    assert jc.load_result(result.save(tmp_path / "out")).proposal == result.proposal


def test_a_result_without_a_proposal_says_how_to_get_one(results, tmp_path):
    page = results["evidence"].report(tmp_path / "page.html").read_text()
    assert "jigsaw design DIR --size" in page


def test_algorithm_3_proposes_no_client(results):
    assert results["paper"].with_proposal().proposal is None
