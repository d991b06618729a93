"""The null cone: one intervention moves the covariance in a plane, along two lines."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GREY, RED, save

import jigsaw_crl as jc


def main() -> None:
    # valve has one ancestor, pump; the client sees both through two sensors.
    effects = np.array([[0.0, 0.0], [0.9, 0.0]])
    world = jc.simulate.world_from_graph(
        effects, [("pump", "valve")], (2,), seed=3, names=("pump", "valve")
    )
    client = world.client(0)
    before = client.control.covariance
    after = client.interventions["valve"][0].covariance
    white = np.linalg.inv(np.linalg.cholesky(before))
    D = white @ after @ white.T - np.eye(2)

    angles = np.linspace(0, 2 * np.pi, 400)
    circle = np.array([np.cos(angles), np.sin(angles)])
    # How much the variance changes along each direction; zero on the null cone.
    change = np.einsum("in,ij,jn->n", circle, D, circle)

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
    for moment, colour, name in ((np.eye(2), GREY, "control"), (np.eye(2) + D, BLUE, "valve")):
        ellipse = np.linalg.cholesky(moment) @ circle
        left.plot(*ellipse, color=colour, label=name)
    values, vectors = np.linalg.eigh(D)
    a, b = vectors[:, 1], vectors[:, 0]
    for sign in (1, -1):
        line = np.sqrt(values[1]) * a + sign * np.sqrt(-values[0]) * b
        line *= 2.6 / np.linalg.norm(line)
        left.plot([-line[0], line[0]], [-line[1], line[1]], color=RED, linewidth=1.2)
    left.set(aspect="equal", title="whitened spread, before and after", xticks=[], yticks=[])
    left.legend(loc="upper left", frameon=False)

    right.axhline(0, color=GREY, linewidth=0.8)
    right.plot(np.degrees(angles), change, color=BLUE)
    right.set(
        xlabel="direction (degrees)",
        title="change of variance along each direction:\none positive and one negative eigenvalue",
        xticks=[0, 90, 180, 270, 360],
    )
    save(figure, "null-cone")


if __name__ == "__main__":
    main()
