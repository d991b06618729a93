"""How tests are shared out between workers, and that a slow machine or disk fails none of them."""

import os
import signal
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# How long an example takes says something of the machine, nothing of the code.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# `make test` draws the same examples every time; `make test-random` draws others, and many more.
# What it finds is mended, and kept as an `@example`.
settings.register_profile("same", _PATIENT, derandomize=True, database=None, max_examples=30)
settings.register_profile("random", _PATIENT, max_examples=1_000, print_blob=True)
settings.load_profile("same")


@pytest.fixture(scope="session", autouse=True)
def examples_do_not_depend_on_imports():
    """Hypothesis also draws constants of modules that are loaded, which differ between workers."""
    with pytest.MonkeyPatch.context() as patch:
        if settings.default.derandomize and hasattr(providers, "_get_local_constants"):
            patch.setattr(providers, "_get_local_constants", providers.Constants)
        yield


def _optional(name, extra):
    """A fixture with an optional library: imported by the tests that need it, which it may skip."""

    @pytest.fixture(scope="session", name=name)
    def library():
        return pytest.importorskip(name, reason=f"the extra {extra!r} is not installed")

    return library


nvflare = _optional("nvflare", "federated")
distributed = _optional("distributed", "cluster")
anndata = _optional("anndata", "anndata")


@pytest.fixture(scope="session", autouse=True)
def no_wait_for_the_disk():
    """Tests end processes, never the machine, so that nothing need reach the disk meanwhile."""

    def checked(file):
        os.fstat(file if isinstance(file, int) else file.fileno())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", checked)
        yield


@pytest.fixture(scope="session", autouse=True)
def interrupts_are_heard():
    """A shell lets what it starts in the background ignore them, with all that this starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def refused(tmp_path, capsys):
    """Run a command that must refuse its input and write nothing; the one line it says."""
    from jigsaw_crl.cli.app import run

    def files():
        return {p: p.read_bytes() if p.is_file() else b"" for p in tmp_path.rglob("*")}

    def check(arguments, *says):
        before = files()
        code = run([str(a) for a in arguments])
        out, err = capsys.readouterr()
        assert code == 2, f"exit {code}: {err}"
        assert out == ""
        assert err.endswith("\n")
        assert len(err.splitlines()) == 1, err
        assert "Traceback" not in err
        for word in says:
            assert word.casefold() in err.casefold(), f"{word!r} is not in: {err}"
        assert files() == before
        return err

    return check


@pytest.fixture
def told(capsys):
    """Run a command; what it prints, or what it complains about if it must fail with a code."""
    from jigsaw_crl.cli.app import run

    def say(*arguments, code=0):
        capsys.readouterr()
        found = run([str(a) for a in arguments])
        out, err = capsys.readouterr()
        assert found == code, f"exit {found}: {err}"
        return err if code else out

    return say


@pytest.fixture
def quick_page(monkeypatch):
    """Results are saved with an empty page, which takes most of the time."""
    page = '<meta name="generator" content="jigsaw-crl test"><p>'
    monkeypatch.setattr("jigsaw_crl.report.writing.render_report", lambda _: page)


# Tests that share processes and depend on their order. They wait more than they compute, so that
# they start first and another worker has the processor meanwhile.
FIRST = "tests/federated/test_live.py"
# What a file has whose tests share a computed result.
SHARES = ('scope="module"', "@cache")
# Its files share the results and the browser of a session.
TOGETHER = "tests/report/"
ROOT = Path(__file__).resolve().parents[1]


@cache
def shares_results(file):
    """Do the tests of a file share results, which a second worker would compute again?"""
    path = ROOT / file
    return path.is_file() and any(sign in path.read_text("utf-8") for sign in SHARES)


def _together(nodeid):
    """What one worker takes as a whole: a folder, a file or a single test."""
    file = nodeid.split("::", 1)[0]
    if file.startswith(TOGETHER):
        return TOGETHER
    return file if shares_results(file) else nodeid


def pytest_collection_modifyitems(items):
    """The longest first, then files that stay together, then single tests, which fill the gaps."""
    first = (FIRST, TOGETHER)

    def place(item):
        group = _together(item.nodeid)
        return first.index(group) if group in first else len(first) + (group == item.nodeid)

    items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """One worker takes a file whose tests share results; other tests go one by one.

    `--dist loadgroup` is for this, but xdist 3.8 writes the group's name to where pytest 9.2 no
    longer reads it.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return _together(nodeid)

    # As they were collected, not by the number of tests.
    config.option.loadscopereorder = False
    return Scheduling(config, log)
