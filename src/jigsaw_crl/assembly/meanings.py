"""Does a label mean the same at every site?

A site that names another latent, or whose system differs there, contradicts the rest on the pairs
of that label and agrees on the others. For client k and label l, let c be the number of pairs with
l on which k and the pooled others are both sure (`FIRM_YES`, `FIRM_NO`) and of opposite opinion,
and n the number on which both are sure. Sound clients contradict the rest on few pairs, and seldom
on several of one label. The label with the most contradictions is left out of what its client says,
then the counts are taken again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jigsaw_crl.assembly.panel import Panel
from jigsaw_crl.assembly.posterior.weights import FIRST_RATE, MOST_WORK, opinion, parts, pool
from jigsaw_crl.assembly.verdict import LEAST_AGAINST
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["differing_labels", "without_labels"]

# Log-odds from which a client, or the others together, count as sure: 20 to 1 for an ancestor, and
# what a "no" needs against one (an effect may be invisible, so that log-odds against end there).
FIRM_YES, FIRM_NO = float(np.log(20.0)), LEAST_AGAINST
# Contradictions of one label from which it is left out, and their least share of what was compared.
LEAST, SHARE = 3, 0.15
# Clients with more differing labels than this share of theirs are weighed as a whole instead.
WHOLE = 1 / 3


def differing_labels(panel: Panel) -> tuple[tuple[str, str], ...]:
    """Client and label of every label that means something else there than at the others."""
    n, p = len(panel.claims), len(panel.labels)
    if n < 3 or n * p * p > MOST_WORK:
        return ()
    weights = np.ones(n)
    found: list[tuple[str, str]] = []
    for k, claims in enumerate(panel.claims):
        if claims.evidence is None:
            continue
        total = pool(panel, weights, FIRST_RATE)
        rest = total.minus(parts(panel, weights, FIRST_RATE, np.array([k]))).log_odds()
        rest = rest - np.logaddexp(0.0, rest.T)
        grid = np.ix_(claims.members, claims.members)
        said = np.where(claims.says, opinion(claims, FIRST_RATE, panel.n_scales), 0.0)
        hidden = np.setdiff1d(np.arange(p), claims.members)
        causes = (rest[np.ix_(hidden, claims.members)] > FIRM_YES).astype(np.int64)
        off = _most_contradicted(said, rest[grid], causes.T @ causes > 0)
        if len(off) <= WHOLE * len(claims.members):
            found += [(claims.client, panel.labels[claims.members[i]]) for i in off]
    # A label on which several sites stand against the rest has a hidden cause, or is hard to tell;
    # it does not mean something else at each of them.
    sites = Counter(label for _, label in found)
    return tuple((client, label) for client, label in found if sites[label] == 1)


def _most_contradicted(said: FloatArray, rest: FloatArray, joined: BoolArray) -> list[int]:
    """Labels whose pairs contradict the rest, one after the other.

    Pairs `joined` by a cause that the client lacks may look like ancestry there: they do not count.
    """
    own, theirs = (
        (x > FIRM_YES).astype(np.int8) - (x < -FIRM_NO).astype(np.int8) for x in (said, rest)
    )
    sure = (own * theirs != 0) & ~joined
    against = sure & (own != theirs)
    out: list[int] = []
    while True:
        wrong = against.sum(axis=0) + against.sum(axis=1)
        compared = sure.sum(axis=0) + sure.sum(axis=1)
        worst = int(np.argmax(wrong))
        if wrong[worst] < max(LEAST, SHARE * compared[worst]):
            return out
        out.append(worst)
        for table in (against, sure):
            table[worst], table[:, worst] = False, False


def without_labels(
    fragments: Sequence[Fragment], differing: Sequence[tuple[str, str]]
) -> list[Fragment]:
    """The fragments without what the named clients say about the named labels."""
    return [
        _without(f, np.array([f.labels.index(x) for c, x in differing if c == f.client], dtype=int))
        for f in fragments
    ]


def _without(fragment: Fragment, index: IntArray) -> Fragment:
    if not len(index) or fragment.bayes is None:
        return fragment
    ancestor, district = fragment.bayes.ancestor.copy(), fragment.bayes.district.copy()
    for table in (ancestor, district):
        table[..., index, :] = np.nan
        table[..., index] = np.nan
    return replace(fragment, bayes=replace(fragment.bayes, ancestor=ancestor, district=district))
