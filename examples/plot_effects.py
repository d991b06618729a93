"""Draw the direct effects that hard interventions reveal, and one effect at every site."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from drawing import save

import jigsaw_crl as jc

NAMES = ("pump", "valve", "flow", "tank", "mixer")
EFFECTS = {
    ("pump", "valve"): 0.9,
    ("pump", "flow"): 0.5,
    ("valve", "flow"): 1.1,
    ("tank", "flow"): -0.8,
    ("flow", "mixer"): 0.7,
}
SITES = {
    "north": ("pump", "valve", "tank", "flow"),
    "east": ("pump", "valve", "tank", "flow"),
    "south": ("pump", "valve", "flow", "mixer"),
    "west": ("pump", "tank", "flow", "mixer"),
    "coast": ("valve", "tank", "flow", "mixer"),
}


def main() -> None:
    effects = np.zeros((5, 5))
    for (cause, effect), strength in EFFECTS.items():
        effects[NAMES.index(effect), NAMES.index(cause)] = strength
    world = jc.simulate.world_from_graph(
        effects,
        list(SITES.values()),
        (6,) * len(SITES),
        seed=0,
        names=NAMES,
        client_names=list(SITES),
        intervention=jc.simulate.Intervention("hard", shift=1.0),
    )
    result = jc.recover(world.clients(n_samples=2_000), interventions="hard")

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10.5, 4.2), layout="constrained", width_ratios=(1, 1.2)
    )
    result.plot_graph(left)
    left.set_title("direct effects, in standard deviations")
    result.plot_forest("valve", "flow", ax=right)
    right.set_title("one effect at every site")
    save(figure, "effects")


if __name__ == "__main__":
    main()
