"""Liars that have read the code: how many false verdicts they win, and on how many witnesses.

    python benchmarks/pages.py try --only adaptive --worlds 2
    python benchmarks/pages.py run --only adaptive

Each liar tells the truth but for pairs that it shares with the other liars. They know what the
honest sites say, sort the pairs by how little that is, claim the opposite of the truth at the
largest size, and keep the number of pairs that wins most false verdicts; then they try, pair by
pair, to leave one out or take one more, then each of the other fields of a fragment (`FIELDS`), and
last to send all this in the place of honest sites: with their fragments, and with what the others
say wherever these contradict the others, so that the honest sites look like the copies.
Every trial is an assembly of the study, `TRIES` of them, one for each field, and one more.
A false verdict is *above its number* if it rests on more sites than lie; of pairs that were lied
about, and of others, where honest evidence is wrong. Without liars, a table has E1 and the share
of pairs decided with and without the policy of federations. The second line makes the tables of
docs/attacks.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, Literal

import numpy as np
from records import Record, Table, by_cell
from reporting import markdown

import jigsaw_crl as jc
from jigsaw_crl.assembly.verdict import NO, OPEN, YES
from jigsaw_crl.fragment.fragment import Fragment

# First seed of each family. No test or other benchmark uses seeds in these ranges.
SEEDS = {"choose": 8_300_000, "judge": 8_400_000}
LOUD = 1000.0
# Assemblies that look for pairs to lie about.
TRIES = 10
POLICIES = ("none", "fifth", "above")
Field = Callable[[Fragment], Fragment]


@dataclass(frozen=True)
class Cell:
    """One kind of study, how many of its sites lie, and the policy; liars + 1 for "above"."""

    kind: str = "paper"
    sites: int = 15
    liars: int = 0
    policy: str = "none"

    @property
    def witnesses(self) -> int | Literal["fifth"] | None:
        """The policy as `assemble` takes it."""
        if self.policy == "above":
            return self.liars + 1
        return "fifth" if self.policy == "fifth" else None


def run_world(cell: Cell, family: str, number: int) -> Record:
    """The best attack found in one study, or the verdicts without liars."""
    world, fragments = study(cell.kind, cell.sites, SEEDS[family] + number)
    record: Record = {"cell": asdict(cell), "seeds": family, "world": number}
    if cell.liars:
        counts = attacked(world, fragments, cell.liars, cell.witnesses, TRIES)
        return record | {"counts": counts}
    order = jc.assemble(fragments, witnesses=cell.witnesses)
    return record | {
        "E1": float(jc.metrics.global_f1(world.order, order)),
        "decided": int((order.verdicts != OPEN).sum()) - len(order.labels),
        "pairs": len(order.labels) * (len(order.labels) - 1),
        "wrong": int(false(world, order).sum()),
    }


def name_of(cell: Cell) -> str:
    """The study of a cell."""
    return f"{cell.sites} clients{', hard' if cell.kind == 'hard' else ''}"


def attack_table(records: list[Record]) -> str:
    """False verdicts, and those above their number, a row for each number of liars."""
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for cell, found in by_cell(Cell, records).items():
        wrong, lied, others, honest = np.sum([r["counts"] for r in found], axis=0).tolist()
        own = rows.setdefault((name_of(cell), cell.liars), {})
        # The sites that a verdict rests on are looked for up to a fifth, or up to the policy.
        known = cell.policy == "above" or cell.liars <= -(-cell.sites // 5)
        above = f"{lied}+{others}" if known else "–"
        own |= {cell.policy: f"{wrong} ({honest})", f"{cell.policy} above": above}
    columns = ("fifth", "fifth above", "above", "above above")
    more = "above their number"
    titles = ("default", more, "`witnesses` = liars + 1", more)
    lines = [(*name, *(own.get(x, "–") for x in columns)) for name, own in rows.items()]
    return markdown(("study", "liars", *titles), lines)


def price_table(records: list[Record]) -> str:
    """Honest studies, without and with the policy of federations: E1, share decided, wrong."""
    rows: dict[str, dict[str, str]] = {}
    for cell, found in by_cell(Cell, records).items():
        decided, pairs, wrong = (sum(r[x] for r in found) for x in ("decided", "pairs", "wrong"))
        e1 = np.mean([r["E1"] for r in found])
        own = rows.setdefault(name_of(cell), {})
        own[cell.policy] = f"{e1:.3f}, {decided / pairs:.2f}, {wrong}"
    lines = [(name, own.get("none", "–"), own.get("fifth", "–")) for name, own in rows.items()]
    return markdown(("study", "no policy: E1, decided, wrong", "default"), lines)


@lru_cache(maxsize=16)
def study(kind: str, sites: int, seed: int) -> tuple[jc.simulate.World, list[Fragment]]:
    """A world of 15 labels, and the fragments of its sites."""
    protocol = jc.simulate.Intervention(kind, shift=1.0) if kind == "hard" else kind
    world = jc.simulate.random_world(15, sites, 0.6, seed, intervention=protocol)
    clients = world.clients(n_samples=5_000, seed=seed)
    if kind == "hard":
        clients = [client.with_interventions("hard") for client in clients]
    return world, [jc.recover_fragment(client) for client in clients]


def false(world: jc.simulate.World, order: jc.GlobalOrder) -> np.ndarray:
    """Verdicts that are not so, shape (p, p)."""
    true = np.zeros(order.verdicts.shape, dtype=bool)
    for pair in world.order.pairs():
        # Of some worlds, no site has every label.
        if set(pair) <= set(order.labels):
            true[order.indices(*pair)] = True
    return np.asarray((order.verdicts == YES) & ~true | (order.verdicts == NO) & true)


def attacked(
    world: jc.simulate.World, fragments: list[Fragment], liars: int, policy: Any, tries: int
) -> list[int]:
    """False verdicts of the best attack found; of these, those that rest on more than the liars."""
    others = jc.assemble(fragments[liars:], witnesses=policy)
    shared = sorted(common(fragments[:liars]))
    pairs = [(a, d) for a in shared for d in shared if a != d]
    pairs.sort(key=lambda pair: thin(others, pair))
    true = frozenset(world.order.pairs())

    def told(
        targets: Sequence[tuple[str, str]],
        fields: Sequence[Field] = (),
        own: Sequence[Fragment] = tuple(fragments[:liars]),
    ) -> jc.GlobalOrder:
        sent = [lying(f, targets, true) for f in own]
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
    repeated = [imitation(f, others) for f in fragments[liars : 2 * liars]]
    own = [replace(f, client=g.client) for f, g in zip(repeated, fragments, strict=False)]
    order = told([x for x in chosen if set(x) <= common(own)], fields, own)
    if false(world, order).sum() > false(world, best).sum():
        best = order
    wrong, few = false(world, best), best.table.witnesses
    # Groups of up to a fifth are tried: 0 says that it rests on more, or on what was asked for.
    more = max(-(-len(fragments) // 5) + 1, policy if isinstance(policy, int) else 0)
    above = wrong & (np.where(few == 0, more, few) > liars)
    lied = np.zeros_like(wrong)
    for pair in chosen:
        lied[best.indices(*pair)] = True
    counts = (wrong, above & lied, above & ~lied, false(world, others))
    return [int(one.sum()) for one in counts]


def common(fragments: Sequence[Fragment]) -> set[str]:
    """The labels that all of them have."""
    return set.intersection(*(set(f.labels) for f in fragments))


def imitation(fragment: Fragment, others: jc.GlobalOrder) -> Fragment:
    """A copy that says what the others say wherever the fragment contradicts them."""
    assert fragment.bayes is not None
    ancestor = fragment.bayes.ancestor.copy()
    verdicts = others.verdicts[np.ix_(*2 * [[others.labels.index(x) for x in fragment.labels]])]
    against = (verdicts != OPEN) & ((fragment.bayes.log_factor > 0) != (verdicts == YES))
    ancestor[:, against] = np.where(verdicts == YES, 1.0, -1.0)[against]
    return _bayes(fragment, ancestor=ancestor)


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
        i, j = fragment.labels.index(a), fragment.labels.index(d)
        # Who says yes to both directions of a pair wins neither.
        yes = (a, d) not in true and not (a > d and (d, a) in targets)
        ancestor[:, i, j] = LOUD if yes else -LOUD
        if yes:
            ancestor[:, j, i] = -LOUD
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


# -- tables ---------------------------------------------------------------------------------------


def cells_of(
    kinds: Sequence[str], sites: Sequence[int], liars: Sequence[int], policies: Sequence[str]
) -> list[Cell]:
    """Every combination."""
    return [Cell(*chosen) for chosen in product(kinds, sites, liars, policies)]


PLACES = (("paper", "hard"), (10, 15))
PUBLISHED = (
    Table(
        "attacks: adaptive",
        "docs/attacks.md",
        tuple((cell, 2) for cell in cells_of(*PLACES, (1, 2, 3), ("fifth", "above"))),
        attack_table,
    ),
    Table(
        "attacks: price",
        "docs/attacks.md",
        tuple((cell, 8) for cell in cells_of(*PLACES, (0,), ("none", "fifth"))),
        price_table,
    ),
)
