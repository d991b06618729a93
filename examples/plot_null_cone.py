"""Draw the null cone of one intervention and the two candidate lines of its target."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GREY, RED, save

import jigsaw_crl as jc


def main() -> None:
    # valve has one ancestor, pump; the client measures both with two sensors.
    effects = np.array([[0.0, 0.0], [0.9, 0.0]])
    world = jc.simulate.world_from_graph(
        effects, [("pump", "valve")], (2,), seed=3, names=("pump", "valve"), intervention="weak"
    )
    client = world.client(0)
    before = client.control.covariance
    after = client.interventions["valve"][0].covariance
    white = np.linalg.inv(np.linalg.cholesky(before))
    D = white @ after @ white.T - np.eye(2)

    # D = λ₁ aaᵀ − λ₂ bbᵀ: the candidate lines are √λ₁ a ± √λ₂ b. The variance does not change in
    # the directions perpendicular to them.
    values, vectors = np.linalg.eigh(D)
    a, b = np.sqrt(values[1]) * vectors[:, 1], np.sqrt(-values[0]) * vectors[:, 0]
    lines = [(a + sign * b) / np.linalg.norm(a + sign * b) for sign in (1, -1)]
    unchanged = [np.array([-line[1], line[0]]) for line in lines]

    angles = np.linspace(0, np.pi, 400)
    circle = np.array([np.cos(2 * angles), np.sin(2 * angles)])
    directions = np.array([np.cos(angles), np.sin(angles)])
    change = np.einsum("in,ij,jn->n", directions, D, directions)

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), width_ratios=(1, 1.1))
    for moment, colour, name in ((np.eye(2), GREY, "control"), (np.eye(2) + D, BLUE, "valve")):
        # The radius is the standard deviation in that direction.
        spread = np.sqrt(np.einsum("in,ij,jn->n", circle, moment, circle))
        left.plot(*(spread * circle), color=colour, label=name)
    for name, style, pair in (("no change", ":", unchanged), ("candidate lines", "-", lines)):
        for n, line in enumerate(pair):
            ends = np.outer(line, [-2.4, 2.4])
            left.plot(*ends, style, color=RED, linewidth=1.3, label=name if n == 0 else None)
    left.set(
        aspect="equal", title="standard deviation (whitened)", xlim=(-2.6, 2.6), ylim=(-2.6, 2.6)
    )
    left.set(xticks=[], yticks=[])
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=2, frameon=False)

    right.axhline(0, color=GREY, linewidth=0.8)
    right.plot(np.degrees(angles), change, color=BLUE)
    for line in unchanged:
        degrees = np.degrees(np.arctan2(line[1], line[0])) % 180
        right.axvline(degrees, color=RED, linestyle=":")
    right.set(
        xlabel="direction (degrees)", title="change of variance", xticks=[0, 45, 90, 135, 180]
    )
    save(figure, "null-cone")


if __name__ == "__main__":
    main()
