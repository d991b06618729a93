"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from jigsaw_crl.base.errors import InputError

__all__ = [
    "ClosedWorldOption",
    "Confounding",
    "ConfoundingOption",
    "ControlOption",
    "IgnoreOption",
    "JsonOption",
    "Method",
    "MethodOption",
    "NLatentOption",
    "NameOption",
    "RankOne",
    "RankOneOption",
    "RegimeOption",
    "TauOption",
    "method_options",
]


class Method(StrEnum):
    null_cone = "null-cone"
    paper = "paper"


class Confounding(StrEnum):
    allow = "allow"
    none = "none"


class RankOne(StrEnum):
    no_ancestor = "no-ancestor"
    unsure = "unsure"


JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
MethodOption = Annotated[
    Method,
    typer.Option(
        "--method", help="null-cone: this package's own method; paper: the published algorithms."
    ),
]
TauOption = Annotated[
    float | None,
    typer.Option("--tau", metavar="T", help="Tolerance of --method paper (default 0.05)."),
]
ConfoundingOption = Annotated[
    Confounding,
    typer.Option(
        "--confounding",
        help="Use none only if you know that every client accesses every latent, so that no hidden "
        "cause can confound two of its labels; more pairs are then settled.",
    ),
]
RankOneOption = Annotated[
    RankOne,
    typer.Option(
        "--rank-one",
        help="Use unsure if an intervention may leave the effects of some causes on its target "
        "unchanged (for instance, if it only changes the mean or the noise). A label whose "
        "intervention moves a single direction then leaves its ancestors open; by default it has "
        "none.",
    ),
]
ClosedWorldOption = Annotated[
    bool,
    typer.Option(
        "--closed-world",
        help="Use only if you know that every latent carries a label at some client, so that "
        "whatever confounds two labels is itself a label. It needs exact moments and settles more "
        "pairs.",
    ),
]
RegimeOption = Annotated[
    str | None,
    typer.Option(
        "--regime", metavar="COLUMN", help="Column with the regime of a row (default: regime)."
    ),
]
ControlOption = Annotated[
    str | None,
    typer.Option(
        "--control", metavar="VALUE", help="Its value on observational rows (default: control)."
    ),
]
IgnoreOption = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore", metavar="COLUMN", help="Column that is not a feature; may be repeated."
    ),
]
NameOption = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="The client's name (default: the file's)."),
]
NLatentOption = Annotated[
    int | None,
    typer.Option(
        "--n-latent", metavar="N", help="Latents the client accesses (default: its labels)."
    ),
]


def method_options(
    method: Method, tau: float | None, confounding: Confounding, rank_one: RankOne
) -> dict[str, Any]:
    """Keyword arguments of `recover_fragment` and `recover`."""
    if method is Method.paper:
        if confounding is not Confounding.allow or rank_one is not RankOne.no_ancestor:
            raise InputError(
                "--confounding and --rank-one belong to --method null-cone", "Leave them out."
            )
        if tau is not None and not 0 < tau < 1:
            raise InputError(f"--tau is {tau}", "It lies between 0 and 1; the default is 0.05.")
        return {"method": "paper"} if tau is None else {"method": "paper", "tau": tau}
    if tau is not None:
        raise InputError(
            "--tau belongs to --method paper; null-cone has no tuning parameter", "Leave it out."
        )
    return {
        "method": "null-cone",
        "confounding": confounding.value,
        "rank_one": rank_one.value,
    }
