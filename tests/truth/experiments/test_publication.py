"""The published reproduction: its results files, pages, README, and a cell from its seeds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path

import pytest

from jigsaw_crl.truth.experiments import pages, reproduce
from jigsaw_crl.truth.experiments.plan import plan_of, scenario_of
from jigsaw_crl.truth.experiments.published import POPULATION, TABLES

ROOT = Path(__file__).resolve().parents[3]
PUBLISHED = ROOT / "docs" / "reproduction"
KINDS = ("figures", "tables")
ROWS = {row for table in TABLES for row in table.rows}
# A mean over all runs; the linear algebra library may change a borderline decision in one of them.
TOLERANCE = 0.01
# Of 120 cells of the tables and 96 of the figures.
MOST_MISSING = 6


@cache
def published(kind):
    return pages.read_results(PUBLISHED / kind / "results.csv")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_page_says_what_the_results_file_says(kind, tmp_path):
    made = pages.write_pages(published(kind), kind, tmp_path)
    for file in (made.results, made.page):
        assert file.read_bytes() == (PUBLISHED / kind / file.name).read_bytes()
    assert all((PUBLISHED / kind / picture.name).exists() for picture in made.pictures)


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", PUBLISHED / "index.md"], ids=["readme", "page"]
)
def test_the_readme_and_the_overview_say_what_the_results_file_says(page):
    assert f"\n{pages.headline_table(published('tables'))}\n" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_every_cell_of_the_paper_is_published_or_named_as_not_run(kind):
    cells, plan = published(kind), plan_of(kind, quick=False)
    every = {
        (s.key, n, method) for s in plan.scenarios for n in plan.sizes for method in plan.methods
    }
    missing = every - set(cells.index)
    assert set(cells.index) <= every
    assert len(missing) <= MOST_MISSING
    text = (PUBLISHED / kind / f"{kind}.md").read_text(encoding="utf-8")
    assert ("Not run:" in text) == bool(missing)
    assert all(f"{key} by {method} at n = " in text for key, _, method in missing)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "key", "n", "method", "tolerance"),
    [
        ("figures", "A-gaussian", 1000, "paper", TOLERANCE),
        ("tables", "p10-K15-q0.6-gaussian", inf, "paper", TOLERANCE),
        # Wider: the method may change a little between the day of the run and today.
        ("figures", "A-gaussian", 1000, "null-cone", 5 * TOLERANCE),
    ],
)
def test_a_published_cell_comes_out_again_from_its_seeds(kind, key, n, method, tolerance, tmp_path):
    kept = published(kind).loc[(key, n, method)]
    plan = plan_of(kind, quick=False, methods=(method,), only=[key])
    plan = replace(plan, sizes=(n,), replicates=int(kept["replicates"]))
    made = reproduce.run_plan(plan, tmp_path, workers=2).pages.results
    found = pages.read_results(made).loc[(key, n, method)]
    assert found["clients"] == kept["clients"]
    if method == "paper":
        assert found["tau"] == kept["tau"] or n == inf
    for metric in ("e1", "e2", "e3") if method == "paper" else ("e1",):
        assert found[metric] == pytest.approx(kept[metric], abs=tolerance)


def test_printed_numbers_are_found_by_metric_and_sample_size():
    assert TABLES[0].rows[0].value("e1", 10**6) == 0.81
    assert TABLES[1].rows[2].value("e2", inf) == 0.0
    assert TABLES[2].rows[3].value("e3", 10**4) == 0.46
    assert TABLES[1].rows[3].seconds == 0.49


# What the overview says in words.


def cell(row, n, method="paper"):
    return published("tables").loc[(scenario_of(row).key, n, method)]


def agrees(row, n):
    gap = abs(cell(row, n)["e1"] - row.value("e1", n))
    return gap <= 2 * pages.spread(cell(row, n), "e1") + 0.005


def test_the_population_column_agrees_with_the_printed_one():
    assert all(agrees(row, inf) for row in ROWS)
    figures = published("figures").xs((inf, "paper"), level=("n", "method"))
    for metric, value in POPULATION.items():
        assert figures[metric].to_numpy() == pytest.approx(value, abs=1e-6)


def test_with_ten_latents_e1_agrees_at_every_n_and_with_more_it_falls_with_p():
    rows = TABLES[0].rows
    assert all(agrees(rows[0], n) for n in (10**4, 5 * 10**4, 10**5, 5 * 10**5, 10**6))
    last = [cell(row, 10**6)["e1"] for row in rows]
    assert last == sorted(last, reverse=True)
    gaps = [row.value("e1", 10**6) - ours for row, ours in zip(rows, last, strict=True)]
    assert gaps == sorted(gaps)


def test_more_rows_help_in_every_family_of_worlds():
    few, many = (
        published("tables").xs((n, "paper"), level=("n", "method")) for n in (10**4, 10**6)
    )
    many = many.loc[few.index]
    assert (few["e1"] < many["e1"]).all()
    assert (few[["e2", "e3"]] > many[["e2", "e3"]]).all(axis=None)


def test_e1_is_below_the_printed_one_with_many_latents_and_above_it_with_few_clients():
    for row in ROWS:
        if row.n_latent >= 20 and row.n_clients >= 10:
            for n in (5 * 10**4, 10**5, 5 * 10**5, 10**6):
                assert cell(row, n)["e1"] < row.value("e1", n)
    (few,) = (row for row in TABLES[1].rows if row.n_clients == 5)
    assert 1.8 < cell(few, 10**6)["e1"] / few.value("e1", 10**6) < 2.2


def test_the_default_method_finds_the_order_from_ten_thousand_rows():
    for row in ROWS:
        assert (cell(row, 10**4, "null-cone")["e1"] > 0.95) == (row.n_clients >= 10)


def test_the_search_stops_early_only_in_large_worlds_with_few_rows_and_tau_is_large():
    for kind in KINDS:
        cells = published(kind).xs("paper", level="method").reset_index()
        stopped = cells[cells["stopped"] > 0]
        assert stopped["scenario"].str.match("p[34]0-").all()
        assert (stopped["n"] <= 10**5).all()
    twenty = cells[cells["scenario"].str.startswith("p20-") & (cells["n"] < inf)]
    assert set(twenty["tau"]) <= {0.09, 0.1}
