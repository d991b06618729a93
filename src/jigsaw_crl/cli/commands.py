"""The list of commands, each with its module and the first sentence of its help.

A command's module is imported when the command is run or completed, or its own help is printed.
`jigsaw --help` needs names and first sentences only, which are kept here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

__all__ = ["COMMANDS", "Commands", "CommandsOnDemand"]

# In the order of the list: the module below `jigsaw_crl.cli`, and the first paragraph of its help.
COMMANDS = {
    "demo": ("worlds", "The main job on an embedded study: recover, explain, report."),
    "check": ("client", "Is this data fit for the method, and if not, why not?"),
    "recover": ("order", "Recover the global order of a study."),
    "explain": ("order", "Why is this the verdict on a pair of labels?"),
    "predict": ("order", "What changes if some labels are moved?"),
    "report": (
        "order",
        "Write the one-file HTML report of a result.",
    ),
    "diff": ("order", "What changed between two results, and because of which sites?"),
    "design": ("order", "Propose the next experiment: a new client, or more rows."),
    "moments": ("client", "Turn rows into sufficient statistics."),
    "fragment": ("client", "Recover one client's fragment: all that a site shares."),
    "latents": ("latents", "Write the latents of each row of a table."),
    "assemble": ("order", "Assemble fragments into one global order."),
    "verify": ("verify", "Check who signed a result, and what it rests on."),
    "federate": ("federate", "Sites keep their data; a coordinator gets their fragments."),
    "simulate": ("worlds", "Write the study of a simulated world."),
    "reproduce": ("worlds", "Run the paper's experiments, beside its printed numbers."),
}


class Commands(TyperGroup):
    """A group that prints its whole help when it is called without a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            typer.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)


class CommandsOnDemand(Commands):
    """A group that lists its commands without loading them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = _Loaded()

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Format the list as typer does, from `COMMANDS`."""
        del ctx
        limit = formatter.width - 6 - max(map(len, COMMANDS))
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, TyperCommand(name, help=text).get_short_help_str(limit))
                    for name, (_, text) in COMMANDS.items()
                ]
            )


class _Loaded(Mapping[str, Any]):
    """A mapping from names to commands; a command's module is imported on first access."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._known:
            module, _ = COMMANDS[name]
            home = typer.Typer(rich_markup_mode=None, add_completion=False)
            # With a callback it is a group, even of one command.
            home.callback()(lambda: None)
            import_module(f"jigsaw_crl.cli.{module}").register(home)
            self._known.update(get_command(home).commands)  # type: ignore[attr-defined]
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)
