"""The published reproduction: its results files, pages, README, and a cell from its seeds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path

import publish_reproduction as publishing
import pytest

from jigsaw_crl.truth.experiments import pages, reproduce
from jigsaw_crl.truth.experiments.plan import plan_of, printed, tables

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "docs" / "reproduction"
KINDS = ("figures", "tables")
WORLDS = plan_of("tables", quick=False).scenarios
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
    assert made.results.read_bytes() == (PUBLISHED / kind / made.results.name).read_bytes()
    text = publishing.page_of(made, published(kind))
    assert text == (PUBLISHED / kind / made.page.name).read_text("utf-8")
    assert all((PUBLISHED / kind / picture.name).exists() for picture in made.pictures)


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", PUBLISHED / "index.md"], ids=["readme", "page"]
)
def test_the_readme_and_the_overview_say_what_the_results_file_says(page):
    table = publishing.headline_table(published("tables"))
    assert f"\n{table}\n" in page.read_text(encoding="utf-8")


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


def test_the_spread_of_a_run_includes_the_error_of_our_mean():
    # Two runs with a standard error of 0.1 have a standard deviation of 0.1 √2.
    cell = {"e1_error": 0.1, "replicates": 2}
    assert publishing.spread(cell, "e1") ** 2 == pytest.approx(0.1**2 * 2 + 0.1**2)


def test_what_was_not_run_is_named_and_a_cell_is_judged(tmp_path):
    cells = published("figures").drop(index=("A-laplace", 1000, "paper"))
    text = publishing.page_of(pages.write_pages(cells, "figures", tmp_path), cells)
    assert "Not run: A-laplace by paper at n = 10³." in text
    assert "| A-laplace | E1 | 10³ | – | – | – | – | – | – |" in text
    assert "| A-gaussian | E1 | ∞ | 1.00 | 1.00 ± 0.00 (30) | +0.00 | – | – | 0 |" in text


# What the overview says in words.


def cell(world, n, method="paper"):
    return published("tables").loc[(world.key, n, method)]


def said(world, n):
    return printed()[world.key, "e1", n]


def agrees(world, n):
    gap = abs(cell(world, n)["e1"] - said(world, n))
    return gap <= 2 * publishing.spread(cell(world, n), "e1") + 0.005


def test_the_population_column_agrees_with_the_printed_one():
    assert all(agrees(world, inf) for world in WORLDS)
    figures = published("figures").xs((inf, "paper"), level=("n", "method"))
    assert figures["e1"].to_numpy() == pytest.approx(1.0, abs=1e-6)
    assert figures[["e2", "e3"]].to_numpy() == pytest.approx(0.0, abs=1e-6)


def test_with_ten_latents_e1_agrees_at_every_n_and_with_more_it_falls_with_p():
    worlds = tables()["p"]
    assert all(agrees(worlds[0], n) for n in (10**4, 5 * 10**4, 10**5, 5 * 10**5, 10**6))
    last = [cell(world, 10**6)["e1"] for world in worlds]
    assert last == sorted(last, reverse=True)
    gaps = [said(world, 10**6) - ours for world, ours in zip(worlds, last, strict=True)]
    assert gaps == sorted(gaps)


def test_more_rows_help_in_every_family_of_worlds():
    few, many = (
        published("tables").xs((n, "paper"), level=("n", "method")) for n in (10**4, 10**6)
    )
    many = many.loc[few.index]
    assert (few["e1"] < many["e1"]).all()
    assert (few[["e2", "e3"]] > many[["e2", "e3"]]).all(axis=None)


def test_e1_is_below_the_printed_one_with_many_latents_and_above_it_with_few_clients():
    for world in WORLDS:
        if world.n_latent >= 20 and world.n_clients >= 10:
            for n in (5 * 10**4, 10**5, 5 * 10**5, 10**6):
                assert cell(world, n)["e1"] < said(world, n)
    few = tables()["K"][0]
    assert 1.8 < cell(few, 10**6)["e1"] / said(few, 10**6) < 2.2


def test_the_default_method_finds_the_order_from_ten_thousand_rows():
    for world in WORLDS:
        assert (cell(world, 10**4, "null-cone")["e1"] > 0.95) == (world.n_clients >= 10)


def test_the_search_stops_early_only_in_large_worlds_with_few_rows_and_tau_is_large():
    for kind in KINDS:
        cells = published(kind).xs("paper", level="method").reset_index()
        stopped = cells[cells["stopped"] > 0]
        assert stopped["scenario"].str.match("p[34]0-").all()
        assert (stopped["n"] <= 10**5).all()
    twenty = cells[cells["scenario"].str.startswith("p20-") & (cells["n"] < inf)]
    assert set(twenty["tau"]) <= {0.09, 0.1}
