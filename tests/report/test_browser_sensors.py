"""The sensors of each site in a real browser: the picture, the table, and what is not there."""

import pytest

import jigsaw_crl as jc

pytestmark = pytest.mark.slow


def test_the_table_and_the_picture_say_what_the_loadings_say(visit, sensed):
    page = visit(sensed)
    site = sensed.loadings.site.iloc[0]
    own = sensed.loadings[sensed.loadings.site == site]
    card = page.locator("#sensors details").first
    assert card.locator("summary").inner_text() == site
    rows = card.locator("tbody tr").all_inner_texts()
    assert len(rows) == own.label.nunique()
    named = own[own.up].iloc[0]
    told = next(row for row in rows if row.startswith(named.label))
    assert "x2 (named by you)" in told
    assert "rises" in told
    assert "m3/h per sd" in told
    # A sensor that falls does so by a size, which has no sign.
    assert any("falls" in row for row in rows)
    assert not any("−" in row or "+" in row for row in rows)
    assert card.locator("svg rect").count() == len(own)
    darkest = card.locator("svg rect").evaluate_all(
        "list => list.map(e => [+e.getAttribute('fill-opacity'), e.textContent])"
        ".sort((a, b) => b[0] - a[0])[0][1]"
    )
    most = own.loc[own.share.idxmax()]
    assert darkest == f"{most.share:.0%} of {most.sensor} comes from {most.label}"


def test_a_result_that_was_saved_names_no_sensor(visit, sensed, tmp_path):
    sensed.save(tmp_path / "out")
    page = visit(jc.load_result(tmp_path / "out"))
    assert page.locator("#sensors svg").count() == 0
    assert "no fragment or result folder holds it" in page.locator("#sensors").inner_text()
