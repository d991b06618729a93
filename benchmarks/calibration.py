"""Are the numbers that one client states right? Stated against observed frequency, and null scores.

    python benchmarks/calibration.py [--worlds 20] [--out benchmarks/out]

Writes calibration.png and prints a Markdown table: for each noise and sample size the spread of the
standard scores of unrelated pairs, how many statements were made above 0.95, and how many of them
were wrong.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import jigsaw_crl as jc
from jigsaw_crl.nullcone import Recovery

FRESH = 830_000
BINS = np.linspace(0.0, 1.0, 11)


def world(p: int, n: int, noise: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probability stated, whether it is so, and null scores, over the clients of one world."""
    stated, true, scores = [], [], []
    with threadpool_limits(1):
        truth = jc.simulate.random_world(p, 15, 0.6, FRESH + seed)
        for k in range(15):
            recovery = Recovery.of(truth.client(k, n, noise, seed=seed))
            fragment, own = recovery.fragment(basis=False), truth.truth(k)
            ancestor = own.order.restrict(fragment.labels).matrix
            said = ~np.isnan(fragment.evidence)
            stated.append(1.0 / (1.0 + np.exp(-fragment.evidence[said])))
            true.append(ancestor[said])
            home = {x: i for i, group in enumerate(own.districts) for x in group}
            same = np.array([[home[a] == home[d] for d in fragment.labels] for a in fragment.labels])
            two = recovery.reading.lines.rank == 2
            null = ~same & ~ancestor & ~ancestor.T & two[:, None] & two[None, :]
            z = recovery.reading.z
            scores.append(z[np.triu(null, 1) & ~np.isnan(z)])
    return np.concatenate(stated), np.concatenate(true), np.concatenate(scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--p", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/out"))
    args = parser.parse_args()
    sizes, noises = (10**3, 10**4, 10**5, 10**6), ("gaussian", "laplace")
    figure, axes = plt.subplots(2, 4, figsize=(14, 7), layout="constrained")
    print("| noise, n | null scores | their s.d. | stated > 0.95 | wrong | stated < 0.05 | wrong |")
    print("|---|---|---|---|---|---|---|")
    for row, noise in enumerate(noises):
        for column, n in enumerate(sizes):
            parts = Parallel(n_jobs=args.jobs)(
                delayed(world)(args.p, n, noise, s) for s in range(args.worlds)
            )
            stated, true, scores = (np.concatenate(x) for x in zip(*parts, strict=True))
            yes, no = stated > 0.95, stated < 0.05
            print(
                f"| {noise}, {n:.0e} | {len(scores)} | {scores.std():.3f} | {yes.sum()} | "
                f"{1 - true[yes].mean():.4f} | {no.sum()} | {true[no].mean():.4f} |",
                flush=True,
            )
            ax = axes[row, column]
            which = np.clip(np.digitize(stated, BINS) - 1, 0, 9)
            count = np.bincount(which, minlength=10)
            seen = np.bincount(which, weights=true, minlength=10) / np.maximum(count, 1)
            mean = np.bincount(which, weights=stated, minlength=10) / np.maximum(count, 1)
            used = count > 20
            error = np.sqrt(seen * (1 - seen) / np.maximum(count, 1))
            ax.plot([0, 1], [0, 1], color="0.7", lw=1)
            ax.errorbar(mean[used], seen[used], error[used], fmt="o-", color="#0072B2", capsize=2)
            ax.set(title=f"{noise}, n = {n:,}", xlabel="stated probability", ylabel="observed share")
            inset = ax.inset_axes((0.08, 0.62, 0.34, 0.33))
            inset.hist(scores, bins=np.linspace(-4, 4, 33), density=True, color="#D55E00", alpha=0.6)
            grid = np.linspace(-4, 4, 200)
            inset.plot(grid, np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi), color="black", lw=1)
            inset.set(yticks=[], xticks=[-3, 0, 3], title="null scores")
            inset.title.set_fontsize(7)
            inset.tick_params(labelsize=6)
    args.out.mkdir(parents=True, exist_ok=True)
    figure.savefig(args.out / "calibration.png", dpi=130)
    print(f"\n{args.out / 'calibration.png'}")


if __name__ == "__main__":
    main()
