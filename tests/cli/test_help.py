"""Help, completion, and what they may load."""

import sys

import pytest

import jigsaw_crl as jc
from jigsaw_crl.cli import app as cli

from ..processes import MAIN, python

COMMANDS = [
    "check", "moments", "fragment", "recover", "assemble", "report", "explain",
    "predict", "diff", "design", "verify", "demo", "simulate", "reproduce",
]  # fmt: skip
FEDERATE = [
    "keygen", "init", "start", "add-site", "renew", "revoke", "submit",
]  # fmt: skip


@pytest.mark.parametrize("command", [*COMMANDS, *(f"federate {name}" for name in FEDERATE)])
def test_every_command_has_help_with_an_example(command, capsys):
    assert cli.run([*command.split(), "--help"]) == 0
    assert f"Example: jigsaw {command}" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["federate"]])
def test_without_a_command_the_whole_help_is_printed(words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.run([*words, "--help"]) == 0
    out = capsys.readouterr().out
    listed = [line.split()[0] for line in out.split("Commands:")[1].splitlines() if line.strip()]
    assert set(FEDERATE if words else [*COMMANDS, "federate"]) <= set(listed)
    assert "..." not in out.split("Commands:")[1]
    assert cli.run(words) == 2
    assert capsys.readouterr() == ("", out)


def test_the_version_is_printed(capsys):
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"jigsaw-crl {jc.__version__}"


@pytest.mark.parametrize("words", [["--help"], ["federate", "--help"], ["recover", "--help"]])
def test_help_imports_nothing_heavy(words):
    code = (
        f"import sys; sys.argv = {['jigsaw', *words]!r}\n"
        f"try:\n    {MAIN}\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'scipy', 'pandas', 'pyarrow', 'sklearn', 'numba', 'networkx',"
        " 'matplotlib', 'cryptography', 'nvflare', 'jigsaw_crl.base.documents'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = python("-c", code)
    assert done.returncode == 0, done.stderr


def test_without_nvflare_the_remedy_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "nvflare", None)
    assert cli.run(["federate", "init", str(tmp_path / "x"), "--site", "a"]) == 2
    assert "pip install '.[federated]'" in capsys.readouterr().err
