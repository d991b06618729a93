"""Draw the hidden system, what one client measures, and the fragment that it shares."""

from __future__ import annotations

import matplotlib.pyplot as plt
from drawing import BLUE, GREY, arrows, blank, box, latents, save

PLACES = {"pump": (1.5, 3.0), "valve": (0.5, 1.7), "tank": (2.5, 1.7), "flow": (1.5, 0.4)}
EDGES = [("pump", "valve"), ("valve", "flow"), ("tank", "flow")]


def main() -> None:
    figure, (system, sensors, fragment) = plt.subplots(1, 3, figsize=(10.5, 3.6))
    x, y = (-0.4, 3.4), (-0.4, 3.8)

    latents(system, PLACES, hidden=["flow"])
    arrows(system, PLACES, EDGES[:1])
    arrows(system, PLACES, EDGES[1:], GREY)
    blank(system, "the system: this client\ndoes not access flow", x, y)

    seen = {"pump": (0.3, 3.0), "valve": (0.3, 1.7), "tank": (0.3, 0.4)}
    latents(sensors, seen)
    for i in range(5):
        height = 3.2 - 0.75 * i
        sensors.text(2.9, height, f"x{i + 1}", ha="center", va="center")
        for place in seen.values():
            sensors.plot([place[0] + 0.35, 2.65], [place[1], height], color=GREY, linewidth=0.6)
    blank(sensors, "what it measures:\nfive mixed sensors", x, y)

    own = {name: PLACES[name] for name in ("pump", "valve", "tank")}
    latents(fragment, own)
    arrows(fragment, own, EDGES[:1])
    box(fragment, (-0.1, 1.1), (3.1, 3.6), colour=BLUE)
    fragment.text(1.5, 0.55, "no rows, no moments, no mixing", ha="center", color=GREY)
    blank(fragment, "what it shares:\nits fragment", x, y)
    save(figure, "fragment")


if __name__ == "__main__":
    main()
