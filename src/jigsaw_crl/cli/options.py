"""How a plain function becomes a command, and what several commands do with their options.

Positional parameters of the function are the command's arguments, keyword-only ones its options;
`TEXTS` holds their help. The parameter `reading` stands for all options that say how a table is
read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import reduce, wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.cli.output import emit

if TYPE_CHECKING:
    from jigsaw_crl.study import Study

Method = Literal["null-cone", "paper"]
# What a command yields: the document for --json, then lines and tables for people.
Answers = Iterator[tuple[Any, ...]]
# Keyword arguments of the readers.
Reading = dict[str, Any]
KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY

app = typer.Typer(
    name="jigsaw",
    help="One causal order from many partial, mixed, private views of a hidden system.",
    epilog="Start with: jigsaw demo",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


# The options that say how a table is read, and their types.
READING: dict[str, Any] = {
    "interventions": list[str] | None,
    **dict.fromkeys(("regime", "control", "batch", "group"), str | None),
    "trim": float | None,
    **dict.fromkeys(("drop_missing", "fill_missing"), bool),
    **dict.fromkeys(("na", "covariates", "ignore"), list[str] | None),
}


def as_asked(given: dict[str, Any]) -> Reading:
    """Keyword arguments of the readers, taken from the options that are given."""
    reading = {name: given.pop(name) for name in READING}
    drop, fill = reading.pop("drop_missing"), reading.pop("fill_missing")
    if drop and fill:
        raise InputError("--drop-missing and --fill-missing are both given", "Keep one.")
    return asked(**reading, missing="drop" if drop else "em" if fill else None)


def command(
    example: str, name: str | None = None, on: typer.Typer = app
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a command, by its own name or another; the example ends its help.

    A command that yields answers has the option --json.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        own = dict(inspect.signature(function, eval_str=True).parameters)
        shared = READING if own.pop("reading", None) else {}
        answers = {"as_json": bool} if inspect.isgeneratorfunction(function) else {}
        for x, kind in {**shared, **answers}.items():
            default = False if kind is bool else None
            own[x] = inspect.Parameter(x, KEYWORD_ONLY, default=default, annotation=kind)

        @wraps(function)
        def run(**given: Any) -> None:
            as_json = given.pop("as_json", False)
            if shared:
                given["reading"] = as_asked(given)
            for document, *told in function(**given) or ():
                emit(as_json, document, *told)

        kept = [_described(function.__name__, parameter) for parameter in own.values()]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in kept}
        run.__signature__ = inspect.Signature(kept)  # type: ignore[attr-defined]
        on.command(name, epilog=f"Example: {example}")(run)
        return function

    return register


def _described(function: str, parameter: inspect.Parameter) -> inspect.Parameter:
    """The parameter with what typer needs to know of it."""
    name, kind, about = parameter.name, parameter.annotation, dict[str, Any]()
    about["metavar"], about["help"] = TEXTS.get(f"{function}.{name}") or TEXTS[name]
    if parameter.kind is not KEYWORD_ONLY:
        shown = typer.Argument(**about)
    else:
        about["min"], about["max"] = LIMITS.get(name, (None, None))
        shown = typer.Option(*FLAGS.get(name, (f"--{name.replace('_', '-')}",)), **about)
    return parameter.replace(annotation=Annotated[kind, shown], kind=KEYWORD_ONLY)


def saying(reading: Reading, method: Method = "null-cone") -> Callable[[Study], Study]:
    """What tells a study the kinds of --interventions, which are taken from what is asked for.

    Those of all labels come before those of single ones.
    """
    given = reading.pop("interventions", None)
    if given and method == "paper":
        raise InputError("--interventions belongs to --method null-cone", "Leave it out.")
    kinds = list[Any]()
    for text in given or ():
        label, equals, kind = text.rpartition("=")
        if kind not in ("soft", "hard") or (equals and not label):
            raise InputError(
                f"--interventions is {text!r}",
                "Write hard or soft for all labels, or LABEL=hard for one.",
            )
        kinds.append({label: kind} if equals else kind)
    if {"soft", "hard"} <= {kind for kind in kinds if isinstance(kind, str)}:
        what = "--interventions says both hard and soft of all labels"
        raise InputError(what, "Name the labels of one kind.")
    kinds.sort(key=lambda kind: not isinstance(kind, str))
    return lambda study: reduce(lambda own, kind: own.with_interventions(kind), kinds, study)


def asked(**options: Any) -> dict[str, Any]:
    """The options that are given; which of them belong to a method, the library says."""
    return {name: value for name, value in options.items() if value is not None}


# Metavar and help of every parameter. A name with a dot is that of a command's own parameter, which
# differs from that of others; it comes before the plain name. A flag has no metavar.
TEXTS: dict[str, tuple[str | None, str]] = {
    # What is read and written.
    "study": ("STUDY", "Study folder, study.toml, or one client's file."),
    "table": ("TABLE", "CSV, Parquet (file or folder), NPZ or h5ad; or a moments file."),
    "draft.folder": ("FOLDER", "Folder with one table per client; study.toml is written there."),
    "folder": ("DIR", "Result folder of recover or assemble."),
    "out": ("DIR", "Folder for the result."),
    "output": ("FILE", "File to write."),
    "as_json": (None, "Print one JSON object on stdout."),
    "force": (None, "Overwrite files that jigsaw did not write; inputs and keys never."),
    # How a table is read.
    "regime": ("COLUMN", "Column with the regime of a row (default: regime)."),
    "control": ("VALUE", "Its value on observational rows (default: control)."),
    "batch": ("COLUMN", "Column with the batch of a row (plate, day); it may offset all its rows."),
    "group": ("COLUMN", "Column with the group of a row (subject, run), whose rows are alike."),
    "trim": ("SHARE", "Leave out this share of each regime's rows, farthest first (0.05)."),
    "drop_missing": (None, "Leave out rows with missing values."),
    "fill_missing": (None, "Use rows with missing values too, by EM for Gaussian rows."),
    "covariates": ("COLUMN", "Column whose linear part is taken off the others; may be repeated."),
    "na": ("VALUE", "Value that stands for a missing one, such as -9999; may be repeated."),
    "ignore": ("COLUMN", "Column that is not a feature; may be repeated."),
    "name": ("NAME", "The client's name (default: the file's)."),
    "n_latent": ("N", "Latents the client accesses (default: estimated)."),
    "add_to": ("FILE", "Moments file whose rows these are added to."),
    "cluster": ("ADDRESS", "Dask scheduler whose workers read a folder of Parquet files."),
    # How a client is recovered, and how fragments are assembled.
    "method": (None, "null-cone: this package's own method; paper: the published algorithms."),
    "tau": ("T", "Tolerance of --method paper (default 0.05)."),
    "confounding": (None, "none: every client accesses every latent; more is then settled."),
    "rank_one": (None, "no-ancestor: a single direction means no ancestor (default: unsure)."),
    "interventions": ("KIND", "hard (ignores its causes) or soft, or LABEL=hard; may be repeated."),
    "smallest_effect": ("SIZE", 'Size that matters: "not ancestor" means that none is larger.'),
    "witnesses": ("N", "Clients a verdict must rest on (default: 1; with --keys, over a fifth)."),
    "seed": ("N", "Seed of random numbers."),
    "jobs": ("N", "Worker processes."),
    "show": (None, "Print all that the fragment holds, for review."),
    "min_rows": ("N", "Refuse a regime with fewer rows."),
    "full_precision": (None, "Do not round numbers to their sampling error."),
    "fragments": ("FRAGMENT", "Fragment files of the clients, or folders of them."),
    "into": ("RESULT", "Result folder that the fragments join; it keeps its method and seed."),
    "corrected": (None, "With --into: the fragments are corrected ones of clients it has."),
    "remove": ("CLIENT", "With --into: leave this client out; may be repeated."),
    "knowledge": ("FILE", "study.toml, or another file with its table [knowledge]."),
    # Questions to a result.
    "ancestor": ("ANCESTOR", "Is this label an ancestor …"),
    "descendant": ("DESCENDANT", "… of this one?"),
    "shifts": ("LABEL=AMOUNT", "How far a label is moved, in its standard deviations: pump=+1.0"),
    "old": ("OLD", "Earlier result folder."),
    "new": ("NEW", "Later result folder."),
    "size": ("N", "Labels the next client accesses; by default as many as pay."),
    "cost": ("LABEL=AMOUNT", "What an intervention costs, 1 by default; may be repeated."),
    "cannot": ("LABEL", "A label on which it cannot intervene; may be repeated."),
    # Keys and rounds.
    "sign": ("KEY", "Sign it with this private key."),
    "keys": ("FILE", "List of public keys; what no site of it has signed is refused."),
    "round_name": ("NAME", "Name of the round, for which fragments are signed."),
    "again": (None, "Make the result of a round again, and replace it."),
    "fragment.study": ("NAME", "Study that it is signed for."),
    "verify.fragment": ("FILE", "A fragment that the result should rest on."),
    "log": ("FILE", "The coordinator's log of used fragments."),
    "site": ("SITE", "A site's name, which is also its client's."),
    "federation": ("FOLDER", "Folder of the federation: its project, certificates and kits."),
    "server": ("HOST", "Host name under which sites reach the coordinator."),
    "port": ("PORT", "Port of the coordinator."),
    "admin": ("ADDRESS", "E-mail address of the person who starts rounds."),
    "renew.name": ("NAME", "A site, the coordinator or the admin."),
    "kit": ("KIT", "Kit of a participant."),
    "min_sites": ("N", "Fragments needed for a result."),
    "timeout": ("SECONDS", "Time that sites have to answer."),
    "deadline": ("SECONDS", "Time for the whole round (default: --timeout and 2 minutes)."),
    "patience": ("SECONDS", "Time to reach the coordinator."),
    # Simulated worlds.
    "simulate.out": ("DIR", "Study folder to write; must be new."),
    "setting": (None, "A world of the paper."),
    "latent": ("P", "Latents P."),
    "clients": ("K", "Clients K."),
    "coverage": ("Q", "Chance that a client accesses a latent."),
    "system": (
        "NAME",
        "How latents respond to their causes: linear, tanh, saturating, relu, sine, mixed, "
        "products, squares or noise.",
    ),
    "intervention": (
        "KIND",
        "What interventions do: paper, weak, strong, hard, mild, shrink, knock-down, set, "
        "hard-keep, hard-replace, noise-only or mean-only.",
    ),
    "shift": ("SD", "Mean shift of targets, in standard deviations of their noise."),
    "samples": ("N", "Rows per regime; without it, exact moments."),
    "noise": (None, "Family of the noise."),
    "file_format": (None, "Format of tables (default: parquet)."),
    "what": (None, "Which of the paper's results."),
    "only": ("PART", "A part to run, such as A-laplace or p20-K15-q0.6; may be repeated."),
    "reproduce.method": ("METHOD", "A method to run; may be repeated. Default: both."),
    "quick": (None, "Fewer replicates."),
    "workers": ("N", "Worker processes; by default one per core."),
}
# Options that are not called like their parameter.
FLAGS: dict[str, tuple[str, ...]] = {
    "as_json": ("--json",),
    "corrected": ("--replace",),
    "covariates": ("--covariate",),
    "file_format": ("--format",),
    "output": ("-o", "--output"),
    "round_name": ("--round",),
}
# The smallest and the largest value of a number.
LIMITS: dict[str, tuple[float, float | None]] = {
    "trim": (0, 0.4),
    **dict.fromkeys(("coverage", "tau"), (0, 1)),
    "port": (1, 65535),
    **dict.fromkeys(("seed", "shift"), (0, None)),
    **dict.fromkeys(("size", "latent"), (2, None)),
    **dict.fromkeys(("clients", "jobs", "min_rows", "samples", "witnesses", "workers"), (1, None)),
    **dict.fromkeys(("min_sites", "timeout", "deadline", "patience"), (1, None)),
}
