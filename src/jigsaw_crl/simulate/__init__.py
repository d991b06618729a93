"""The truth side: simulated worlds, their clients, and what is true of them.

The learner never imports this package.
"""

from __future__ import annotations

from jigsaw_crl.simulate.assumptions import AssumptionReport, check_assumptions
from jigsaw_crl.simulate.build import random_world, setting, world_from_graph
from jigsaw_crl.simulate.sem import INTERVENTIONS, SEM, Change, Intervention
from jigsaw_crl.simulate.settings import SETTINGS
from jigsaw_crl.simulate.world import Truth, World

__all__ = [
    "INTERVENTIONS",
    "SEM",
    "SETTINGS",
    "AssumptionReport",
    "Change",
    "Intervention",
    "Truth",
    "World",
    "check_assumptions",
    "random_world",
    "setting",
    "world_from_graph",
]
