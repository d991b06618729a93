"""The lists of commands."""

from __future__ import annotations

import pytest

from jigsaw_crl.cli import app as cli


@pytest.mark.parametrize("words", [[], ["federate"]])
def test_without_a_command_the_whole_help_is_printed(words, capsys):
    assert cli.run(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[0].startswith("Usage: ")
    assert any(line.startswith("  simulate ") for line in lines)


def test_no_first_sentence_is_cut_on_a_terminal_of_eighty_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    for words in ([], ["federate"]):
        assert cli.run([*words, "--help"]) == 0
        assert "..." not in capsys.readouterr().out.split("Commands:")[1]


def test_a_mistyped_command_is_answered_with_the_nearest(capsys):
    assert cli.run(["recovr"]) == 2
    assert "'recover'" in capsys.readouterr().err
