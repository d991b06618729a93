"""Draw E1 of both methods on the paper's setting B against the number of rows per regime."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, RED, save

import jigsaw_crl as jc

ROWS = (300, 1_000, 10_000, 100_000)
WORLDS = range(3)


def score(method: str, n: int) -> float:
    """Mean E1 over the worlds."""
    found = []
    for seed in WORLDS:
        world = jc.simulate.setting("B", seed)
        clients = world.clients(n_samples=n, seed=seed)
        order = jc.recover(clients, method="paper" if method == "paper" else "null-cone").order
        found.append(jc.metrics.global_f1(world.order, order))
    return float(np.mean(found))


def main() -> None:
    figure, ax = plt.subplots(figsize=(6, 3.6))
    for method, colour in (("null-cone", BLUE), ("paper", RED)):
        scores = [score(method, n) for n in ROWS]
        ax.plot(ROWS, scores, "o-", color=colour, label=method)
        print(method, *(f"{n}: {s:.2f}" for n, s in zip(ROWS, scores, strict=True)))
    ax.set(
        xscale="log", xlabel="rows per regime", ylabel="E1 (F1 of ancestor pairs)", ylim=(0, 1.05)
    )
    ax.set_title("Right ancestor pairs against rows, both methods", fontsize=10)
    ax.legend(frameon=False, loc="center right")
    save(figure, "rows")


if __name__ == "__main__":
    main()
