"""Every command that writes, killed or with a full disk at each step of its writing.

What it was given stays as it was; what it has written can be read, or is not there; a line says
that the disk is full; and the same command can be run again.
"""

import io
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.cli.app import run
from jigsaw_crl.cli.worlds import write_table
from jigsaw_crl.federated.keys import generate_key, read_private_key
from jigsaw_crl.federated.signing import open_unverified
from jigsaw_crl.result.folder import COMPLETE

from ..result.test_faults import DONE, KILLED, REFUSED, SURVIVED, fault_at, run_child

# No command has so many steps.
MOST_STEPS = 400


def error_of(words, place):
    """Run a command in a folder; the line with which it fails, "" if it does not."""
    said = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(said):
        code = run([word.replace("HERE", str(place)) for word in words.split()])
    return said.getvalue() if code else ""


def command(words, place):
    """Run a command in a folder; its line about an error becomes the text of an exception."""
    if said := error_of(words, place):
        raise InputError(said, "")


def is_there(output):
    """Is there a file, or in a folder a result or a study?"""
    return output.is_file() or any(output.glob("[!.]*")) or (output / COMPLETE).exists()


@dataclass(frozen=True)
class Case:
    """A command, what it writes, how this is read, and whether it is there before."""

    words: str
    output: str
    read: Callable[[Path], object]
    replaces: bool = False


CASES = {
    "init": Case("init HERE/tables", "tables/study.toml", lambda p: jc.read_study(p.parent)),
    "simulate": Case("simulate --setting A --out HERE/study", "study", jc.read_study),
    "moments": Case("moments HERE/tables/lab.csv -o HERE/new.npz", "new.npz", jc.read_client),
    "moments --add-to": Case(
        "moments HERE/more.csv --name lab --add-to HERE/lab.npz -o HERE/lab.npz",
        "lab.npz",
        jc.read_client,
        True,
    ),
    "fragment": Case("fragment HERE/lab.npz -o HERE/f.json", "f.json", jc.read_fragment),
    "fragment --sign": Case(
        "fragment HERE/lab.npz --sign HERE/own.key --study s --round r -o HERE/f.json",
        "f.json",
        lambda p: open_unverified(p.read_bytes()),
    ),
    "recover": Case("recover HERE/tables --out HERE/new", "new", jc.load_result),
    "assemble": Case("assemble HERE/a.json --out HERE/new", "new", jc.load_result),
    "assemble --into": Case(
        "assemble HERE/b.json --into HERE/result", "result", jc.load_result, True
    ),
    "report": Case("report HERE/result -o HERE/page.html", "page.html", Path.read_text),
    "report, again": Case("report HERE/result", "result/report.html", Path.read_text, True),
    "keygen": Case("federate keygen lab -o HERE/lab.key", "lab.key", read_private_key),
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A folder with two tables, moments, two fragments and a result of one of them."""
    folder = tmp_path_factory.mktemp("lab")
    world = jc.simulate.setting("A", 0)
    (folder / "tables").mkdir()
    for seed, name in enumerate(("tables/lab.csv", "more.csv")):
        write_table(world.sample(0, 300, seed=seed).regimes, folder / name, "csv")
    client = jc.read_client(folder / "tables" / "lab.csv")
    jc.study.write_moments(client, folder / "lab.npz")
    generate_key("lab", folder / "own.key")
    pieces = [jc.recover_fragment(world.client(k)) for k in range(2)]
    for piece, name in zip(pieces, "ab", strict=True):
        jc.save_fragment(piece, folder / f"{name}.json")
    jc.Result({pieces[0].client: pieces[0]}, jc.assemble(pieces[:1])).save(folder / "result")
    return folder


def content(root, without):
    """The files of a folder, but for one of them or a folder of them, and for hidden ones."""
    files = {p.relative_to(root): p for p in root.rglob("*") if p.is_file()}
    return {
        str(name): p.read_bytes()
        for name, p in files.items()
        if not p.is_relative_to(without) and not any(part[0] == "." for part in name.parts)
    }


@pytest.mark.slow
@pytest.mark.usefixtures("quick_page")
@pytest.mark.parametrize("kill", [False, True], ids=["full", "killed"])
@pytest.mark.parametrize("name", CASES)
def test_a_command_that_fails_at_any_write_spoils_nothing_and_can_be_run_again(
    name, kill, lab, tmp_path
):
    case = CASES[name]
    clean = shutil.copytree(lab, tmp_path / "clean")
    command(case.words, clean)
    reached = set()
    for step in range(MOST_STEPS):
        place = shutil.copytree(lab, tmp_path / str(step))
        output = place / case.output
        fault = fault_at(step, place, kill=kill)
        reached.add(code := run_child(lambda p=place: command(case.words, p), fault))
        assert content(place, output) == content(lab, lab / case.output), step
        if name == "keygen" and output.exists() and not output.read_bytes():
            output.unlink()  # its name was taken, and nothing was written
        whole = is_there(output)
        if whole or case.replaces:
            case.read(output)
        if code == DONE:
            break
        if not kill:
            # A result that is complete counts, also before its files are moved into place.
            left = {p.name for p in place.rglob(".*")} - {".lock", COMPLETE}
            assert left == set(), step
        if refused := error_of(case.words, place):
            # The last step was done, and nothing is written, nor are rows taken, twice.
            assert whole, (step, refused)
            assert "already" in refused, (step, refused)
        case.read(output)
    assert reached - {SURVIVED} == {DONE, KILLED if kill else REFUSED}
