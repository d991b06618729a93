"""The report page: time to write, size, first paint and clicks in a real browser.

    python benchmarks/report_page.py --labels 5 60 300

Needs Chromium (scripts/install-chromium.sh) and the `dev` extra.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, sync_playwright
from reporting import header, options, row

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from jigsaw_crl.report import write_report
from report.conftest import FLAGS
from report.studies import large_result

PAINT = """() => {
  const [paint] = performance.getEntriesByName('first-contentful-paint');
  return paint.startTime;
}"""
# From the event to the next frame after the answer is in the page.
CLICK = """([target, answer]) => new Promise((done) => {
  const start = performance.now();
  document.querySelector(target).dispatchEvent(new MouseEvent('click', { bubbles: true }));
  const look = () => document.querySelector(answer)
    ? requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)))
    : setTimeout(look);
  look();
})"""


def main() -> None:
    parser = options(__doc__, repeats=5)
    parser.add_argument("--labels", type=int, nargs="*", default=[5, 60, 300])
    given = parser.parse_args()
    milliseconds = ("first paint", "ready", "click label", "click pair", "filter")
    columns = ("labels", "clients", "write (s)", "size (MB)")
    header(*columns, *(f"{name} (ms)" for name in milliseconds))
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for p in given.labels:
            clients, coverage = (5, 0.7) if p < 10 else (15, 0.5) if p < 100 else (40, 0.2)
            result = large_result(p, clients, coverage, seed=1)
            page = Path(folder) / f"{p}.html"
            start = time.perf_counter()
            write_report(result, page)
            wrote = time.perf_counter() - start
            rows = [measure(browser, page) for _ in range(given.repeats)]
            medians = [round(median(column)) for column in zip(*rows, strict=True)]
            row(p, clients, wrote, page.stat().st_size / 1e6, *medians)
        browser.close()


def measure(browser: Browser, path: Path) -> tuple[float, ...]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]", timeout=120_000)
    ready = page.evaluate("performance.now()")
    paint = page.evaluate(PAINT)
    label = page.evaluate(CLICK, [".node:nth-of-type(3)", ".hasse.lit"])
    pair = page.evaluate(CLICK, ["#rows tr:nth-child(2)", "#certificate"])
    start = time.perf_counter()
    page.select_option("#verdict", "0")
    page.wait_for_function(
        "() => [...document.querySelectorAll('#rows .say')]"
        ".every(e => e.textContent === 'undetermined')"
    )
    filtered = 1000 * (time.perf_counter() - start)
    context.close()
    return paint, ready, label, pair, filtered


if __name__ == "__main__":
    main()
