"""Every code block of the README and the site runs, and prints what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import ROOT, blocks_of, documentation_pages, run_page

# Languages that are run, written or shown as output; `sh` is for setting up a machine only.
KNOWN = {"python", "text", "console", "toml", "csv", "sh", "json"}
SETTING_UP = re.compile(r"(pip|python3? -m (pip|venv|http\.server)|make|git clone|cd|source|ls) ?")


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    # The width that pages are written for.
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


@pytest.mark.parametrize("page", documentation_pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_pages_code_runs_in_an_empty_folder_and_prints_what_is_shown(
    page: Path, empty_folder: Path
) -> None:
    wrong = [o for o in run_page(page) if not o.agrees]
    assert not wrong, "\n".join(
        f"{page.name}, line {o.line}:\n{o.code}\nshown:\n{o.shown}\nprinted:\n{o.printed}"
        for o in wrong
    )


@pytest.mark.parametrize("page", documentation_pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_no_block_escapes_by_its_language(page: Path) -> None:
    for block in blocks_of(page.read_text(encoding="utf-8")):
        where = f"{page.name}, line {block.line}"
        if block.language.startswith("{"):
            continue
        assert block.language in KNOWN, f"{where}: {block.language!r} is not run by this test"
        if block.language == "sh":
            for line in block.body.splitlines():
                bare = line.split("#")[0].strip()
                assert not bare or SETTING_UP.match(bare), f"{where}: use a console block: {line}"
