"""Simulated worlds, their clients, and the truth about each.

The learner never imports this package.

Examples
--------
>>> import jigsaw_crl as jc
>>> world = jc.simulate.random_world(8, 4, 0.6, seed=0)
>>> world.n_latent, world.n_clients
(8, 4)
>>> client = world.client(0, n_samples=1000, noise="laplace")
>>> set(client.labels) == set(world.truth(0).labels)
True
"""

from __future__ import annotations

from jigsaw_crl.truth.simulate.build import random_world, setting, world_from_graph
from jigsaw_crl.truth.simulate.departures import DEPARTURES
from jigsaw_crl.truth.simulate.graphs import FAMILIES, SETTINGS
from jigsaw_crl.truth.simulate.interventions import INTERVENTIONS, Intervention
from jigsaw_crl.truth.simulate.rows import Batches, Rows
from jigsaw_crl.truth.simulate.sem import SEM, Change
from jigsaw_crl.truth.simulate.systems import SYSTEMS
from jigsaw_crl.truth.simulate.views import TrueEffects, Truth
from jigsaw_crl.truth.simulate.world import World

__all__ = [
    "DEPARTURES",
    "FAMILIES",
    "INTERVENTIONS",
    "SEM",
    "SETTINGS",
    "SYSTEMS",
    "Batches",
    "Change",
    "Intervention",
    "Rows",
    "TrueEffects",
    "Truth",
    "World",
    "random_world",
    "setting",
    "world_from_graph",
]
