"""The result folder: complete or not there, and read back as it was."""

from __future__ import annotations

import pytest

import jigsaw_crl as jc


@pytest.fixture(scope="module")
def results() -> dict[str, jc.Result]:
    samples = jc.simulate.setting("A", 0).clients(n_samples=3000, seed=2)
    return {
        "evidence": jc.recover(samples),
        "paper": jc.recover(samples, method="paper"),
    }


def test_a_proposal_is_kept_with_the_result(results, tmp_path):
    result = results["evidence"].with_proposal(size=3)
    assert result.proposal == jc.next_client(result.order, size=3)
    assert jc.load_result(result.save(tmp_path / "out")).proposal == result.proposal


def test_a_result_without_a_proposal_says_how_to_get_one(results, tmp_path):
    page = results["evidence"].report(tmp_path / "page.html").read_text()
    assert "jigsaw design DIR --size" in page


def test_algorithm_3_proposes_no_client(results):
    assert results["paper"].with_proposal().proposal is None
