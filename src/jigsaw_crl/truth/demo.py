"""The embedded study of `jigsaw demo`: recovered, explained, compared with the truth, reported.

Five actuators of a light tunnel (the Causal Chambers' optics experiment): a lamp of three colours
and two polarisers, with the edges blue → green, blue → pol_2, green → red, green → pol_2 and
pol_1 → red. Each of five labs controls some of them and observes mixtures of these. The graph is
the tunnel's; the numbers are simulated from a fixed seed.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jigsaw_crl.assembly.order import GlobalOrder
from jigsaw_crl.base.terminal import working
from jigsaw_crl.pipeline import recover
from jigsaw_crl.result.folder import check_folder
from jigsaw_crl.result.result import Result
from jigsaw_crl.study import Study
from jigsaw_crl.truth.datasets import LIGHT_TUNNEL_EDGES, VARIABLES
from jigsaw_crl.truth.metrics import global_f1, scored_pairs
from jigsaw_crl.truth.simulate import World, world_from_graph

SEED = 1
ROWS = 20_000

# Weights of the tunnel's edges.
WEIGHTS = (0.8, -0.6, 0.9, 0.7, -0.8)
# No lab has both blue and red: that blue is an ancestor of red follows from several labs together.
LABS = {
    "Aarhus": ("blue", "green", "pol_1", "pol_2"),
    "Bergen": ("green", "red", "pol_1"),
    "Coimbra": ("red", "pol_1", "pol_2"),
    "Delft": ("blue", "green", "pol_2"),
    "Erfurt": ("green", "red", "pol_1", "pol_2"),
}
SENSORS = (6, 5, 6, 5, 7)
# What the report says of the data.
SIMULATED = (
    "All rows are simulated from a fixed seed: the graph of the light tunnel is that of a real "
    "experiment, and weights, noise, sensors and clients are made up."
)


def light_tunnel(seed: int = SEED) -> World:
    """The demo's world.

    Examples
    --------
    >>> from jigsaw_crl.truth.demo import light_tunnel
    >>> world = light_tunnel()
    >>> sorted(world.order.ancestors("red"))
    ['blue', 'green', 'pol_1']
    """
    A = np.zeros((len(VARIABLES), len(VARIABLES)))
    for (cause, effect), weight in zip(LIGHT_TUNNEL_EDGES, WEIGHTS, strict=True):
        A[VARIABLES.index(effect), VARIABLES.index(cause)] = weight
    return world_from_graph(
        A, list(LABS.values()), SENSORS, seed, names=VARIABLES, client_names=list(LABS)
    )


def run_demo(out: Path, *, force: bool = False) -> tuple[Result, list[dict[str, Any]]]:
    """Recover the embedded study, write the result and its report, and compare it with the truth.

    With `force`, files in the folder `out` that this package did not write are overwritten.
    """
    check_folder(out, force=force)
    world = light_tunnel()
    study = Study("light tunnel", tuple(world.clients(ROWS, seed=SEED)))
    with working("recovering"):
        result = recover(study, seed=SEED).with_proposal()
        result = replace(result, provenance={**result.provenance, "simulated": SIMULATED})
        paper = recover(study, method="paper")
    result.save(out, force=force)
    methods = {"jigsaw": result, "the paper's method": paper}
    return result, [_compare(name, world, found.order) for name, found in methods.items()]


def _compare(method: str, world: World, order: GlobalOrder) -> dict[str, Any]:
    """Ancestor pairs of one method against the truth: E1, and how many are right or wrong."""
    # A latent that no client accesses has no label in the order.
    true = set(world.order.restrict(order.labels).pairs())
    found = scored_pairs(order)
    counts = {"right": len(true & found), "wrong": len(found - true), "missed": len(true - found)}
    return {"method": method, **counts, "f1": global_f1(true, found)}
