"""Every malformed input leads to exit code 2 and one line that says what, where and what to do;
nothing is printed on stdout, written or changed."""

import hashlib
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jigsaw_crl.cli.app import run

Refused = Callable[..., str]
MEGABYTE = 1 << 20


def snapshot(root: Path) -> dict[str, str]:
    return {
        str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest() if p.is_file() else ""
        for p in sorted(root.rglob("*"))
    }


@pytest.fixture
def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Run a command that must refuse its input; the one line it says."""

    def check(arguments: list[object], *says: str) -> str:
        before = snapshot(tmp_path)
        code = run([str(a) for a in arguments])
        out, err = capsys.readouterr()
        assert code == 2, f"exit {code}: {err}"
        assert out == ""
        assert err.endswith("\n")
        assert len(err.splitlines()) == 1, err
        assert "Traceback" not in err
        for word in says:
            assert word.casefold() in err.casefold(), f"{word!r} is not in: {err}"
        assert snapshot(tmp_path) == before
        return err

    return check


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Fail if more than 120 MB are allocated at a time."""
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 120 * MEGABYTE
