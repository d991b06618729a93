"""From samples: are stated probabilities true as often as they say?

Prints, for each protocol and noise, how often pairs above 0.95 are true, pairs below 0.05 false,
and decided pairs wrong; then the stated against the observed frequency in ten bins, and plots it.

    python benchmarks/assembly_calibration.py --worlds 30 --plot calibration.png
"""

from __future__ import annotations

import argparse

import numpy as np
from assembly_corruption import f1

import jigsaw_crl as jc

PROTOCOLS = ("paper", "shrink", "hard-keep", "hard-replace")
NOISES = ("gaussian", "laplace")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=30)
    parser.add_argument("--latent", type=int, default=20)
    parser.add_argument("--clients", type=int, nargs="*", default=[15, 5])
    parser.add_argument("--samples", type=int, nargs="*", default=[10_000])
    parser.add_argument("--protocols", nargs="*", default=list(PROTOCOLS))
    parser.add_argument("--noises", nargs="*", default=list(NOISES))
    parser.add_argument("--plot", default="", help="write the ten bins to this image")
    options = parser.parse_args()
    print("| protocol | noise | K | n | F1 | decided | yes true | no false | decided wrong |")
    print("|---|---|---|---|---|---|---|---|---|")
    curves = {}
    for protocol in options.protocols:
        stated, observed = [], []
        for noise in options.noises:
            for n_clients in options.clients:
                for n in options.samples:
                    row, p, t = cell(options, protocol, noise, n_clients, n)
                    stated.append(p)
                    observed.append(t)
                    print(f"| {protocol} | {noise} | {n_clients} | {n} | {row} |", flush=True)
        curves[protocol] = bins(np.concatenate(stated), np.concatenate(observed))
    print("\n| stated | " + " | ".join(curves) + " |")
    print("|---" * (1 + len(curves)) + "|")
    for b in range(10):
        cells = (f"{c[b][1]:.3f} ({int(c[b][2])})" for c in curves.values())
        print(f"| {b / 10:.1f} to {(b + 1) / 10:.1f} | " + " | ".join(cells) + " |")
    if options.plot:
        plot(curves, options.plot)


def cell(
    options: argparse.Namespace, protocol: str, noise: str, n_clients: int, n: int
) -> tuple[str, np.ndarray, np.ndarray]:
    """One row of the table, and all stated probabilities with the truth."""
    scores, stated, observed, verdicts = [], [], [], []
    for seed in range(options.worlds):
        world = jc.simulate.random_world(
            options.latent, n_clients, 0.6, seed=seed, intervention=protocol
        )
        order = jc.assemble(
            [jc.recover_fragment(world.client(k, n, noise, seed)) for k in range(n_clients)]
        )
        off = ~np.eye(len(order), dtype=bool)
        scores.append(f1(order, world))
        stated.append(order.probabilities[off])
        observed.append(world.order.restrict(order.labels).matrix[off])
        verdicts.append(order.verdicts[off])
    p, t, v = (np.concatenate(x) for x in (stated, observed, verdicts))
    yes, no = v == 1, v == 0
    wrong = (yes & ~t) | (no & t)
    row = (
        f"{np.mean(scores):.3f} | {(yes | no).mean():.3f} | {t[yes].mean():.4f} "
        f"| {(~t[no]).mean():.4f} | {wrong.sum() / max((yes | no).sum(), 1):.4f}"
    )
    return row, p, t


def bins(stated: np.ndarray, observed: np.ndarray) -> list[tuple[float, float, int]]:
    """Mean stated probability, observed frequency and number of pairs, in ten bins."""
    which = np.minimum((stated * 10).astype(int), 9)
    return [
        (stated[which == b].mean(), observed[which == b].mean(), int((which == b).sum()))
        if (which == b).any()
        else (b / 10 + 0.05, float("nan"), 0)
        for b in range(10)
    ]


def plot(curves: dict[str, list[tuple[float, float, int]]], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(4.5, 4.5))
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    for name, curve in curves.items():
        axes.plot([c[0] for c in curve], [c[1] for c in curve], marker="o", label=name)
    axes.set_xlabel("stated probability")
    axes.set_ylabel("observed frequency")
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
