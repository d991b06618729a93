"""Sites that lie about their evidence: E1 beside the honest study, and the verdicts they turn.

    python benchmarks/pages.py try --only assembly_liars --worlds 2
    python benchmarks/pages.py run --only assembly_liars

A share of the sites sends evidence that was chosen to mislead, knowing what the honest sites say:

- sparse: turns three decided pairs round, at the largest size;
- aimed: the same, each liar with the three pairs of which the honest study is least sure;
- inflated: a hundred times what it saw;
- permuted: its own evidence under other labels, three times as large;
- inverted: every pair turned round;
- sybil: all liars send the same inverted evidence, as one site under several names would;
- copied: all liars send the evidence of one honest site, with three pairs aimed at.

A verdict is *turned* if it is the opposite of the honest study's. A turned verdict is *noted* if it
is listed in `contested` or `rests_on`, or if the result says that the sites disagree. The last two
columns are about liars and honest sites with a weight below one half. The second line makes the
table of docs/attacks.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache

import numpy as np
from records import Record, Table, by_cell
from reporting import markdown

import jigsaw_crl as jc
from jigsaw_crl.assembly.verdict import OPEN
from jigsaw_crl.fragment.fragment import Fragment

KINDS = ("sparse", "aimed", "inflated", "permuted", "inverted", "sybil", "copied")
# First seed of each family. No test or other benchmark uses seeds in these ranges.
SEEDS = {"choose": 8_100_000, "judge": 8_200_000}
# Pairs that a liar turns round which otherwise tells the truth, and how large it makes them.
FEW, LOUD = 3, 1000.0


@dataclass(frozen=True)
class Cell:
    """One kind of study; no liars for the kind "honest"."""

    kind: str
    share: float = 0.0
    n: int = 10_000
    clients: int = 15
    latent: int = 20


def cells_of(shares: Sequence[float], kinds: Sequence[str]) -> list[Cell]:
    """The honest study, and those with liars."""
    return [Cell("honest"), *(Cell(kind, part) for part in shares for kind in kinds)]


def liar_table(records: list[Record]) -> str:
    """One row a cell."""
    groups = by_cell(Cell, records)
    e1 = {r["world"]: r["e1"] for r in groups[Cell("honest")]}
    rows = []
    for cell, found in groups.items():
        named, liars, accused = (sum(r[x] for r in found) for x in ("named", "liars", "accused"))
        rows.append(
            (
                f"{cell.share:.0%} {cell.kind}" if cell.share else cell.kind,
                f"{np.mean([r['e1'] - e1[r['world']] for r in found]):+.3f}",
                sum(r["turned"] for r in found),
                sum(r["turned"] - r["noted"] for r in found),
                f"{named}/{liars}",
                f"{accused}/{sum(cell.clients - r['liars'] for r in found)}",
            )
        )
    verdicts = ("change of E1", "turned", "not noted")
    return markdown(("liars", *verdicts, "liars named", "honest named"), rows)


def run_world(cell: Cell, family: str, number: int) -> Record:
    """One study with liars beside the same study without."""
    seed = SEEDS[family] + number
    world, fragments, honest = study(cell.latent, cell.clients, cell.n, seed)
    rng = np.random.default_rng([seed, 18])
    count = round(cell.share * cell.clients)
    liars = sorted(rng.choice(cell.clients, count, replace=False).tolist())
    order = honest
    if liars:
        order = jc.assemble(lie(fragments, honest, liars, cell.kind, rng))
    turned = (order.verdicts != honest.verdicts) & (order.verdicts != OPEN)
    turned &= honest.verdicts != OPEN
    names = [(order.labels[a], order.labels[d]) for a, d in np.argwhere(turned).tolist()]
    # What rests on one site takes long to find.
    noted = [order.use.disagreement or x in order.contested or x in order.rests_on for x in names]
    culprits = {fragments[k].client for k in liars}
    little = {name for name, weight in order.client_weights.items() if weight < 0.5}
    return {
        "cell": asdict(cell),
        "seeds": family,
        "world": number,
        "e1": float(jc.metrics.global_f1(world.order, order)),
        "turned": len(names),
        "noted": sum(noted),
        "disagreement": bool(order.use.disagreement),
        "liars": len(culprits),
        "named": len(little & culprits),
        "accused": len(little - culprits),
    }


@lru_cache(maxsize=16)
def study(
    latent: int, clients: int, n: int, seed: int
) -> tuple[jc.simulate.World, list[Fragment], jc.GlobalOrder]:
    """A world, the fragments of its sites, and the order that they give."""
    world = jc.simulate.random_world(latent, clients, 0.6, seed)
    fragments = [jc.recover_fragment(client) for client in world.clients(n_samples=n, seed=seed)]
    return world, fragments, jc.assemble(fragments)


def lie(
    fragments: Sequence[Fragment],
    honest: jc.GlobalOrder,
    liars: Sequence[int],
    kind: str,
    rng: np.random.Generator,
) -> list[Fragment]:
    """The fragments, with those of the liars replaced."""
    out = list(fragments)
    if kind in ("sybil", "copied"):
        chosen = fragments[liars[0]]
        told = inverted(chosen) if kind == "sybil" else sparse(chosen, honest)
        for k in liars:
            out[k] = replace(told, client=fragments[k].client)
        return out
    for k in liars:
        piece = fragments[k]
        if kind in ("sparse", "aimed"):
            out[k] = sparse(piece, honest, rng if kind == "sparse" else None)
        elif kind == "inflated":
            out[k] = scaled(piece, 100.0)
        elif kind == "permuted":
            out[k] = permuted(piece, rng)
        else:
            out[k] = inverted(piece)
    return out


def scaled(fragment: Fragment, factor: float) -> Fragment:
    """All factors of ancestry times a number."""
    assert fragment.bayes is not None
    return with_ancestor(fragment, factor * fragment.bayes.ancestor)


def permuted(fragment: Fragment, rng: np.random.Generator) -> Fragment:
    """The site's evidence under other labels, three times as large."""
    assert fragment.bayes is not None
    deal = rng.permutation(len(fragment.labels))
    return with_ancestor(fragment, 3.0 * fragment.bayes.ancestor[:, deal][:, :, deal])


