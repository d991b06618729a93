"""The page of attacks names tests that exist."""

from __future__ import annotations

import re

from .pages import ROOT

PAGE = ROOT / "docs" / "attacks.md"


def named() -> list[str]:
    """The tests that the page names, as `tests/FILE::NAME`."""
    found = re.findall(r"`([\w/]+\.py::\w+)`", PAGE.read_text(encoding="utf-8"))
    return sorted({f"tests/{name}" for name in found})


def test_every_line_of_a_table_of_attacks_names_a_test():
    lines = PAGE.read_text(encoding="utf-8").split("## Every process killed")[0].splitlines()
    rows = [line for line in lines if line.startswith("| ") and "what is tried" not in line]
    assert len(rows) > 40
    assert [line for line in rows if "::test_" not in line] == []


def test_every_test_that_the_page_names_exists():
    names = [name.split("::") for name in named()]
    assert names
    assert [n for f, n in names if f"def {n}(" not in (ROOT / f).read_text(encoding="utf-8")] == []
