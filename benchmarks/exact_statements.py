"""Are statements from exact moments true, and does assembly stay exact? Wide, confounded worlds.

    python benchmarks/exact_statements.py --worlds 5

One line per size and coverage: what the clients state (pairs, and "one of") and how much of it is
false, then the verdicts of the assembled order, and how many studies left exact mode.
"""

from __future__ import annotations

from collections import Counter

from reporting import header, options, row

import jigsaw_crl as jc
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.fragment.fragment import NO, YES, Fragment

# Latents, clients and coverage: 80 clients in each world family.
CELLS = (
    (60, 20, 0.3),
    (100, 20, 0.3),
    (150, 20, 0.3),
    (200, 10, 0.2),
    (300, 10, 0.15),
    (300, 5, 0.3),
)
COUNTED = ("no", "yes", "one of")


def stated(fragment: Fragment, order: PartialOrder[str]) -> Counter[str]:
    """Number of statements of each kind, and of false ones."""
    counts: Counter[str] = Counter()
    said = fragment.statements
    if said is None:
        return counts
    labels = fragment.labels
    for i, a in enumerate(labels):
        for j, d in enumerate(labels):
            code = said.ancestor[i, j]
            if i != j and code in (YES, NO):
                name = "yes" if code == YES else "no"
                counts[name] += 1
                counts[f"false {name}"] += order.is_ancestor(a, d) != (code == YES)
    for candidates, d in said.one_of:
        counts["one of"] += 1
        counts["false one of"] += not any(order.is_ancestor(c, d) for c in candidates)
    return counts


def main() -> None:
    parser = options(__doc__, worlds=5, seed=0)
    parser.add_argument("--graph", default="er")
    given = parser.parse_args()
    names = [f"false / {name}" for name in COUNTED]
    header("p", "K", "q", *names, "false / verdicts", "decided", "not exact")
    for p, n_clients, q in CELLS:
        total: Counter[str] = Counter()
        for seed in range(given.seed, given.seed + given.worlds):
            world = jc.simulate.random_world(p, n_clients, q, seed=seed, graph=given.graph)
            fragments = [jc.recover_fragment(c) for c in world.clients()]
            for fragment in fragments:
                total += stated(fragment, world.order)
            order = jc.assemble(fragments)
            found = jc.metrics.verdict_counts(world.order, order)
            total["verdicts"] += found.yes + found.no
            total["wrong"] += found.wrong_yes + found.wrong_no
            total["pairs"] += found.pairs
            total["not exact"] += order.mode != "exact"
        row(
            p,
            n_clients,
            q,
            *(f"{total['false ' + name]} / {total[name]}" for name in COUNTED),
            f"{total['wrong']} / {total['verdicts']}",
            total["verdicts"] / total["pairs"],
            total["not exact"],
        )


if __name__ == "__main__":
    main()