def inverted(fragment: Fragment) -> Fragment:
    """What speaks for a pair speaks against it, and the other way."""
    return scaled(fragment, -1.0)


def sparse(
    fragment: Fragment, honest: jc.GlobalOrder, rng: np.random.Generator | None = None
) -> Fragment:
    """A few decided pairs turned round and made large: any, or those that are least sure."""
    assert fragment.bayes is not None
    ancestor = fragment.bayes.ancestor.copy()
    at = [honest.labels.index(label) for label in fragment.labels]
    verdicts = honest.verdicts[np.ix_(at, at)]
    sure = np.abs(honest.probabilities[np.ix_(at, at)] - 0.5)
    if rng is not None:
        sure = rng.random(sure.shape)
    sure[(verdicts == OPEN) | np.eye(len(at), dtype=bool)] = np.inf
    for flat in np.argsort(sure, axis=None, kind="stable")[:FEW]:
        a, d = np.unravel_index(flat, sure.shape)
        ancestor[:, a, d] = -LOUD if verdicts[a, d] > 0 else LOUD
    return with_ancestor(fragment, ancestor)


def with_ancestor(fragment: Fragment, ancestor: np.ndarray) -> Fragment:
    """The fragment with other factors of ancestry."""
    assert fragment.bayes is not None
    return replace(fragment, bayes=replace(fragment.bayes, ancestor=ancestor))


PAGE = tuple((cell, 6) for cell in cells_of((0.2,), KINDS))
PUBLISHED = (Table("attacks: liars", "docs/attacks.md", PAGE, liar_table),)
