"""Commands are listed without being loaded, and the list says what the commands say."""

from __future__ import annotations

import pytest
import typer
from typer.main import get_command

from jigsaw_crl.cli import app as cli
from jigsaw_crl.cli import client, federate, latents, order, verify, worlds
from jigsaw_crl.cli.commands import COMMANDS


@pytest.fixture(scope="module")
def loaded():
    """Every command registered at once, in the order of the list."""
    app = typer.Typer(rich_markup_mode=None)
    app.callback()(lambda: None)
    for module in (order, client, latents, worlds, federate, verify):
        module.register(app)
    commands = get_command(app).commands
    assert set(commands) == set(COMMANDS)
    return {name: commands[name] for name in COMMANDS}


def test_every_command_is_in_the_list_and_lives_where_it_says(loaded):
    group = get_command(cli.app)
    assert len(group.commands) == len(loaded)
    for name, command in group.commands.items():
        assert command.name == name
        assert [p.opts for p in command.params] == [p.opts for p in loaded[name].params]


def test_the_first_sentences_are_those_of_the_commands(loaded):
    for name, (_, text) in COMMANDS.items():
        assert text == " ".join(loaded[name].help.split("\n\n")[0].split())


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
