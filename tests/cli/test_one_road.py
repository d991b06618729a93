"""What `jigsaw recover` does on four clients: each thing once, and no search while writing."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl import diagnostics, nullcone, pipeline
from jigsaw_crl.assembly import design
from jigsaw_crl.cli.app import run
from jigsaw_crl.result import result as results

CLIENTS = 4


def write_study(folder: Path, file_format: str) -> list[Path]:
    arguments = ["simulate", "--latent", "6", "--clients", str(CLIENTS), "--coverage", "0.7"]
    rows = ["--samples", "1500", "--format", file_format]
    assert run([*arguments, *([] if file_format == "moments" else rows), "--out", str(folder)]) == 0
    return sorted(p for p in folder.iterdir() if p.is_file())


@pytest.fixture
def calls(monkeypatch) -> Counter[str]:
    """How often a client is checked, recovered or refined, and the next client searched for."""
    counted: Counter[str] = Counter()

    def count(owner: object, name: str, key: str) -> None:
        function: Callable[..., object] = getattr(owner, name)

        def counting(*args: object, **options: object) -> object:
            counted[key] += 1
            return function(*args, **options)

        monkeypatch.setattr(owner, name, counting)

    count(pipeline, "check_client", "check")
    count(diagnostics.checks, "check_client", "check")
    count(pipeline, "recover_client", "recover")
    count(nullcone.Recovery, "fragment", "fragment")
    count(nullcone.Recovery, "refined", "refine")
    count(results, "next_client", "search")
    count(design, "next_client", "search")
    return counted


@pytest.mark.slow
def test_each_client_is_checked_recovered_and_refined_once(tmp_path, calls):
    first, *_ = write_study(tmp_path / "study", "csv")
    assert run(["recover", str(tmp_path / "study"), "--out", str(tmp_path / "out")]) == 0
    road = ("check", "recover", "fragment")
    assert calls == {**dict.fromkeys((*road, "refine"), CLIENTS), "search": 1}
    calls.clear()
    assert run(["check", str(tmp_path / "study")]) == 0
    assert calls == dict.fromkeys(road, CLIENTS)
    calls.clear()
    assert run(["fragment", str(first), "-o", str(tmp_path / "a.fragment.json")]) == 0
    assert calls == dict.fromkeys(road, 1)
    calls.clear()
    control, regimes = jc.simulate.setting("A", 0).rows(0, 500)
    y = np.repeat(["control", *regimes], 500)
    jc.BlockRecovery().fit(np.vstack([control, *regimes.values()]), y)
    assert calls == dict.fromkeys(road, 1)


def test_writing_a_page_searches_for_nothing(tmp_path, calls):
    write_study(tmp_path / "study", "moments")
    out = tmp_path / "out"
    assert run(["recover", str(tmp_path / "study"), "--out", str(out)]) == 0
    proposed = jc.load_result(out).proposal
    assert proposed is not None
    page = (out / "report.html").read_text()
    calls.clear()
    assert run(["report", str(out), "-o", str(tmp_path / "again.html")]) == 0
    assert not calls
    # What sensors carry is known where the rows were read, and is not kept.
    sensors = re.compile(r'<section id="sensors".*?</section>\n', re.DOTALL)
    assert sensors.search(page)
    again = (tmp_path / "again.html").read_text()
    assert "Not known here: it stays where the rows are read" in again
    assert sensors.sub("", again).split() == sensors.sub("", page).split()
