"""How a plain function becomes a command, and what several commands do with their options.

Positional parameters of the function are the command's arguments, keyword-only ones its options;
`texts` holds their help. The parameter `reading` stands for all options that say how a table is
read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.cli.texts import FLAGS, LIMITS, TEXTS

if TYPE_CHECKING:
    from jigsaw_crl.client.checks import Kind, Kinds
    from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["Method", "Reading", "command", "kinds_of", "method_options", "signer"]

Method = Literal["null-cone", "paper"]
# Keyword arguments of the readers.
Reading = dict[str, Any]


def reading(
    *,
    regime: str | None = None,
    control: str | None = None,
    batch: str | None = None,
    group: str | None = None,
    trim: float | None = None,
    drop_missing: bool = False,
    fill_missing: bool = False,
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
        "ignore": ignore or (),
        "trim": trim,
        # None leaves it to the manifest.
        "missing": "drop" if drop_missing else "em" if fill_missing else None,
    }


def command(
    app: typer.Typer, function: Callable[..., None], example: str, name: str | None = None
) -> None:
    """Register a function as a command, by its own name or another; the example ends its help."""
    own = inspect.signature(function, eval_str=True).parameters
    shared = inspect.signature(reading, eval_str=True).parameters
    parameters = [
        parameter
        for given in own.values()
        for parameter in (shared.values() if given.name == "reading" else [given])
    ]

    @wraps(function)
    def run(**given: Any) -> None:
        if "reading" in own:
            given["reading"] = reading(**{name: given.pop(name) for name in shared})
        function(**given)

    keyword = inspect.Parameter.KEYWORD_ONLY
    described = [
        p.replace(annotation=_described(function.__name__, p), kind=keyword) for p in parameters
    ]
    run.__annotations__ = {p.name: p.annotation for p in described}
    run.__signature__ = inspect.Signature(described)  # type: ignore[attr-defined]
    app.command(name, epilog=f"Example: {example}")(run)


def _described(function: str, parameter: inspect.Parameter) -> Any:
    """The parameter's type, with what typer needs to know of it."""
    name, kind = parameter.name, parameter.annotation
    metavar, text = TEXTS.get(f"{function}.{name}") or TEXTS[name]
    if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
        return Annotated[kind, typer.Argument(metavar=metavar, help=text)]
    flags = FLAGS.get(name, (f"--{name.replace('_', '-')}",))
    least, most = LIMITS.get(name, (None, None))
    return Annotated[kind, typer.Option(*flags, metavar=metavar, help=text, min=least, max=most)]


_KINDS: dict[str, Kind] = {"soft": "soft", "hard": "hard"}


def kinds_of(given: list[str] | None) -> list[Kinds]:
    """What --interventions says: kinds for all labels, then for single ones.

    Each is for `with_interventions`, in this order.
    """
    for_all: list[Kinds] = []
    by_label: dict[str, Kind] = {}
    for text in given or ():
        label, equals, said = text.rpartition("=")
        kind = _KINDS.get(said)
        if kind is None or (equals and not label):
            raise InputError(
                f"--interventions is {text!r}",
                "Write hard or soft for all labels, or LABEL=hard for one.",
            )
        if equals:
            by_label[label] = kind
        else:
            for_all.append(kind)
    if len(set(for_all)) > 1:
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


def signer(
    key: Path | None, study: str | None, round_name: str | None
) -> Callable[[Fragment], str] | None:
    """The function that signs a fragment for a round of a study; None without a key."""
    if key is None:
        if study is not None or round_name is not None:
            raise InputError("--study and --round belong to --sign", "Pass --sign KEY as well.")
        return None
    if not study or not round_name:
        raise InputError(
            "a signature is for one round of one study",
            "Pass --study and --round, as the coordinator names them.",
        )
    # Imported here for start-up time: it loads pydantic.
    from jigsaw_crl.federated.keys import read_private_key
    from jigsaw_crl.federated.signing import sign_fragment

    private = read_private_key(key)
    return lambda piece: sign_fragment(piece, private, study=study, round_name=round_name)
