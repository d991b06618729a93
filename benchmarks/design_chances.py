"""Are the chances that `design` states right? A reliability table.

In simulated worlds the order is recovered, chances are stated, the further data are drawn, and all
is recovered again. `--what site` adds the proposed client and, beside it, one of six random labels;
`--what kind` adds it to clients of which all but one changed noise alone, with interventions as
proposed, and all pairs count. Constants were chosen on seeds 1000 to 1007.

python benchmarks/design_chances.py --what site --first 2000 --worlds 8
python benchmarks/design_chances.py --what kind --first 2000 --worlds 8
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Literal

import numpy as np
from reporting import header, options, row

import jigsaw_crl as jc
from jigsaw_crl.assembly.design import SiteSearch
from jigsaw_crl.truth.simulate.views import View

KINDS = {
    "paper": jc.simulate.Intervention.named("paper"),
    "hard": jc.simulate.Intervention("hard"),
    "hard, shift 1": jc.simulate.Intervention("hard", shift=1.0),
}
BINS = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0)
# Stated chance, whether it was settled, and the world.
Outcome = tuple[float, bool, int]


def new_site(
    world: jc.simulate.World,
    labels: list[str],
    n: int,
    seed: int,
    kind: Literal["soft", "hard"] = "soft",
) -> jc.Fragment:
    """What a further client with these labels says."""
    nodes = np.array([world.node(label) for label in labels], dtype=np.intp)
    rng = np.random.default_rng([seed, 77])
    mixing = rng.normal(size=(int(np.ceil(1.5 * len(nodes))), len(nodes)))
    grown = replace(world, views=(*world.views, View("new", nodes, mixing)))
    return jc.recover_fragment(grown.client(world.n_clients, n_samples=n), interventions=kind)


def of_sites(kind: str, seed: int) -> Iterator[Outcome]:
    """Pairs that a further client has, with 1,000 and with 10,000 rows."""
    for n in (1_000, 10_000):
        world = jc.simulate.random_world(12, 4, 0.5, seed=seed, intervention=KINDS[kind])
        order = jc.recover(world.clients(n_samples=n)).order
        if not order.undetermined():
            continue
        rng = np.random.default_rng(seed)
        others = sorted(rng.choice(order.labels, 6, replace=False).tolist())
        for labels in (list(jc.next_client(order).labels), others):
            left = jc.assemble([*order.fragments, new_site(world, labels, n, seed)]).undetermined()
            chances = SiteSearch(order).chances(np.flatnonzero(np.isin(order.labels, labels)))
            for pair in order.undetermined():
                if set(pair) <= set(labels):
                    yield chances[order.indices(*pair)], pair not in left, seed


def of_kinds(kind: str, seed: int) -> Iterator[Outcome]:
    """As `of_sites`, where one client of five changes weights and the others noise alone."""
    noise = jc.simulate.Intervention("noise-only")
    for n in (1_000, 10_000):
        first, others, new = (
            jc.simulate.random_world(12, 5, 0.5, seed=seed, intervention=i)
            for i in (KINDS["paper"], noise, KINDS[kind])
        )
        clients = [(others if k else first).client(k, n_samples=n) for k in range(5)]
        order = jc.recover(clients).order
        proposal = jc.next_client(order)
        at = np.flatnonzero(np.isin(order.labels, proposal.labels))
        chances = SiteSearch(order).chances(at)
        hard: Literal["soft", "hard"] = "hard" if "hard" in kind else "soft"
        site = new_site(new, list(proposal.labels), n, seed, hard)
        left = jc.assemble([*order.fragments, site]).undetermined()
        for pair in order.undetermined():
            yield chances[order.indices(*pair)], pair not in left, seed


def reliability(outcomes: list[Outcome]) -> None:
    """Print the table; errors are over worlds."""
    chance, settled, world = (np.array(x) for x in zip(*outcomes, strict=True))
    header("stated", "pairs", "mean stated", "settled", "standard error over worlds")
    for low, high in pairwise(BINS):
        inside = (chance > low - (low == 0)) & (chance <= high)
        if not inside.any():
            continue
        # A ratio estimate: pairs of one world stand or fall together.
        share = settled[inside].mean()
        rest = [(settled[inside & (world == w)] - share).sum() for w in np.unique(world)]
        error = float(np.sqrt(np.sum(np.square(rest))) / inside.sum())
        row(f"{low} to {high}", int(inside.sum()), chance[inside].mean(), share, error)
    brier = float(((chance - settled) ** 2).mean())
    row("all", len(chance), chance.mean(), settled.mean(), f"Brier score {brier:.3f}")
    row("without chances", "", "", "", f"Brier score {float(settled.var()):.3f}")


def main() -> None:
    given = options(__doc__, what="site", first=2000, worlds=8).parse_args()
    run = {"site": of_sites, "kind": of_kinds}[given.what]
    outcomes = [
        outcome
        for kind in KINDS
        for seed in range(given.first, given.first + given.worlds)
        for outcome in run(kind, seed)
    ]
    reliability(outcomes)


if __name__ == "__main__":
    main()
