"""Small data sets with a known truth, which come with the package.

Examples
--------
>>> import jigsaw_crl as jc
>>> list(jc.datasets.light_tunnel()["control"].columns)
['red', 'green', 'blue', 'pol_1', 'pol_2']
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.client.client import Client
from jigsaw_crl.study.folder import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LIGHT_TUNNEL_EDGES", "light_tunnel", "light_tunnel_order", "light_tunnel_study"]

VARIABLES = ("red", "green", "blue", "pol_1", "pol_2")
LIGHT_TUNNEL_EDGES = (
    ("blue", "green"),
    ("blue", "pol_2"),
    ("green", "red"),
    ("green", "pol_2"),
    ("pol_1", "red"),
)
"""The true direct effects of the light tunnel's actuator inputs."""
# What each of the four sites of `light_tunnel_study` sees, and its sensors beyond as many.
SITES: Mapping[str, tuple[str, ...]] = {
    "lab-1": VARIABLES,
    "lab-2": ("red", "green", "blue", "pol_1"),
    "lab-3": ("green", "blue", "pol_2"),
    "lab-4": ("red", "green", "pol_1", "pol_2"),
}
MORE_SENSORS = 3


def light_tunnel() -> dict[str, pd.DataFrame]:
    """Actuator inputs of the Causal Chambers light tunnel, one table per regime.

    The five inputs of a light tunnel (colours of the lamp and two polariser angles) were drawn from
    a linear Gaussian system with known edges: CRL benchmark "buchholz_1" of the Causal Chambers
    (J. Gamella and others, CC BY 4.0). These rows were regenerated from its published parameters;
    they are no measurements. Regime "control" is observational. In every other regime one
    variable is drawn at random around another mean: a hard intervention.

    Returns
    -------
    dict of str to DataFrame
        4,000 rows and the columns red, green, blue, pol_1 and pol_2 in each of six regimes.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> tables = jc.datasets.light_tunnel()
    >>> sorted(tables), tables["control"].shape
    (['blue', 'control', 'green', 'pol_1', 'pol_2', 'red'], (4000, 5))
    """
    import pandas as pd  # here for start-up time

    with (
        files("jigsaw_crl.truth").joinpath("data/light-tunnel.npz").open("rb") as file,
        np.load(file) as stored,
    ):
        return {
            regime: pd.DataFrame(stored[regime] / 100.0, columns=list(VARIABLES))
            for regime in ("control", *VARIABLES)
        }


def light_tunnel_study(seed: int = 0) -> Study:
    """Four sites that see part of the light tunnel, each through its own random mixing.

    Each has rows of its own, 1,000 per regime, and three sensors more than variables. The
    interventions are hard.

    Parameters
    ----------
    seed : int
        Of the mixing matrices.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> study = jc.datasets.light_tunnel_study()
    >>> order = jc.recover(study).order
    >>> order.pairs() <= jc.datasets.light_tunnel_order().pairs()
    True
    """
    tables, rng, clients = light_tunnel(), np.random.default_rng(seed), []
    for k, (name, seen) in enumerate(SITES.items()):
        mixing = rng.normal(size=(len(seen), len(seen) + MORE_SENSORS))
        rows = {
            regime: table[list(seen)].to_numpy()[k :: len(SITES)] @ mixing
            for regime, table in tables.items()
        }
        control = rows.pop("control")
        regimes = {label: rows[label] for label in seen}
        clients.append(
            Client.from_samples(name, observational=control, interventions=regimes, hard=True)
        )
    return Study("light tunnel", tuple(clients))


def light_tunnel_order() -> PartialOrder[str]:
    """The true order of the light tunnel's actuator inputs."""
    return PartialOrder.from_pairs(VARIABLES, LIGHT_TUNNEL_EDGES)
