"""A real browser for the page, and results to show in it."""

import shutil
from pathlib import Path

import pytest

import jigsaw_crl as jc
from jigsaw_crl.truth.demo import light_tunnel

from .studies import hostile_result, plant_result, random_result

# Milliseconds after which a step is given up. Each takes far less, even on a busy machine.
HANG = 120_000
# No sandbox: the tests may run as root. The rest keeps the browser from calling home.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def tunnel():
    world = light_tunnel()
    clients = [world.client(k, n_samples=20_000, seed=1) for k in range(world.n_clients)]
    return jc.recover(jc.Study("light tunnel", tuple(clients)), seed=1)


@pytest.fixture(scope="session")
def exact():
    world = jc.simulate.setting("A", 0)
    return jc.recover(world.client(k) for k in range(world.n_clients))


@pytest.fixture(scope="session")
def hostile():
    return hostile_result()


@pytest.fixture(scope="session")
def middling():
    return random_result(24, 8, 0.4, seed=3)


@pytest.fixture(scope="session")
def plant():
    """A study with hard interventions."""
    return plant_result()


@pytest.fixture(scope="session")
def sensed():
    """A result that was made from rows, with a sensor that is named."""
    cut = jc.simulate.Intervention("hard", shift=1.0)
    world = jc.simulate.random_world(5, 3, 0.8, seed=1, intervention=cut)
    first, *others = (c.with_interventions("hard") for c in world.clients(4_000))
    return jc.recover([first.with_sensors({first.labels[0]: "x2"}, {"x2": "m3/h"}), *others])


@pytest.fixture(scope="session")
def browser():
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium on this machine: `make browser` installs it")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=HANG)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=FLAGS, timeout=HANG)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Saves a result once and gives its folder."""
    known: dict[int, Path] = {}

    def save(result):
        if id(result) not in known:
            known[id(result)] = result.save(tmp_path_factory.mktemp("report") / "result")
        return known[id(result)]

    return save


@pytest.fixture
def visit(browser, folder):
    """Opens a result's page offline, and fails the test on any console message or request."""
    contexts, seen = [], []

    def go(result, width=1280, height=900, scheme="light", **more):
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, **more
        )
        contexts.append(context)
        context.set_default_timeout(HANG)
        context.set_offline(True)
        page = context.new_page()
        page.on("console", lambda message: seen.append(message.text))
        page.on("pageerror", lambda error: seen.append(str(error)))
        address = (folder(result) / "report.html").as_uri()
        page.on("request", lambda r: seen.append(r.url) if _strange(r.url, address) else None)
        page.goto(address)
        page.wait_for_selector("html[data-ready=yes]")
        return page

    yield go
    for context in contexts:
        context.close()
    assert not seen, "the page wrote to the console or asked for something"


def _strange(url, own):
    return url.split("#")[0] != own and not url.startswith(("data:,", "blob:"))
