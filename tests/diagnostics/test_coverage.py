"""Which labels the clients share, and what that leaves open."""

from __future__ import annotations

import pytest

from jigsaw_crl.diagnostics.coverage import check_coverage


def test_pairs_no_client_has_are_counted():
    labels = {"lab-1": ["a", "b", "c"], "lab-2": ["c", "d"]}
    finding = next(f for f in check_coverage(labels) if f.check == "unseen-pairs")
    assert finding.value == pytest.approx(2 / 6)
    assert "a–d" in finding.message


def test_groups_without_a_common_label_are_named():
    labels = {"lab-1": ["a", "b"], "lab-2": ["c", "d"], "lab-3": ["b", "e"]}
    finding = next(f for f in check_coverage(labels) if f.check == "disconnected")
    assert finding.value == 2


def test_a_label_of_one_client_only_is_mentioned():
    labels = {"lab-1": ["a", "b"], "lab-2": ["a", "b", "x"]}
    finding = next(f for f in check_coverage(labels) if f.check == "lonely-labels")
    assert "x (lab-2)" in finding.message


def test_full_overlap_gives_no_finding():
    assert list(check_coverage({"lab-1": ["a", "b"], "lab-2": ["b", "a"]})) == []
