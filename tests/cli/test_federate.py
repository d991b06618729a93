"""The commands `jigsaw federate …`; what they do is tested in `tests/federated`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jigsaw_crl.cli import app as cli


@pytest.mark.parametrize(
    "command",
    [
        "keygen", "init", "start", "status", "add-site", "renew", "revoke", "submit", "simulate",
    ],
)  # fmt: skip
def test_every_command_has_help_with_an_example(command, capsys):
    assert cli.run(["federate", command, "--help"]) == 0
    assert f"Example: jigsaw federate {command}" in capsys.readouterr().out


def test_without_nvflare_the_remedy_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert cli.run(["federate", "init", str(tmp_path / "x"), "--site", "a"]) == 2
    assert "pip install '.[federated]'" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--help"], ["federate", "--help"]])
def test_help_loads_nothing_that_federations_need(words):
    code = (
        f"import sys; sys.argv = {['jigsaw', *words]!r}\n"
        "from jigsaw_crl.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'jigsaw_crl.base.documents', 'cryptography', 'nvflare', 'numpy'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
