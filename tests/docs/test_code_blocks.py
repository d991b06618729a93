"""Every code block and notebook of the site runs and prints the output that the page shows."""

import json
import re
import shlex

import pytest
from typer.main import get_command

from .pages import (
    NOTEBOOKS,
    ROOT,
    blocks_of,
    documentation_pages,
    run_notebook,
    run_page,
    same_output,
    text_of,
)

# Languages of blocks that are run, written to files or compared. `sh` blocks hold set-up commands;
# blocks without a language hold drawings.
KNOWN = {"python", "text", "console", "toml", "csv", "sh", "json", ""}
SETTING_UP = re.compile(r"(pip|python3? (-m (pip|venv)|benchmarks/)|make|git clone|cd|source) ?")
# These pages describe rounds between several machines, which tests/federated runs, and measurements
# that take hours. The tests only check that their commands exist.
NOT_RUN = [p for p in documentation_pages() if p.stem in ("nvflare", "performance")]
RUN = [p for p in documentation_pages() if p not in NOT_RUN]


def name_of(page):
    return str(page.relative_to(ROOT))


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # The pages show output at this width.
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("log-odds +8.0; 3 rows", "log-odds +8.1; 3 rows", True),
        ("log-odds +8.0; 3 rows", "log-odds +9.0; 3 rows", False),
        ("log-odds +8.0; 3 rows", "log-odds +8.0; 4 rows", False),
        ("a  b", "a\tb\n", True),
        (f"digest {'3e12' * 16}, 0.99", f"digest {'ab90' * 16}, 1.00", True),
        (f"digest {'3e12' * 16}", "digest 3e12", False),
    ],
)
def test_shown_output_may_differ_in_decimals_only(shown, printed, same):
    assert same_output(shown, printed) is same


@pytest.mark.parametrize("page", documentation_pages(), ids=name_of)
def test_a_page_shows_whole_output(page):
    blocks = blocks_of(page.read_text(encoding="utf-8"))
    assert not [b.line for b in blocks if b.language in ("text", "console") and "..." in b.body]


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_the_code_of_a_page_runs_in_an_empty_folder_and_prints_the_shown_output(page, empty_folder):
    wrong = [o for o in run_page(page) if not o.agrees]
    assert not wrong, "\n".join(
        f"{page.name}, line {o.line}:\n{o.code}\nshown:\n{o.shown}\nprinted:\n{o.printed}"
        for o in wrong
    )


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_shows_the_output_of_its_cells(notebook, empty_folder):
    stored = text_of(json.loads(notebook.read_text(encoding="utf-8")))
    for number, (shown, printed) in enumerate(
        zip(stored, text_of(run_notebook(notebook)), strict=True), start=1
    ):
        assert same_output(shown, printed), f"cell {number} shows\n{shown}\nand prints\n{printed}"


@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_every_block_has_a_language_that_the_tests_handle(page):
    for block in blocks_of(page.read_text(encoding="utf-8")):
        where = f"{page.name}, line {block.line}"
        if block.language.startswith("{"):
            continue
        assert block.language in KNOWN, f"{where}: {block.language!r} is not run by this test"
        if block.language not in ("sh", ""):
            continue
        for line in block.body.splitlines():
            bare = line.split("#")[0].strip()
            if block.language == "sh":
                assert not bare or SETTING_UP.match(bare), f"{where}: use a console block: {line}"
            assert not bare.removeprefix("$ ").startswith("jigsaw "), f"{where}: not run: {line}"


@pytest.mark.parametrize("page", NOT_RUN, ids=name_of)
def test_commands_that_are_not_run_exist_and_have_the_shown_options(page):
    from jigsaw_crl.cli.app import app

    blocks = blocks_of(page.read_text(encoding="utf-8"))
    bodies = [b.body for b in blocks if b.language in ("", "sh", "console")]
    lines = "\n".join(bodies).replace("\\\n", " ").splitlines()
    shown = [shlex.split(x.removeprefix("$ "), comments=True) for x in lines if "jigsaw " in x]
    for words in shown:
        if words[:1] != ["jigsaw"]:
            continue
        where = f"{page.name}: {' '.join(words)}"
        command, rest = get_command(app), words[1:]
        while hasattr(command, "commands"):
            assert set(rest[:1]) & set(command.commands), f"{where} does not exist"
            command, rest = command.commands[rest[0]], rest[1:]
        known = {option for parameter in command.params for option in parameter.opts}
        used = {word.split("=")[0] for word in rest if word.startswith("-")}
        assert used <= known, f"{where}: there is no {used - known}"


ATTACKS = ROOT / "docs" / "attacks.md"


def test_every_attack_of_the_list_names_a_test():
    lines = ATTACKS.read_text(encoding="utf-8").split("## Every process killed")[0].splitlines()
    attacks = [line for line in lines if line.startswith("- ")]
    assert len(attacks) > 40
    assert [line for line in attacks if "`test_" not in line] == []


def test_every_test_that_the_page_names_exists():
    named = set(re.findall(r"`(test_\w+)`", ATTACKS.read_text(encoding="utf-8")))
    sources = (p.read_text(encoding="utf-8") for p in (ROOT / "tests").rglob("test_*.py"))
    defined = {name for text in sources for name in re.findall(r"^ *def (test_\w+)\(", text, re.M)}
    assert named - defined == set()
