"""How a plain function becomes a command, and what several commands do with their options.

Positional parameters of the function are the command's arguments, keyword-only ones its options;
`TEXTS` holds their help. The parameter `reading` stands for all options that say how a table is
read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from jigsaw_crl.base.errors import InputError

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


# Metavar and help of every parameter. A name with a dot is that of one command's own parameter; it
# comes before the plain name. A flag has no metavar.
TEXTS: dict[str, tuple[str | None, str]] = {
    # What is read and written.
    "study": ("STUDY", "Study folder, study.toml, or one client's file."),
    "table": ("TABLE", "CSV, Parquet (file or folder), NPZ or h5ad."),
    "draft.folder": ("FOLDER", "Folder with one table per client; study.toml is written there."),
    "fragment.table": ("TABLE", "A table or a moments file."),
    "folder": ("DIR", "Result folder of recover or assemble."),
    "out": ("DIR", "Folder for result.json, order.csv, report.html …"),
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
    "covariate": ("COLUMN", "Column whose linear part is taken off the others; may be repeated."),
    "na": ("VALUE", "Value that stands for a missing one, such as -9999; may be repeated."),
    "ignore": ("COLUMN", "Column that is not a feature; may be repeated."),
    "name": ("NAME", "The client's name (default: the file's)."),
    "n_latent": ("N", "Latents the client accesses (default: estimated)."),
    # How a client is recovered, and how fragments are assembled.
    "method": (None, "null-cone: this package's own method; paper: the published algorithms."),
    "tau": ("T", "Tolerance of --method paper (default 0.05)."),
    "confounding": (
        None,
        "Use none only if every client accesses every latent: no hidden cause then confounds its "
        "labels, and more pairs are settled (default: allow).",
    ),
    "rank_one": (
        None,
        "What an intervention that moves a single direction means: unsure (default), or "
        "no-ancestor if every intervention changes how its target depends on its causes.",
    ),
    "interventions": (
        "KIND",
        "hard or soft, or LABEL=hard for one label; may be repeated. Use hard only if the target "
        "no longer responds to its causes (held setpoint, knock-out, randomised dose).",
    ),
    "smallest_effect": (
        "SIZE",
        '"Not ancestor" means that no effect is larger: in standard deviations under hard '
        "interventions, else as a share of what the intervention on the descendant changed.",
    ),
    "witnesses": (
        "N",
        "Clients that a verdict must rest on. Default: one, and with --keys more than a fifth of "
        "those that speak about the pair, at least two.",
    ),
    "seed": ("N", "Seed of the assembly."),
    "jobs": ("N", "Worker processes."),
    "moments.output": ("FILE", "Moments file (.npz) to write."),
    "moments.add_to": ("FILE", "Moments file whose rows these are added to."),
    "moments.cluster": (
        "ADDRESS",
        "Scheduler of a Dask cluster that reads a folder of Parquet files.",
    ),
    "fragment.output": ("FILE", "Fragment file to write."),
    "fragment.sign": ("KEY", "Sign it with this site's private key."),
    "fragment.study": ("NAME", "Study that it is signed for."),
    "fragment.round_name": ("NAME", "Round of the study that it is signed for."),
    "fragment.show": (None, "Print all that the fragment holds, for review."),
    "fragment.min_rows": ("N", "Refuse a regime with fewer rows."),
    "fragment.full_precision": (
        None,
        "Do not round numbers to what their sampling error justifies.",
    ),
    "fragments": ("FRAGMENT", "Fragment files of the clients, or folders of them."),
    "into": (
        "RESULT",
        "Add the fragments to this result folder, with its own method and seed; it is replaced, "
        "unless --out names another folder.",
    ),
    "corrected": (None, "With --into: the fragments are corrected ones of clients it has."),
    "remove": ("CLIENT", "With --into: leave this client out; may be repeated."),
    "again": (None, "Make the result of a round again, from the same fragments."),
    "sign": ("KEY", "Sign the result with this private key."),
    "knowledge": ("FILE", "study.toml, or another file with its table [knowledge]."),
    "report.output": ("FILE", "HTML file to write."),
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
    "keys": ("FILE", "List of the sites' keys; unsigned fragments are then refused."),
    "round_name": ("NAME", "Round that the fragments are signed for."),
    "verify.folder": ("DIR", "Result folder."),
    "verify.keys": ("FILE", "List of the keys of the sites and the coordinator."),
    "verify.fragment": ("FILE", "A fragment that the result should rest on."),
    "verify.recompute": (None, "Assemble the fragments again, and compare."),
    "verify.log": ("FILE", "The coordinator's log of used fragments."),
    "site": ("SITE", "The site's name."),
    "federation": ("FOLDER", "Folder of the federation, from init."),
    "keygen.site": ("SITE", "The site's name, which is also its client's."),
    "keygen.output": ("FILE", "Private key (default: SITE.key)."),
    "init.folder": ("FOLDER", "New folder for certificates and kits."),
    "init.site": ("NAME", "A site's name; repeat for each site."),
    "init.server": ("HOST", "Host name under which sites reach the coordinator."),
    "init.port": ("PORT", "Port of the coordinator."),
    "init.admin": ("ADDRESS", "E-mail address of the person who starts rounds."),
    "start.kit": ("KIT", "Kit of the coordinator or of a site."),
    "add_site.site": ("SITE", "The new site's name."),
    "renew.name": ("NAME", "A site, the coordinator or the admin."),
    "kit": ("KIT", "Kit of the admin."),
    "submit.round_name": ("NAME", "Name of the round and of its result folder."),
    "submit.again": (None, "Run a round again that has a result, and replace it."),
    "min_sites": ("N", "Fragments needed for a result."),
    "timeout": ("SECONDS", "Time that sites have to answer."),
    "deadline": ("SECONDS", "Time for the whole round (default: --timeout and 2 minutes)."),
    "patience": ("SECONDS", "Time to reach the coordinator."),
    # Simulated worlds.
    "demo.out": ("DIR", "Folder for the result."),
    "simulate.out": ("DIR", "Study folder to write; must be new."),
    "setting": (None, "A world of the paper."),
    "latent": ("P", "Latents P."),
    "clients": ("K", "Clients K."),
    "coverage": ("Q", "Chance that a client accesses a latent."),
    "graph": (
        "FAMILY",
        "Family of the random graph: er, sparse, dense, chain, tree, mid-hub, root-hub, layered, "
        "star, two-stars, bipartite or scale-free.",
    ),
    "system": (
        "NAME",
        "How latents respond to their causes: linear, tanh, saturating, relu, sine, mixed, "
        "products, squares or noise.",
    ),
    "intervention": (
        "KIND",
        "What interventions do: paper, weak, strong, hard, mild, shrink, knock-down, set, "
        "hard-keep, hard-replace, noise-only, mean-only or mean-noise.",
    ),
    "shift": ("SD", "Mean shift of targets, in standard deviations of their noise."),
    "samples": ("N", "Rows per regime; without it, exact moments."),
    "noise": (None, "Family of the noise."),
    "file_format": (None, "Format of the clients' files (default: parquet)."),
    "simulate.seed": ("N", "Seed of world and samples."),
    "what": (None, "Which of the paper's results."),
    "only": ("PART", "A part to run, such as A-laplace or p20-K15-q0.6; may be repeated."),
    "reproduce.method": ("METHOD", "A method to run; may be repeated. Default: both."),
    "quick": (None, "Fewer replicates."),
    "workers": ("N", "Worker processes; by default one per core."),
    "reproduce.out": ("DIR", "Folder for the results."),
}
# Options that are not called like their parameter.
FLAGS: dict[str, tuple[str, ...]] = {
    "as_json": ("--json",),
    "corrected": ("--replace",),
    "file_format": ("--format",),
    "output": ("-o", "--output"),
    "recompute": ("--recompute/--no-recompute",),
    "round_name": ("--round",),
}
# The smallest and the largest value of a number.
LIMITS: dict[str, tuple[float, float | None]] = {
    "trim": (0, 0.4),
    "coverage": (0, 1),
    "port": (1, 65535),
    **dict.fromkeys(("seed", "shift"), (0, None)),
    **dict.fromkeys(("size", "latent"), (2, None)),
    **dict.fromkeys(("clients", "jobs", "min_rows", "samples", "witnesses", "workers"), (1, None)),
    **dict.fromkeys(("min_sites", "timeout", "deadline", "patience"), (1, None)),
}
