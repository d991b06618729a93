"""Pictures of the report for the README and the tour: `python examples/report_pictures.py FOLDER`.

Recovers a simulated plant, writes its report, opens it in Chromium and photographs its parts.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import Page, sync_playwright

import jigsaw_crl as jc

NAMES = ("pump", "valve", "flow", "tank", "heater", "mixer")
EFFECTS = (
    ("pump", "valve", 0.9),
    ("valve", "flow", -1.1),
    ("tank", "flow", 0.8),
    ("heater", "mixer", 1.0),
    ("flow", "mixer", 0.7),
)
SITES = {
    "north": ("pump", "valve", "tank"),
    "east": ("pump", "valve", "tank", "flow"),
    "south": ("valve", "flow", "tank", "heater"),
    "west": ("flow", "heater", "mixer"),
    "coast": ("flow", "mixer", "tank"),
}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# No sandbox, so that it also runs as root in a container.
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def plant() -> jc.Result:
    """The order of a plant with five sites and hard interventions."""
    weights = np.zeros((6, 6))
    for cause, effect, strength in EFFECTS:
        weights[NAMES.index(effect), NAMES.index(cause)] = strength
    world = jc.simulate.world_from_graph(
        weights,
        list(SITES.values()),
        (5, 6, 6, 5, 5),
        seed=4,
        names=NAMES,
        client_names=list(SITES),
        intervention=jc.simulate.Intervention("hard", shift=1.0),
    )
    study = jc.Study("plant", tuple(world.clients(n_samples=2_000)))
    return jc.recover(study, interventions="hard").with_proposal()


def _ask(page: Page, ancestor: str, descendant: str) -> None:
    page.fill("#ask-a", ancestor)
    page.fill("#ask-d", descendant)
    page.click("#ask button")
    page.wait_for_selector("#certificate")


def _section(name: str, *, below: int = 0) -> Callable[[Page], dict[str, float]]:
    """The clip of a section of the page, its first `below` pixels if given."""

    def clip(page: Page) -> dict[str, float]:
        box: Any = page.locator(f"#{name}").bounding_box()
        height = min(below, box["height"]) if below else box["height"]
        return {
            "x": box["x"] - 12,
            "y": box["y"] - 12,
            "width": box["width"] + 24,
            "height": height + 24,
        }

    return clip


def _top(height: int) -> Callable[[Page], dict[str, float]]:
    return lambda page: {"x": 0, "y": 0, "width": page.viewport_size["width"], "height": height}  # type: ignore[index]


# Name, width of the window, colour scheme, pair that is asked about, and part of the page.
SHOTS = (
    ("report", 1280, "light", ("pump", "mixer"), _top(1_030)),
    ("report-effects", 1280, "light", None, _section("effects")),
    ("report-pieces", 1280, "light", None, _section("pieces", below=780)),
    ("report-pairs", 1280, "light", None, _section("pairs", below=1_150)),
    ("report-evidence", 1280, "light", None, _section("evidence")),
    ("report-next", 1280, "light", None, _section("next")),
    ("report-phone", 390, "dark", None, _top(844)),
)


@contextmanager
def _browser() -> Iterator[Any]:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        sys.exit("no Chromium on this machine: scripts/install-chromium.sh installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


def photograph(report: Path, folder: Path) -> None:
    """Write every picture of a report into a folder, as WebP."""
    with _browser() as browser:
        for name, width, scheme, pair, part in SHOTS:
            # So high that nothing of the page has to be scrolled.
            page = browser.new_page(
                viewport={"width": width, "height": 1_100}, color_scheme=scheme, offline=True
            )
            page.goto(report.resolve().as_uri())
            page.wait_for_selector("html[data-ready=yes]")
            if pair is not None:
                _ask(page, *pair)
            shot = page.screenshot(full_page=True, clip=part(page))
            Image.open(io.BytesIO(shot)).save(folder / f"{name}.webp", quality=82, method=6)
            page.close()


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        photograph(plant().report(Path(scratch) / "report.html"), target)
