"""A fifth of the sites lies about its effects: what happens to the pooled ones?

Part "malice" of `effects.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from records import Record
from reporting import markdown

import jigsaw_crl as jc
from jigsaw_crl.assembly.effects import labels_not_hard, pool_effects
from jigsaw_crl.assembly.panel import Use, read_fragments
from jigsaw_crl.evidence.effects import Effects, Sizes

# Standard errors of the honest estimate beyond which a pooled effect has moved.
MOVED = 2.0
# Share of malicious sites.
MALICIOUS = 0.2
# A pair counts as marked if the table of effects shows a chance of its disagreement below this.
UNLIKELY = 0.01
# The note on a label that a site moved the other way.
TURNED = "the intervention on {} seems"


@dataclass(frozen=True)
class Lie:
    """What a malicious site does to the effects and errors that it sends.

    Effects are multiplied by `times`, `add` is added with a random sign a pair, and `nudge` of
    their errors with the sign of plus; errors are multiplied by `shrink`. With `permute`, labels
    are mixed up first.
    """

    times: float = 1.0
    add: float = 0.0
    nudge: float = 0.0
    shrink: float = 1.0
    permute: bool = False

    def told(self, fragment: jc.Fragment, rng: np.random.Generator) -> jc.Fragment:
        hard = fragment.hard
        if hard is None:
            return fragment
        value, error = hard.total.value, hard.total.error
        if self.permute:
            order = rng.permutation(len(value))
            value, error = value[order][:, order], error[order][:, order]
        sign = rng.choice([-1.0, 1.0], value.shape)
        sent = self.times * value + self.add * sign + self.nudge * error
        total = Sizes(sent, self.shrink * error)
        return replace(fragment, hard=Effects(hard.hard, hard.moved, total, hard.applied))


# Inverted signs are the hardest to see: most look like interventions that went the other way.
LIES = {
    "shifted by 1": Lie(add=1.0),
    "times 3": Lie(times=3.0),
    "shifted by 0.2, errors / 100": Lie(add=0.2, shrink=0.01),
    "all nudged by 4 errors": Lie(nudge=4.0),
    "labels mixed up": Lie(permute=True),
    "signs inverted": Lie(times=-1.0),
}


def malice(world: jc.simulate.World, result: jc.Result) -> Record:
    """Pooled effects that move, by the kind of lie."""
    fragments = list(result.fragments.values())
    panel = read_fragments(fragments)
    honest = pool_effects(panel, Use.all_of(panel))
    assert honest is not None
    rng = np.random.default_rng([world.seed, 8])
    count = round(MALICIOUS * len(fragments))
    bad = set(rng.choice(len(fragments), size=count, replace=False).tolist())
    liars = {fragments[k].client for k in bad}
    out: Record = {}
    for name, lie in LIES.items():
        sent = [lie.told(f, rng) if k in bad else f for k, f in enumerate(fragments)]
        told = read_fragments(sent)
        use = Use.all_of(told)
        first = pool_effects(told, use)
        assert first is not None
        doubted = frozenset(labels_not_hard(first))
        after = pool_effects(told, replace(use, soft=doubted))
        known = honest.known & ~np.eye(len(honest.labels), dtype=bool)
        if after is None:
            out[name] = {"pairs": int(known.sum()), "withdrawn": int(known.sum())}
            continue
        left = known & after.known
        moved = left & (np.abs(after.estimate - honest.estimate) > MOVED * honest.error)
        turned = np.array([any(TURNED.format(x) in n for n in after.notes) for x in after.labels])
        marked = after.set_aside.any(axis=0) | (after.heterogeneity < UNLIKELY)
        marked |= turned[:, None] | turned
        silent = moved & ~marked
        out[name] = {
            "pairs": int(known.sum()),
            "withdrawn": int((known & ~left).sum()),
            "moved": int(moved.sum()),
            "silent": int(silent.sum()),
            "silent_study": bool(silent.any()) and not (after.notes or doubted),
            "named": len(liars & set(first.apart)),
            "liars named": len(liars),
            "honest named": len(set(first.apart) - liars),
            # Sites of the silent pairs, and how many of these lie.
            "of": honest.sites[silent].tolist(),
            "liars": (~np.isnan(honest.by_site[sorted(bad)])).sum(axis=0)[silent].tolist(),
        }
    return {"lies": out}


def malice_table(records: Sequence[Record]) -> str:
    """Pooled effects that lies move, and who is named; over all records."""
    rows = []
    for lie in LIES:
        told = [r["lies"][lie] for r in records]

        def all_of(what: str, told: Sequence[Record] = told) -> int:
            return sum(t.get(what, 0) for t in told)

        rows.append(
            (
                lie,
                f"{all_of('withdrawn')}/{all_of('pairs'):,}",
                all_of("moved"),
                all_of("silent"),
                f"{all_of('named')}/{all_of('liars named')}",
                all_of("honest named"),
            )
        )
    names = ("effects withdrawn", "moved", "moved, not marked", "liars named", "honest named")
    return markdown((f"{MALICIOUS:.0%} of the clients lie", *names), rows)
