"""The page of attacks names tests that exist."""

import re

from .pages import ROOT

PAGE = ROOT / "docs" / "attacks.md"


def test_every_attack_of_the_list_names_a_test():
    lines = PAGE.read_text(encoding="utf-8").split("## Every process killed")[0].splitlines()
    attacks = [line for line in lines if line.startswith("- ")]
    assert len(attacks) > 40
    assert [line for line in attacks if "`test_" not in line] == []


def test_every_test_that_the_page_names_exists():
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text(encoding="utf-8")))
    sources = (p.read_text(encoding="utf-8") for p in (ROOT / "tests").rglob("test_*.py"))
    defined = {name for text in sources for name in re.findall(r"^ *def (test_\w+)\(", text, re.M)}
    assert named - defined == set()
