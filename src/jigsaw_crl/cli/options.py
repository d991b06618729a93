"""Every argument and option of the commands: its metavar and its help, by the parameter's name.

A command is a plain function. `command` registers it: the options of its parameters come from the
table below, or from what a command says of its own. The parameter `reading` stands for all options
that say how a table is read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from jigsaw_crl.base.errors import InputError

if TYPE_CHECKING:
    from jigsaw_crl.client.checks import Kind, Kinds
    from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["Method", "Reading", "argument", "command", "kinds_of", "method_options", "option"]

Method = Literal["null-cone", "paper"]
# Keyword arguments of the readers.
Reading = dict[str, Any]


def argument(metavar: str, text: str) -> Any:
    """An argument of a command."""
    return typer.Argument(metavar=metavar, help=text)


def option(
    metavar: str | None,
    text: str,
    *flags: str,
    min: float | None = None,
    max: float | None = None,
) -> Any:
    """An option of a command; a flag has no metavar."""
    return typer.Option(*flags, metavar=metavar, help=text, min=min, max=max)


OPTIONS: dict[str, Any] = {
    # What is read and written.
    "study": argument("STUDY", "Study folder, study.toml, or one client's file."),
    "table": argument("TABLE", "CSV, Parquet (file or folder), NPZ or h5ad."),
    "folder": argument("DIR", "Result folder of recover or assemble."),
    "out": option("DIR", "Folder for result.json, order.csv, report.html …"),
    "as_json": option(None, "Print one JSON object on stdout.", "--json"),
    "force": option(
        None,
        "Overwrite existing files that jigsaw did not write; inputs and keys never.",
        "--force",
    ),
    # How a table is read.
    "regime": option("COLUMN", "Column with the regime of a row (default: regime)."),
    "control": option("VALUE", "Its value on observational rows (default: control)."),
    "batch": option(
        "COLUMN",
        "Column with the batch of a row (plate, day, run); a batch may offset all its rows.",
    ),
    "group": option(
        "COLUMN", "Column with the group of a row (subject, run); rows of one group are alike."
    ),
    "trim": option(
        "SHARE",
        "Leave out this share of each regime's rows, those that lie farthest out (0.05).",
        min=0.0,
        max=0.4,
    ),
    "drop_missing": option(None, "Leave out rows with missing values.", "--drop-missing"),
    "fill_missing": option(
        None, "Use rows with missing values too, by EM for Gaussian rows.", "--fill-missing"
    ),
    "ignore": option("COLUMN", "Column that is not a feature; may be repeated."),
    "name": option("NAME", "The client's name (default: the file's)."),
    "n_latent": option("N", "Latents the client accesses (default: estimated)."),
    # How a client is recovered, and how fragments are assembled.
    "method": option(
        None, "null-cone: this package's own method; paper: the published algorithms."
    ),
    "tau": option("T", "Tolerance of --method paper (default 0.05)."),
    "confounding": option(
        None,
        "Use none only if you know that every client accesses every latent, so that no hidden "
        "cause can confound two of its labels; more pairs are then settled.",
    ),
    "rank_one": option(
        None,
        "Use unsure if an intervention may leave the effects of some causes on its target "
        "unchanged (for instance, if it only changes the mean or the noise). A label whose "
        "intervention moves a single direction then leaves its ancestors open; by default it has "
        "none.",
    ),
    "interventions": option(
        "KIND",
        "hard or soft, for all labels, or LABEL=hard for one; may be repeated. Use hard only if "
        "the target no longer responds to its causes: a held setpoint, a knock-out, a randomised "
        "dose. Effects and direct edges are then given.",
    ),
    "smallest_effect": option(
        "SIZE",
        'The size of effect that matters. "Not ancestor" then means that no effect is larger: in '
        "standard deviations under hard interventions, else as a share of what the intervention "
        "on the descendant changed.",
    ),
    "seed": option("N", "Seed of the assembly.", min=0),
    # Keys and rounds.
    "keys": option("FILE", "List of the sites' keys; unsigned fragments are then refused."),
    "round_name": option("NAME", "Round that the fragments are signed for.", "--round"),
    "min_sites": option("N", "Fragments needed for a result.", min=1),
    "timeout": option("SECONDS", "Time that sites have to answer.", min=1),
    "deadline": option(
        "SECONDS", "Time for the whole round (default: --timeout and 2 minutes).", min=1
    ),
    "patience": option("SECONDS", "Time to reach the coordinator.", min=1),
}


def reading(
    regime: str | None = None,
    control: str | None = None,
    batch: str | None = None,
    group: str | None = None,
    trim: float | None = None,
    drop_missing: bool = False,
    fill_missing: bool = False,
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
        "ignore": ignore or (),
        "trim": trim,
        # None leaves it to the manifest.
        "missing": "drop" if drop_missing else "em" if fill_missing else None,
    }


def command(
    app: typer.Typer,
    function: Callable[..., None],
    example: str,
    *,
    called: str | None = None,
    **own: Any,
) -> None:
    """Register a function as a command.

    Parameters
    ----------
    app : typer.Typer
    function : callable
    example : str
        Shown below its help.
    called : str, optional
        The command's name, if it is not that of the function.
    own
        What this command says of its parameters in place of `OPTIONS`.
    """
    shared = inspect.signature(reading, eval_str=True).parameters
    parameters: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        parameters |= shared if name == "reading" else {name: parameter}

    @wraps(function)
    def run(**given: Any) -> None:
        if len(parameters) > len(inspect.signature(function).parameters):
            given["reading"] = reading(**{name: given.pop(name) for name in shared})
        function(**given)

    about = OPTIONS | own
    kinds = {name: Annotated[p.annotation, about[name]] for name, p in parameters.items()}
    run.__annotations__ = kinds
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            p.replace(annotation=kinds[name], kind=inspect.Parameter.KEYWORD_ONLY)
            for name, p in parameters.items()
        ]
    )
    app.command(called, epilog=f"Example: {example}")(run)


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
