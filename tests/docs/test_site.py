"""The site builds without warnings, is complete, and its pictures match the example scripts."""

import re
import runpy
import sys

import pytest

from jigsaw_crl.diagnostics.findings import FINDINGS

from ..processes import python
from .pages import ROOT, documentation_pages

pytestmark = pytest.mark.slow

EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
PICTURES = ROOT / "docs" / "pictures"


def words(picture):
    """Return the text in a picture without axis numbers, which depend on the matplotlib version."""
    found = re.findall(r"<text[^>]*>([^<]*)</text>", picture.read_text(encoding="utf-8"))
    return [word for word in found if re.search("[a-z]{2}", word)]


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_draws_the_picture_of_the_site(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(script.parent)
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path)])
    runpy.run_path(str(script), run_name="__main__")
    drawn = list(tmp_path.glob("*.svg"))
    assert drawn
    for picture in drawn:
        kept = PICTURES / picture.name
        assert kept.exists(), f"{kept} is missing: run make pictures"
        assert words(picture) == words(kept), f"{kept} is out of date: run make pictures"


def test_every_picture_is_shown_with_alternative_text():
    shown = set()
    for page in documentation_pages():
        text = page.read_text(encoding="utf-8")
        for alternative, target in re.findall(r"!\[([^\]]*)\]\(([^)]*\.(?:svg|webp))\)", text):
            assert alternative, f"{page.name}: {target} has no alternative text"
            shown.add((page.parent / target).resolve())
    assert {p.resolve() for p in PICTURES.iterdir()} <= shown


def test_the_photographs_of_the_report_can_be_made_again(tmp_path):
    done = python(ROOT / "examples" / "report_pictures.py", tmp_path, cwd=tmp_path)
    if "no Chromium" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    made = {p.name for p in tmp_path.iterdir()}
    assert made == {p.name for p in PICTURES.glob("*.webp")}, "run make pictures"


def test_the_site_builds_without_warnings_and_needs_no_network(tmp_path):
    done = python(
        "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", ROOT / "docs", tmp_path / "html",
        "-d", tmp_path / "doctrees", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "html" / "index.html").read_text(encoding="utf-8")
    fetched = re.findall(r'(?:src|<link[^>]* href)="(https?://[^"]*)"', page)
    assert not fetched, f"the pages would fetch {fetched}"


def test_the_site_mentions_every_command_and_every_public_name():
    from typer.main import get_command

    import jigsaw_crl as jc
    from jigsaw_crl.cli.app import app

    reference = ROOT / "docs" / "reference"
    commands = (reference / "command-line.md").read_text(encoding="utf-8")
    for command in get_command(app).commands:  # type: ignore[attr-defined]
        assert f"jigsaw {command}" in commands
    overview = (reference / "python.md").read_text(encoding="utf-8")
    topics = [p.read_text(encoding="utf-8") for p in (reference / "python").glob("*.md")]
    for name in set(jc.__all__) - {"__version__"}:
        assert f"`{name}`" in overview, f"the overview does not name {name}"
        assert any(name in text for text in topics), f"no topic documents {name}"


def test_every_finding_is_in_the_reference():
    source = "\n".join(p.read_text("utf-8") for p in (ROOT / "src" / "jigsaw_crl").rglob("*.py"))
    checks = set(re.findall(r'Finding\(\s*"([a-z-]+)"', source))
    checks |= {name.split("/")[0] for name in FINDINGS}
    listed = (ROOT / "docs" / "reference" / "findings.md").read_text(encoding="utf-8")
    assert checks
    assert not [c for c in sorted(checks) if f"`{c}`" not in listed]
