"""Liars that have read the code: how many false verdicts they win, and on how many witnesses.

    python benchmarks/adaptive.py --worlds 3

Each liar tells the truth but for pairs that it shares with the other liars. They know what the
honest sites say, sort the pairs by how little that is, claim the opposite of the truth at the
largest size, and keep the number of pairs that wins most false verdicts; then they try, pair by
pair, to leave one out or take one more, and then each of the other fields of a fragment (`FIELDS`).
Every trial is an assembly of the study, `--tries` of them and one for each field.
A false verdict is *above its number* if it rests on more sites than lie; of pairs that were lied
about, and of others, where honest evidence is wrong. Without liars, the table has E1 and the share
of pairs decided with and without the policy of federations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from reporting import header, mean_and_error, options, row, share

import jigsaw_crl as jc
from jigsaw_crl.assembly.verdict import NO, OPEN, YES
from jigsaw_crl.fragment.fragment import Fragment

# First seed of each family. No test or other benchmark uses seeds in these ranges.
SEEDS = {"choose": 8_300_000, "judge": 8_400_000}
LOUD = 1000.0
Field = Callable[[Fragment], Fragment]


def main() -> None:
    parser = options(__doc__, worlds=3, seeds="judge")
    parser.add_argument("--kind", nargs="*", default=["paper", "hard"])
    parser.add_argument("--sites", nargs="*", type=int, default=[10, 15])
    parser.add_argument("--liars", nargs="*", type=int, default=[1, 2, 3])
    parser.add_argument("--tries", type=int, default=10)
    given = parser.parse_args()
    seeds = [SEEDS[given.seeds] + number for number in range(given.worlds)]
    for kind in given.kind:
        for sites in given.sites:
            studies = [study(kind, sites, seed) for seed in seeds]
            honest(kind, sites, studies)
            above = ("above their number, lied about", "others above", "false of honest sites")
            header("liars", "policy", "false", *above)
            for liars in given.liars:
                for policy in (None, "fifth", liars + 1):
                    found = [attacked(*one, liars, policy, given.tries) for one in studies]
                    row(liars, policy or "none", *np.sum(found, axis=0).tolist())


def study(kind: str, sites: int, seed: int) -> tuple[jc.simulate.World, list[Fragment]]:
    """A world of 15 labels, and the fragments of its sites."""
    protocol = jc.simulate.Intervention(kind, shift=1.0) if kind == "hard" else kind
    world = jc.simulate.random_world(15, sites, 0.6, seed, intervention=protocol)
    clients = world.clients(n_samples=5_000, seed=seed)
    if kind == "hard":
        clients = [client.with_interventions("hard") for client in clients]
    return world, [jc.recover_fragment(client) for client in clients]


def honest(kind: str, sites: int, studies: Sequence[Any]) -> None:
    header(f"{kind}, {sites} sites", "E1", "decided", "wrong")
    for policy in (None, "fifth"):
        orders = [(world, jc.assemble(f, witnesses=policy)) for world, f in studies]
        decided = sum(int((o.verdicts != OPEN).sum()) - len(o.labels) for _, o in orders)
        pairs = sum(len(o.labels) * (len(o.labels) - 1) for _, o in orders)
        row(
            policy or "none",
            mean_and_error([float(jc.metrics.global_f1(w.order, o)) for w, o in orders]),
            share(decided, pairs),
            sum(int(false(w, o).sum()) for w, o in orders),
        )


def false(world: jc.simulate.World, order: jc.GlobalOrder) -> np.ndarray:
    """Verdicts that are not so, shape (p, p)."""
    true = np.zeros(order.verdicts.shape, dtype=bool)
    for pair in world.order.pairs():
        true[order.indices(*pair)] = True
    return np.asarray((order.verdicts == YES) & ~true | (order.verdicts == NO) & true)


def attacked(
    world: jc.simulate.World, fragments: list[Fragment], liars: int, policy: Any, tries: int
) -> tuple[int, int, int, int]:
    """False verdicts of the best attack found; of these, those that rest on more than the liars."""
    others = jc.assemble(fragments[liars:], witnesses=policy)
    shared = sorted(set.intersection(*(set(f.labels) for f in fragments[:liars])))
    pairs = [(a, d) for a in shared for d in shared if a != d]
    pairs.sort(key=lambda pair: thin(others, pair))
    true = frozenset(world.order.pairs())

    def told(targets: Sequence[tuple[str, str]], fields: Sequence[Field] = ()) -> jc.GlobalOrder:
        sent = [lying(f, targets, true) for f in fragments[:liars]]
        for change in fields:
            sent = [change(f) for f in sent]
        return jc.assemble([*sent, *fragments[liars:]], witnesses=policy)

    best, chosen = told([]), []
    for count in np.unique(np.geomspace(1, max(len(pairs), 1), tries // 2).astype(int)).tolist():
        order = told(pairs[:count])
        if false(world, order).sum() > false(world, best).sum():
            best, chosen = order, pairs[:count]
    for pair in pairs[: tries - tries // 2]:
        changed = [x for x in chosen if x != pair] if pair in chosen else [*chosen, pair]
        order = told(changed)
        if false(world, order).sum() > false(world, best).sum():
            best, chosen = order, changed
    fields: list[Field] = []
    for change in FIELDS:
        order = told(chosen, [*fields, change])
        if false(world, order).sum() > false(world, best).sum():
            best, fields = order, [*fields, change]
    wrong, few = false(world, best), best.table.witnesses
    # Groups of up to a fifth are tried: 0 says that it rests on more, or on what was asked for.
    more = max(-(-len(fragments) // 5) + 1, policy if isinstance(policy, int) else 0)
    above = wrong & (np.where(few == 0, more, few) > liars)
    lied = np.zeros_like(wrong)
    for pair in chosen:
        lied[best.indices(*pair)] = True
    counts = (wrong, above & lied, above & ~lied, false(world, others))
    a, b, c, d = (int(one.sum()) for one in counts)
    return a, b, c, d


def thin(order: jc.GlobalOrder, pair: tuple[str, str]) -> float:
    """How much honest sites say about a pair."""
    known = set(pair) <= set(order.labels)
    return float(abs(order.table.evidence[order.indices(*pair)])) if known else 0.0


def lying(
    fragment: Fragment, targets: Sequence[tuple[str, str]], true: frozenset[tuple[str, str]]
) -> Fragment:
    """The fragment with the opposite of the truth about some pairs."""
    assert fragment.bayes is not None
    ancestor = fragment.bayes.ancestor.copy()
    for a, d in targets:
        place = fragment.labels.index(a), fragment.labels.index(d)
        ancestor[(slice(None), *place)] = -LOUD if (a, d) in true else LOUD
    bayes = replace(fragment.bayes, ancestor=ancestor)
    return replace(fragment, bayes=bayes, soft=None if fragment.soft is None else bayes)


# -- other fields ---------------------------------------------------------------------------------


def _bayes(fragment: Fragment, **values: Any) -> Fragment:
    """The fragment with other values of some fields of its Bayes factors."""
    assert fragment.bayes is not None
    bayes = replace(fragment.bayes, **values)
    return replace(fragment, bayes=bayes, soft=None if fragment.soft is None else bayes)


def one_direction(fragment: Fragment) -> Fragment:
    return _bayes(fragment, single=(True,) * len(fragment.labels))


def two_directions(fragment: Fragment) -> Fragment:
    return _bayes(fragment, single=(False,) * len(fragment.labels))


def declared(fragment: Fragment) -> Fragment:
    return replace(fragment, rank_one="no-ancestor")


def other_scales(fragment: Fragment) -> Fragment:
    assert fragment.bayes is not None
    return _bayes(fragment, scales=tuple(1.5 * scale for scale in fragment.bayes.scales))


def no_districts(fragment: Fragment) -> Fragment:
    assert fragment.bayes is not None
    return _bayes(fragment, district=np.full_like(fragment.bayes.district, -LOUD))


def no_shares(fragment: Fragment) -> Fragment:
    """Every share is nothing, as sure as can be: a "no" then excludes effects of any size."""
    if fragment.shares is None:
        return fragment
    none = np.where(np.isnan(fragment.shares.value), np.nan, 0.0)
    sizes = replace(fragment.shares, value=none, error=none + 1e-9)
    return replace(fragment, shares=sizes)


FIELDS: tuple[Field, ...] = (
    one_direction,
    two_directions,
    declared,
    other_scales,
    no_districts,
    no_shares,
)


if __name__ == "__main__":
    main()
