"""Findings as text and as a document."""

import json
from dataclasses import replace

from jigsaw_crl.base.findings import Finding

WEAK = Finding(
    "weak-intervention",
    "warning",
    "its effect is below chance",
    "Collect more rows.",
    value=0.51239,
    threshold=1.0,
    client="lab",
    regime="valve",
)


def test_the_text_has_place_message_number_and_remedy():
    assert str(WEAK) == (
        "warning: lab/valve: its effect is below chance (0.512, threshold 1). Collect more rows."
    )
    assert "(0.512)" in str(replace(WEAK, threshold=None))
    assert "(73,400, threshold 1)" in str(replace(WEAK, value=73_412.0))
    assert str(replace(WEAK, value=None, client=None, regime=None)) == (
        "warning: its effect is below chance. Collect more rows."
    )


def test_a_document_is_json_and_gives_the_finding_back():
    document = json.loads(json.dumps(WEAK.to_document()))
    assert Finding(**document) == WEAK
