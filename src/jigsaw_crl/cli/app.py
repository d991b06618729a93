"""The application, its exit codes, and the one-line message of an error.

What a command runs is imported inside it, in every module of this room, so that `jigsaw --help`
and shell completion answer at once.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from typing import Annotated

import typer

from jigsaw_crl._version import __version__
from jigsaw_crl.base.errors import JigsawError
from jigsaw_crl.base.labels import safe_text

# Each registers its commands, in the order of the list that `jigsaw --help` prints.
from jigsaw_crl.cli import client, order, answers, federate, worlds  # noqa: F401 isort: skip
from jigsaw_crl.cli.options import app

SUCCESS, DEFECT, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"jigsaw-crl {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    del version


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 success, 2 bad input, 1 a defect, 130 interrupted."""
    if not sys.warnoptions:
        # Warnings are for developers; users get findings and errors.
        warnings.simplefilter("ignore")
    # As an interrupt, so that worker processes are ended too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        code = app(arguments, standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
    except JigsawError as error:
        return _complain(*(getattr(error, "lines", ()) or (str(error),)))
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("interrupted", err=True)
        return INTERRUPTED
    except typer.Exit as stop:
        return stop.exit_code
    except BrokenPipeError:
        # The reader of the output has gone (`jigsaw … | head`).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SUCCESS
    except MemoryError:
        return _complain("the data do not fit in memory. Turn tables into moments first.")
    except Exception as error:
        # An error of the command line itself, such as an unknown option, has its own message.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(message(), err=True)
            return BAD_INPUT
        command = getattr(getattr(error, "ctx", None), "command_path", None) or "jigsaw"
        return _complain(f"{message()} Try: {command} --help")
    return code if isinstance(code, int) else SUCCESS


def _complain(*lines: str) -> int:
    text = "\n  ".join(" ".join(line.split()) for line in lines)
    typer.echo(safe_text(f"jigsaw: {text}"), err=True)
    return BAD_INPUT
