"""Every departure in a small study: it is named, or the answer is as good as without it."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import robustness

from jigsaw_crl.truth.simulate import DEPARTURES as KINDS

PAGE = Path(__file__).parents[2] / "docs" / "robustness.md"
SMALL = {"n": 4_000, "latent": 8, "clients": 8}
WORLDS = (100, 101)
# Single worlds spread by a tenth around the E1 of the same worlds without a departure.
SPREAD = 0.11

DEPARTURES = [
    "autocorrelation=0.9",
    "subjects=0.5x20",
    "nonlinear-sensors=0.25",
    "lognormal-noise=1",
    "uneven-sensors=100x0.05",
    "nonlinear-system=0.7",
    "t-noise=3",
    "outliers=0.01x10",
    "batch-offsets=0.3",
    "off-target=1x0.3",
    "penetrance=0.5",
    "gain-drift=0.05",
    "other-label=4",
    "lacks-edge=3",
]


@pytest.fixture(scope="module")
def measured():
    """The score of a departure in a few small studies, computed once."""

    @cache
    def measure(departure, asked="none"):
        cell = robustness.Cell(departure, asked, **SMALL)
        records = [robustness.run_world(cell, "tune", number) for number in WORLDS]
        return robustness.Score.of(cell, records)

    return measure


@pytest.fixture(scope="module")
def clean(measured):
    return measured("")


def is_honest(score):
    """At most one wrong verdict, or one in fifty, of either kind."""
    c = score.counts
    return c.wrong_yes <= max(1, 0.02 * c.yes) and c.wrong_no <= max(1, 0.02 * c.no)


def test_every_departure_of_the_page_is_in_this_file():
    tried = {d.split("=")[0] for d in DEPARTURES} | {"missing"}
    assert tried == {row.name for row in robustness.ROWS}


@pytest.mark.slow
@pytest.mark.parametrize("departure", DEPARTURES)
def test_a_departure_is_named_or_costs_little(departure, measured, clean):
    score = measured(departure)
    named = score.named >= len(WORLDS)
    assert is_honest(score)
    assert named or np.mean(score.E1) >= np.mean(clean.E1) - SPREAD


def test_missing_cells_are_used_or_refused_by_name():
    cell = robustness.Cell("missing=0.02", **SMALL)
    record = robustness.run_world(cell, "tune", WORLDS[0])
    assert record["E1"] > 0.7 or "missing" in record["refused"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("departure", "asked"),
    [
        ("outliers=0.01x10", "trim"),
        ("subjects=0.5x20", "group"),
        ("missing=0.02", "missing"),
        ("missing=0.2", "em"),
    ],
)
def test_a_remedy_that_is_asked_for_helps(departure, asked, measured):
    plain, helped = measured(departure), measured(departure, asked)
    assert is_honest(helped)
    assert np.mean(helped.E1) >= np.mean(plain.E1)
    assert helped.counts.decided >= plain.counts.decided - 0.02


def record(cell, number, E1, findings):
    counts = {"pairs": 6, "ancestors": 3, "yes": 2, "wrong_yes": 0, "no": 3, "wrong_no": 0}
    return {
        "cell": cell,
        "seeds": "judge",
        "world": number,
        "E1": E1,
        "counts": counts,
        "findings": findings,
        "seconds": 1.0,
    }


def test_findings_that_name_the_departure_are_counted_apart():
    one = record({}, 0, 1.0, {"warning heavy-tails": 3, "error outliers": 1, "info copies": 2})
    assert robustness.raised(one, ("heavy-tails",)) == (4, 3)
    assert robustness.raised(one, ("copies",)) == (6, 2)
    assert robustness.raised(one, ("heavy-tails",), ("outliers",)) == (3, 3)
    assert robustness.raised(record({}, 0, 1.0, {}), ("copies",)) == (0, 0)


def test_the_page_says_what_the_records_say():
    named = {"warning dependent-rows": 2}
    cells = {"departure": ""}, {"departure": "autocorrelation=0.8"}
    found = [record(cells[0], 0, 1.0, {}), record(cells[1], 0, 0.9, named)]
    answer = robustness.answer_table(found)
    assert "| none | – | 1.00 | 0/2 | 0/3 | 0/0 |" in answer
    assert "| `autocorrelation` | 0.8 | **0.90** | 0/2 | 0/3 | 2/2 |" in answer


def test_the_page_describes_every_departure():
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"- `{name}`: {kind.what}\n" in page for name, kind in KINDS.items())
