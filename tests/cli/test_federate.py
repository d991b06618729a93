"""The commands `jigsaw federate …`; what they do is tested in `tests/federated`."""

from __future__ import annotations

import pytest

from jigsaw_crl.cli import app as cli


@pytest.mark.parametrize("command", ["keygen", "init", "start", "submit", "simulate"])
def test_every_command_has_help_with_an_example(command, capsys):
    assert cli.run(["federate", command, "--help"]) == 0
    assert f"Example: jigsaw federate {command}" in capsys.readouterr().out


def test_without_nvflare_the_remedy_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert cli.run(["federate", "init", str(tmp_path / "x"), "--site", "a"]) == 2
    assert "pip install 'jigsaw-crl[federated]'" in capsys.readouterr().err
