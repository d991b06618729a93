"""How a plain function becomes a command, and what several commands do with their options.

Positional parameters of the function are the command's arguments, keyword-only ones its options;
`texts` holds their help. The parameter `reading` stands for all options that say how a table is
read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.cli.texts import FLAGS, LIMITS, TEXTS

if TYPE_CHECKING:
    from jigsaw_crl.client.checks import Kinds

Method = Literal["null-cone", "paper"]
# Keyword arguments of the readers.
Reading = dict[str, Any]

app = typer.Typer(
    name="jigsaw",
    help="One causal order from many partial, mixed, private views of a hidden system.",
    epilog="Start with: jigsaw demo",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def reading(
    *,
    regime: str | None = None,
    control: str | None = None,
    batch: str | None = None,
    group: str | None = None,
    trim: float | None = None,
    drop_missing: bool = False,
    fill_missing: bool = False,
    na: list[str] | None = None,
    covariate: list[str] | None = None,
    ignore: list[str] | None = None,
) -> Reading:
    """Keyword arguments of the readers, from the options that say how a table is read."""
    if drop_missing and fill_missing:
        raise InputError("--drop-missing and --fill-missing are both given", "Keep one.")
    return {
        "regime": regime,
        "control": control,
        "batch": batch,
        "group": group,
        "covariates": covariate or (),
        "na": na or (),
        "ignore": ignore or (),
        "trim": trim,
        # None leaves it to the manifest.
        "missing": "drop" if drop_missing else "em" if fill_missing else None,
    }


def command(
    example: str, name: str | None = None, on: typer.Typer = app
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command, by its own name or another; the example ends its help."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(function, eval_str=True).parameters
        shared = inspect.signature(reading, eval_str=True).parameters

        @wraps(function)
        def run(**given: Any) -> None:
            if "reading" in own:
                given["reading"] = reading(**{name: given.pop(name) for name in shared})
            function(**given)

        described = [
            p.replace(annotation=_described(function.__name__, p), kind=p.KEYWORD_ONLY)
            for given in own.values()
            for p in (shared.values() if given.name == "reading" else [given])
        ]
        run.__annotations__ = {p.name: p.annotation for p in described}
        run.__signature__ = inspect.Signature(described)  # type: ignore[attr-defined]
        on.command(name, epilog=f"Example: {example}")(run)
        return function

    return register


def _described(function: str, parameter: inspect.Parameter) -> Any:
    """The parameter's type, with what typer needs to know of it."""
    name, kind = parameter.name, parameter.annotation
    metavar, text = TEXTS.get(f"{function}.{name}") or TEXTS[name]
    if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
        return Annotated[kind, typer.Argument(metavar=metavar, help=text)]
    flags = FLAGS.get(name, (f"--{name.replace('_', '-')}",))
    least, most = LIMITS.get(name, (None, None))
    return Annotated[kind, typer.Option(*flags, metavar=metavar, help=text, min=least, max=most)]


def kinds_of(given: list[str] | None, method: Method = "null-cone") -> list[Kinds]:
    """What --interventions says: kinds for all labels, then for single ones.

    Each is for `with_interventions`, in this order.
    """
    method_options(method, interventions=given)
    for_all, by_label = set[Any](), dict[str, Any]()
    for text in given or ():
        label, equals, kind = text.rpartition("=")
        if kind not in ("soft", "hard") or (equals and not label):
            raise InputError(
                f"--interventions is {text!r}",
                "Write hard or soft for all labels, or LABEL=hard for one.",
            )
        if equals:
            by_label[label] = kind
        else:
            for_all.add(kind)
    if len(for_all) > 1:
        raise InputError(
            "--interventions says both hard and soft of all labels", "Name the labels of one kind."
        )
    return [*for_all, *([by_label] if by_label else [])]


def method_options(method: Method, tau: float | None = None, **null_cone: Any) -> dict[str, Any]:
    """Keyword arguments of `recover_fragment`, `recover` and `assemble`.

    `null_cone` are options that the paper's method does not have; None where nothing is asked for.
    """
    asked = {name: value for name, value in null_cone.items() if value is not None}
    if method == "paper":
        for name in asked:
            raise InputError(
                f"--{name.replace('_', '-')} belongs to --method null-cone", "Leave it out."
            )
        if tau is not None and not 0 < tau < 1:
            raise InputError(f"--tau is {tau}", "It lies between 0 and 1; the default is 0.05.")
        return {"method": method} if tau is None else {"method": method, "tau": tau}
    if tau is not None:
        raise InputError(
            "--tau belongs to --method paper; null-cone has no tuning parameter", "Leave it out."
        )
    return {"method": method, **asked}
