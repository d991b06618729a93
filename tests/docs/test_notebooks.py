"""The notebooks of the site run in an empty folder and show what is stored in them."""

import json
from pathlib import Path

import pytest

from .notebooks import NOTEBOOKS, run_notebook, text_of
from .pages import same_output


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_shows_the_output_of_its_cells(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    stored = text_of(json.loads(notebook.read_text(encoding="utf-8")))
    for number, (shown, printed) in enumerate(
        zip(stored, text_of(run_notebook(notebook)), strict=True), start=1
    ):
        assert same_output(shown, printed), f"cell {number} shows\n{shown}\nand prints\n{printed}"
