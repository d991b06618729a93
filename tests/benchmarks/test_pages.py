"""Tables of the pages come from records, and a page, record or code that differs is named."""

import importlib
import itertools
import json
import sys
from dataclasses import asdict, dataclass
from types import ModuleType

import pages
import pytest
import records


@pytest.mark.parametrize("name", pages.BENCHMARKS)
def test_every_table_has_one_place_and_shows_its_records(name):
    for table in importlib.import_module(name).PUBLISHED:
        page = (pages.ROOT / table.page).read_text(encoding="utf-8")
        assert len(pages.place(table.name).findall(page)) == 1, table.name
    assert pages.check([name], sample=0, seed=0) == []


def test_no_seed_is_in_two_families():
    families = {
        (name, family): first
        for name in pages.BENCHMARKS
        for family, first in importlib.import_module(name).SEEDS.items()
    }
    firsts = sorted(set(families.values()))
    assert all(after - first >= 1_000 for first, after in itertools.pairwise(firsts))


@dataclass(frozen=True)
class Cell:
    """A kind of world without a world."""

    name: str


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A benchmark with one table on a page of its own, and what its worlds give."""
    module = ModuleType("tiny")
    module.Cell, module.SEEDS, module.factor = Cell, {"judge": 10}, 1.0

    def run_world(cell, family, number):
        score = module.factor * number
        return {"cell": asdict(cell), "seeds": family, "world": number, "score": score}

    def show(found):
        return f"sum {sum(r['score'] for r in found):g}"

    module.run_world = run_world
    module.PUBLISHED = (records.Table("tiny", "page.md", ((Cell("a"), 2), (Cell("b"), 3)), show),)
    monkeypatch.setitem(sys.modules, "tiny", module)
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "FIGURES", tmp_path / "figures")
    (tmp_path / "page.md").write_text("Before\n<!-- table tiny -->\nold\n<!-- end -->\nAfter\n")
    return module


def test_a_run_measures_what_is_missing_and_writes_the_page(tiny, tmp_path):
    pages.measure_missing("tiny", 1, 1e9)
    pages.write("tiny")
    page = (tmp_path / "page.md").read_text()
    assert "sum 4\n\n*5 worlds, seeds from 10 (`judge`); commit " in page
    assert page.startswith("Before\n")
    assert page.endswith("<!-- end -->\nAfter\n")
    assert pages.check(["tiny"], sample=5, seed=0) == []
    # Nothing is measured twice, and a stopped run goes on.
    path = tmp_path / "figures" / "tiny.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    tiny.factor = 2.0
    pages.measure_missing("tiny", 1, 1e9)
    scores = [json.loads(line)["score"] for line in path.read_text().splitlines()]
    assert scores == [0.0, 1.0, 0.0, 2.0, 4.0]


def test_a_page_or_a_code_that_differs_is_named(tiny, tmp_path):
    pages.measure_missing("tiny", 1, 1e9)
    pages.write("tiny")
    page = tmp_path / "page.md"
    page.write_text(page.read_text().replace("sum 4", "sum 5"))
    assert pages.check(["tiny"], 0, 0) == ["page.md: the table tiny is not that of its records"]
    pages.write("tiny")
    tiny.factor = 1.1
    wrong = pages.check(["tiny"], sample=5, seed=0)
    assert len(wrong) == 3
    assert all("gives other figures than the page's" in line for line in wrong)
    # Records of other code are measured again.
    path = tmp_path / "figures" / "tiny.jsonl"
    path.write_text(path.read_text().replace('"code": "', '"code": "x'))
    pages.measure_missing("tiny", 1, 1e9)
    pages.write("tiny")
    assert "sum 4.4" in page.read_text()
    assert pages.check(["tiny"], sample=5, seed=0) == []
