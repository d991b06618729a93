"""The printed numbers, read where the paper prints them."""

from __future__ import annotations

from jigsaw_crl.truth.experiments.published import SAMPLE_SIZES, TABLES


def test_every_metric_has_one_share_per_sample_size():
    for table in TABLES:
        for row in table.rows:
            assert len(row.e1) == len(row.e2) == len(row.e3) == len(SAMPLE_SIZES)
            assert all(0 <= x <= 1 for x in (*row.e1, *row.e2, *row.e3))


def test_numbers_are_found_by_metric_and_sample_size():
    assert TABLES[0].rows[0].value("e1", 10**6) == 0.81
    assert TABLES[1].rows[2].value("e2", None) == 0.0
    assert TABLES[2].rows[3].value("e3", 10**4) == 0.46
    assert TABLES[1].rows[3].seconds == 0.49
