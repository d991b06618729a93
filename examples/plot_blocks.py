"""Draw how a hidden common cause joins its effects into one block."""

from __future__ import annotations

import matplotlib.pyplot as plt
from drawing import RED, arrows, blank, box, hidden_causes, latents, save

PLACES = {"a": (0.4, 3.0), "h": (2.0, 3.0), "b": (1.0, 1.6), "c": (3.0, 1.6), "d": (2.0, 0.3)}


def main() -> None:
    figure, (system, view, both) = plt.subplots(1, 3, figsize=(10.5, 3.7))
    x, y = (-0.3, 3.8), (-0.3, 3.8)

    latents(system, PLACES, hidden=["h"])
    arrows(system, PLACES, [("a", "b"), ("h", "b"), ("h", "c"), ("b", "d")])
    blank(system, "h causes b and c, but this\nclient does not access h", x, y)

    seen = {name: place for name, place in PLACES.items() if name != "h"}
    latents(view, seen)
    arrows(view, seen, [("a", "b"), ("b", "d")])
    hidden_causes(view, seen, [("b", "c")])
    box(view, (0.5, 1.15), (3.5, 2.05), "one block {b, c}", RED)
    blank(view, "what this client identifies:\nb and c form one block", x, y)

    latents(both, PLACES)
    arrows(both, PLACES, [("a", "b"), ("h", "b"), ("h", "c"), ("b", "d")])
    blank(both, "a client that accesses h\nfinds four arrows and no block", x, y)
    save(figure, "blocks")


if __name__ == "__main__":
    main()
