"""Draw two fragments, recovered from exact moments, and the order that they entail."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from drawing import RED, arrows, blank, box, latents, save

import jigsaw_crl as jc

NAMES = ("pump", "valve", "flow", "tank")
PLACES = {"pump": (0.6, 3.0), "valve": (0.6, 1.7), "tank": (2.4, 1.7), "flow": (1.5, 0.4)}
VIEWS = {"north": ("pump", "valve", "tank"), "south": ("valve", "flow", "tank")}


def main() -> None:
    effects = np.zeros((4, 4))
    effects[1, 0], effects[2, 1], effects[2, 3] = 0.9, -1.1, 0.8
    world = jc.simulate.world_from_graph(
        effects, list(VIEWS.values()), (5, 4), seed=0, names=NAMES, client_names=list(VIEWS)
    )
    result = jc.recover(world.clients())

    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.6))
    x, y = (-0.4, 3.4), (-0.4, 3.8)
    for ax, (name, labels) in zip(axes, VIEWS.items(), strict=False):
        fragment = result.fragments[name]
        own = {label: PLACES[label] for label in labels}
        latents(ax, own)
        relations = [
            (a, d)
            for a in labels
            for d in labels
            if a != d
            and fragment.statements is not None
            and fragment.statements.ancestor[fragment.index(a), fragment.index(d)] == 1
        ]
        arrows(ax, own, relations)
        box(
            ax,
            (-0.05, min(p[1] for p in own.values()) - 0.45),
            (3.05, 3.5 if name == "north" else 2.2),
        )
        blank(ax, f"{name}'s fragment", x, y)
    latents(axes[2], PLACES)
    arrows(axes[2], PLACES, sorted(result.order.hasse().edges))
    implied = result.order.pairs() - set(result.order.hasse().edges)
    for a, d in sorted(implied):
        axes[2].annotate(
            "", PLACES[d], PLACES[a],
            arrowprops={
                "arrowstyle": "-|>", "color": RED, "linestyle": "--", "shrinkA": 19, "shrinkB": 19,
                "connectionstyle": "arc3,rad=-0.45",
            },
        )  # fmt: skip
    blank(axes[2], "together: pump is an ancestor\nof flow (red), which neither observes", x, y)
    save(figure, "join")


if __name__ == "__main__":
    main()
