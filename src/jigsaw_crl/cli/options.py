"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from jigsaw_crl.base.errors import InputError

if TYPE_CHECKING:
    from jigsaw_crl.client.checks import Kind, Kinds
    from jigsaw_crl.fragment.fragment import Fragment
    from jigsaw_crl.moments.row_options import Missing

Study = Annotated[
    Path, typer.Argument(metavar="STUDY", help="Study folder, study.toml, or one client's file.")
]
Table = Annotated[
    Path, typer.Argument(metavar="TABLE", help="CSV, Parquet (file or folder), NPZ or h5ad.")
]
ResultFolder = Annotated[
    Path, typer.Argument(metavar="DIR", help="Result folder of recover or assemble.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Overwrite existing files that jigsaw did not write; inputs and keys never.",
    ),
]
Method = Annotated[
    Literal["null-cone", "paper"],
    typer.Option(help="null-cone: this package's own method; paper: the published algorithms."),
]
Tau = Annotated[
    float | None, typer.Option(metavar="T", help="Tolerance of --method paper (default 0.05).")
]
Confounding = Annotated[
    Literal["allow", "none"],
    typer.Option(
        help="Use none only if you know that every client accesses every latent, so that no hidden "
        "cause can confound two of its labels; more pairs are then settled."
    ),
]
RankOne = Annotated[
    Literal["no-ancestor", "unsure"],
    typer.Option(
        help="Use unsure if an intervention may leave the effects of some causes on its target "
        "unchanged (for instance, if it only changes the mean or the noise). A label whose "
        "intervention moves a single direction then leaves its ancestors open; by default it has "
        "none."
    ),
]
Interventions = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KIND",
        help="hard or soft, for all labels, or LABEL=hard for one; may be repeated. Use hard only "
        "if the target no longer responds to its causes: a held setpoint, a knock-out, a "
        "randomised dose. Effects and direct edges are then given.",
    ),
]
SmallestEffect = Annotated[
    float | None,
    typer.Option(
        metavar="SIZE",
        help='The size of effect that matters. "Not ancestor" then means that no effect is larger: '
        "in standard deviations under hard interventions, else as a share of what the "
        "intervention on the descendant changed.",
    ),
]
Regime = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column with the regime of a row (default: regime)."),
]
Control = Annotated[
    str | None,
    typer.Option(metavar="VALUE", help="Its value on observational rows (default: control)."),
]
Batch = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column with the batch of a row (plate, day, run); a batch may offset all its rows.",
    ),
]
Group = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column with the group of a row (subject, run); rows of one group are alike.",
    ),
]
Trim = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        min=0.0,
        max=0.4,
        help="Leave out this share of each regime's rows, those that lie farthest out (0.05).",
    ),
]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Leave out rows with missing values.")
]
FillMissing = Annotated[
    bool,
    typer.Option(
        "--fill-missing", help="Use rows with missing values too, by EM for Gaussian rows."
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Column that is not a feature; may be repeated."),
]
Name = Annotated[
    str | None, typer.Option(metavar="NAME", help="The client's name (default: the file's).")
]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the assembly.")]
NLatent = Annotated[
    int | None, typer.Option(metavar="N", help="Latents the client accesses (default: estimated).")
]


def reading(
    regime: str | None,
    control: str | None,
    batch: str | None,
    group: str | None,
    ignore: list[str] | None,
    trim: float | None,
    drop_missing: bool,
    fill_missing: bool,
) -> dict[str, Any]:
    """Keyword arguments of the readers, from the options that say how a table is read."""
    return {
        "regime": regime,
        "control": control,
        "batch": batch,
        "group": group,
        "ignore": ignore or (),
        "trim": trim,
        "missing": missing(drop_missing, fill_missing),
    }


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


def null_cone_only(method: str, **given: object) -> None:
    """Refuse options that the paper's method does not have."""
    for name, value in given.items():
        if method == "paper" and value:
            raise InputError(
                f"--{name.replace('_', '-')} belongs to --method null-cone", "Leave it out."
            )


def method_options(
    method: str, tau: float | None, confounding: str, rank_one: str
) -> dict[str, Any]:
    """Keyword arguments of `recover_fragment` and `recover`."""
    if method == "paper":
        if (confounding, rank_one) != ("allow", "no-ancestor"):
            raise InputError(
                "--confounding and --rank-one belong to --method null-cone", "Leave them out."
            )
        if tau is not None and not 0 < tau < 1:
            raise InputError(f"--tau is {tau}", "It lies between 0 and 1; the default is 0.05.")
        return {"method": method} if tau is None else {"method": method, "tau": tau}
    if tau is not None:
        raise InputError(
            "--tau belongs to --method paper; null-cone has no tuning parameter", "Leave it out."
        )
    return {"method": method, "confounding": confounding, "rank_one": rank_one}


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


def missing(drop: bool, fill: bool) -> Missing | None:
    """What `--drop-missing` and `--fill-missing` ask for; None leaves it to the manifest."""
    if drop and fill:
        raise InputError("--drop-missing and --fill-missing are both given", "Keep one.")
    return "drop" if drop else "em" if fill else None
