"""The embedded study of `jigsaw demo`: recovered, explained, compared with the truth, reported.

Five actuators of a light tunnel (the Causal Chambers' optics experiment): a lamp of three colours
and two polarisers, with the edges blue → green, blue → pol_2, green → red, green → pol_2 and
pol_1 → red. Each of five labs controls some of them and observes mixtures of these. The graph is
the tunnel's; the numbers are simulated from a fixed seed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import networkx as nx
import numpy as np
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from jigsaw_crl.assembly.order import GlobalOrder
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.terminal import print_json, working
from jigsaw_crl.base.text import few
from jigsaw_crl.pipeline import recover
from jigsaw_crl.report.summary import relation_no_client_states
from jigsaw_crl.result.folder import check_folder
from jigsaw_crl.result.result import Result
from jigsaw_crl.study import Study
from jigsaw_crl.truth.metrics import global_f1, scored_pairs
from jigsaw_crl.truth.simulate import World, random_world, world_from_graph

__all__ = ["Comparison", "light_tunnel", "run_demo"]

SEED = 1
ROWS = 20_000
COVERAGE = 0.6

ACTUATORS = ("red", "green", "blue", "pol_1", "pol_2")
# Cause, effect, weight.
EDGES = (
    ("blue", "green", 0.8),
    ("blue", "pol_2", -0.6),
    ("green", "red", 0.9),
    ("green", "pol_2", 0.7),
    ("pol_1", "red", -0.8),
)
# No lab has both blue and red: that blue is an ancestor of red follows from several labs together.
LABS = {
    "Aarhus": ("blue", "green", "pol_1", "pol_2"),
    "Bergen": ("green", "red", "pol_1"),
    "Coimbra": ("red", "pol_1", "pol_2"),
    "Delft": ("blue", "green", "pol_2"),
    "Erfurt": ("green", "red", "pol_1", "pol_2"),
}
SENSORS = (6, 5, 6, 5, 7)


@dataclass(frozen=True)
class Comparison:
    """Ancestor pairs of one method against the truth.

    Parameters
    ----------
    method : str
    f1 : float
    right, wrong, missed : int
        Numbers of pairs.
    """

    method: str
    f1: float
    right: int
    wrong: int
    missed: int


def light_tunnel(seed: int = SEED) -> World:
    """The demo's world.

    Examples
    --------
    >>> from jigsaw_crl.truth.demo import light_tunnel
    >>> world = light_tunnel()
    >>> sorted(world.order.ancestors("red"))
    ['blue', 'green', 'pol_1']
    """
    A = np.zeros((len(ACTUATORS), len(ACTUATORS)))
    for cause, effect, weight in EDGES:
        A[ACTUATORS.index(effect), ACTUATORS.index(cause)] = weight
    return world_from_graph(
        A, list(LABS.values()), SENSORS, seed, names=ACTUATORS, client_names=list(LABS)
    )


def run_demo(
    out: str | Path = "jigsaw-demo",
    latent: int | None = None,
    clients: int | None = None,
    as_json: bool = False,
    *,
    force: bool = False,
    console: Console | None = None,
) -> Result:
    """Recover, explain, compare and report an embedded study.

    Parameters
    ----------
    out : path
        Folder for the result and its report.
    latent, clients : int, optional
        A random world of this size in place of the light tunnel.
    force : bool
        Overwrite files in `out` that this package did not write.
    as_json : bool
        Print one JSON object instead of text.
    console : rich.console.Console, optional

    Returns
    -------
    Result
    """
    check_folder(Path(out), force=force)
    start = time.perf_counter()
    world, name = _world(latent, clients)
    study = Study(name, tuple(world.clients(ROWS, seed=SEED)))
    with working("recovering"):
        result = recover(study, seed=SEED)
        paper = recover(study, method="paper")
    rows = [
        _compare("jigsaw", world, result.order),
        _compare("the paper's method", world, paper.order),
    ]
    across = relation_no_client_states(result.order)
    result = result.with_proposal()
    folder = result.save(out, force=force)
    spent = time.perf_counter() - start
    if as_json:
        _print_json(result, rows, across, folder, spent)
    else:
        _tell(result, world, rows, across, folder, spent, console)
    return result


def _world(latent: int | None, clients: int | None) -> tuple[World, str]:
    if latent is None and clients is None:
        return light_tunnel(), "light tunnel"
    if latent is None or clients is None:
        raise InputError(
            "only one of --latent and --clients is given", "Pass both, or neither for the tunnel."
        )
    return random_world(latent, clients, COVERAGE, SEED), f"{latent} latents, {clients} clients"


def _compare(method: str, world: World, order: GlobalOrder) -> Comparison:
    # A latent that no client accesses has no label in the order.
    true = set(world.order.restrict(order.labels).pairs())
    found = scored_pairs(order)
    return Comparison(
        method, global_f1(true, found), len(true & found), len(found - true), len(true - found)
    )


def _tell(
    result: Result,
    world: World,
    rows: list[Comparison],
    across: tuple[str, str] | None,
    folder: Path,
    spent: float,
    console: Console | None,
) -> None:
    """Print the result for people."""
    console = console or Console(highlight=False)
    order = result.order
    name = result.provenance["study"]
    console.print(Rule(Text(f"jigsaw demo: {name}", style="bold"), align="left"))
    console.print(
        f"{world.n_clients} clients, {ROWS:,} rows in every regime. Each client sees only some of "
        f"the {len(order.labels)}\nlatents, mixed by its own sensors; none shares its data.\n"
    )
    _print_result(result, console)
    if across is not None:
        seen = order.panel.seen_by(*order.indices(*across))
        who = "No client has both labels" if not seen else "No client could tell this alone"
        console.print(Rule(Text("What no single client could establish"), align="left"))
        console.print(Text(f"{who}; together they know:", style="dim"))
        console.print(Text(str(order.explain(*across))))
        console.print()
    console.print(Rule(Text("Compared with the truth, which the simulator knows"), align="left"))
    numbers = [(r.method, r.right, r.wrong, r.missed, f"{r.f1:.2f}") for r in rows]
    columns = ("method", "ancestor pairs found", "wrong", "missed", "F1")
    console.print(_table(columns, numbers))
    console.print()
    # Not wrapped at the width of the terminal, so that the paths can be copied.
    console.print(f"Result folder: {folder}", soft_wrap=True)
    console.print(f"Report:        {(folder / 'report.html').resolve()}", soft_wrap=True)
    console.print(f"Done in {spent:.1f} s. Open the report in a browser.", style="dim")


def _print_result(result: Result, console: Console) -> None:
    """Print the clients, each label with those directly below it, ancestors first, and findings."""
    order, graph = result.order, result.order.hasse()
    rows = []
    for fragment in order.fragments:
        blocks = (sorted(block) for block in fragment.block_order.topological())
        shown = "  ".join(f"{{{', '.join(b)}}}" if len(b) > 1 else b[0] for b in blocks)
        weight = f"{order.client_weights[fragment.client]:.2f}"
        rows.append((fragment.client, ", ".join(sorted(fragment.labels)), shown, weight))
    console.print(_table(("client", "labels it accesses", "blocks", "trust"), rows))
    console.print()
    for label in nx.lexicographical_topological_sort(graph):
        below = (f"{d} {graph.edges[label, d]['probability']:.2f}" for d in sorted(graph[label]))
        arrow = " → " if graph[label] else ""
        console.print(Text(f"  {label}", style="bold").append(arrow + ", ".join(below), "cyan"))
    opened = [f"{a} → {d}?" for a, d in sorted(order.undetermined())]
    if opened:
        console.print(Text(f"  undetermined: {few(opened)}", style="yellow"))
    for note in order.notes:
        console.print(Text(f"  note: {note}", style="yellow"))
    for finding in result.diagnostics:
        console.print(Text(str(finding), style="cyan" if finding.severity == "info" else "yellow"))


def _table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> Table:
    """A table without lines; cells are text, not markup."""
    table = Table(*columns, header_style="bold", box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    return table


def _print_json(
    result: Result,
    rows: list[Comparison],
    across: tuple[str, str] | None,
    folder: Path,
    spent: float,
) -> None:

    order = result.order
    print_json(
        {
            "study": result.provenance["study"],
            "hasse": [list(edge) for edge in sorted(order.hasse().edges)],
            "undetermined": sorted(list(pair) for pair in order.undetermined()),
            "across": None if across is None else list(across),
            "certificate": None if across is None else str(order.explain(*across)),
            "comparison": [asdict(row) for row in rows],
            "out": str(folder),
            "report": str(folder / "report.html"),
            "seconds": round(spent, 2),
        }
    )
