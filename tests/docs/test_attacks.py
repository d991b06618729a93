"""The page of attacks names tests that exist and are run."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from .pages import ROOT

PAGE = ROOT / "docs" / "attacks.md"


def named() -> list[str]:
    """The tests that the page names, as `tests/FILE::NAME`."""
    found = re.findall(r"`([\w/]+\.py::\w+)`", PAGE.read_text(encoding="utf-8"))
    return sorted({f"tests/{name}" for name in found})


def test_every_line_of_a_table_of_attacks_names_a_test():
    lines = PAGE.read_text(encoding="utf-8").split("## Every process killed")[0].splitlines()
    rows = [line for line in lines if line.startswith("| ") and "what is tried" not in line]
    assert len(rows) > 50
    assert [line for line in rows if "::test_" not in line] == []


def collected(names: list[str]) -> set[str]:
    """The tests that pytest finds under these names."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *names], capture_output=True, text=True, cwd=ROOT, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return {line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line}


def test_every_test_that_the_page_names_is_collected(request):
    pytest.importorskip("nvflare", reason="the extra 'federated' is not installed")
    names = set(named())
    assert names
    # A run of all tests has collected them; a run of this file alone has not.
    here = {item.nodeid.partition("[")[0] for item in request.session.items}
    missing = sorted(names - here)
    assert not missing or set(missing) <= collected(missing)
