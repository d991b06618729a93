"""The client's conclusions: districts, ancestry, blocks, and the functionals that read latents.

Ancestry is that of the assembled order where it is known. Before, it grows greedily, strongest
evidence first, and stays transitively closed. Blocks are the classes of mutual reachability under
ancestry ∪ same-district, as in the paper.

Districts are an equivalence relation, so they are grown by merging: two districts A and B become
one if

    Σ_{i ∈ A, j ∈ B} l_ij + log π/(1 − π) > 0 ,      1 − π = Π_{i ∈ A, j ∈ B} (1 − e_ij) ,

with l the log Bayes factor of "same district" against the relation that the order states, and e
the probability of a bidirected edge. A single pair that looks like a district by chance does not
outweigh the others. The order says much about e: an edge needs a cause of both labels that the
client lacks (see `joined_by_others`).

*Functionals.* In whitened coordinates the functional of target i is `u_i`, so on features it is
`u_iᵀ W`. Lines of different districts are orthogonal (T2). Given that a line errs by 1/α_i in each
direction off itself, α_i its precision, the lines are moved until these products vanish: each of
two takes the share of their product that its own error has,

    û_i = u_i − Σ_j α_j/(α_i + α_j) (u_i·u_j) u_j ,      j not in the district of i ,

a few times. Row i of Q̂ is then the functional of target i minus its projection, in feature space,
on the rows of its ancestor blocks, scaled to unit length (block RQ of the paper). That `u_i` is
orthogonal to the c's of labels of which i is no ancestor (T3), and that the whitening errs too,
would change E2 by less than .003 (60 worlds of 10 to 40 latents and settings A to C, 10³ and 10⁴
rows): this is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.order import (
    PartialOrder,
    equivalence_classes,
    greedy_order,
    transitive_closure,
)
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.evidence.priors import MISSED, OPEN_SHARE
from jigsaw_crl.nullcone.reading import RARE, Reading

# Turns in which lines are moved: each leaves about the square of the products.
PASSES = 5


@dataclass(frozen=True, eq=False)
class Structure:
    """A client's structure over label indices; matrices of shape (p, p)."""

    same_district: BoolArray  # an equivalence relation
    above: BoolArray  # `[a, d]`: the block of a is an ancestor of the block of d
    blocks: list[list[int]]
    districts: list[list[int]]


def decide(
    bayes: BayesFactors, order: PartialOrder[str] | None = None, labels: tuple[str, ...] = ()
) -> Structure:
    """Structure from log Bayes factors against "unrelated".

    If the assembled order is known, only the districts are open; it may have more than the client's
    `labels`.
    """
    missed = np.zeros(len(bayes.district))
    if order is None:
        ahead = np.where(np.isnan(bayes.district), -np.inf, bayes.log_factor)
        ahead[np.isnan(ahead)] = -np.inf
        rest = np.logaddexp(np.logaddexp(0.0, ahead), ahead.T)
    else:
        ancestor = order.restrict(labels).matrix.copy()
        n = len(bayes.ancestor)
        odds = bayes.own().log_factor([(1.0 - RARE) / n] * n + [RARE])
        rest = np.where(ancestor, odds, np.where(ancestor.T, odds.T, 0.0))
        certain, possible = joined_by_others(order, labels)
        edge = np.where(certain, 1.0 - RARE, np.where(possible, OPEN_SHARE, RARE))
        # A target with a spouse moves two directions, as one with an ancestor does.
        missed[np.array(bayes.single) & ~ancestor.any(axis=0)] = np.log(MISSED)
    factor = np.nan_to_num(bayes.district_log_factor - rest)
    unseen = np.isnan(bayes.district).all(axis=1)
    factor[unseen] = factor[:, unseen] = -np.inf
    if order is None:
        edge = np.exp(bayes.joint()[1])
    same = _districts(factor, edge, missed)
    if order is None:
        odds = np.where(same, -np.inf, ahead - np.logaddexp(0.0, ahead.T))
        # Pairs without evidence are not added for themselves, and cost nothing where others imply
        # them.
        ancestor = greedy_order(np.where(np.isfinite(odds), odds, 0.0))
    reach = transitive_closure(ancestor | same)
    blocks = equivalence_classes(reach & reach.T)
    return Structure(same, reach & ~reach.T, blocks, equivalence_classes(same))


def joined_by_others(
    order: PartialOrder[str], labels: tuple[str, ...]
) -> tuple[BoolArray, BoolArray]:
    """Pairs of a client's labels that other labels join: certainly, and possibly; (p, p) each.

    Such a label h joins i and j if paths without labels of the client lead from h to both. If no
    label of the client lies between h and i, every path is free; otherwise some may be.
    """
    place = {x: k for k, x in enumerate(order.elements)}
    own = np.array([place[x] for x in labels], dtype=np.intp)
    hidden = np.setdiff1d(np.arange(len(place)), own)
    above = order.matrix[np.ix_(hidden, own)].astype(np.float64)
    free = above * (above @ order.matrix[np.ix_(own, own)] == 0)
    return free.T @ free > 0, above.T @ above > 0


def _districts(factor: FloatArray, edge: FloatArray, missed: FloatArray) -> BoolArray:
    """The most probable districts, grown by the best merge of two, as an equivalence relation.

    `factor` and `edge` are l and e of the module's docstring, shape (p, p); `missed` is what a
    label adds to the sum when it joins its first district, shape (p,).
    """
    p, group = len(factor), np.arange(len(factor))
    total, none, missed = factor.copy(), np.log1p(-edge), missed.copy()
    np.fill_diagonal(total, -np.inf)
    while p > 1:
        gain = total + np.log(-np.expm1(none)) - none + missed[:, None] + missed
        i, j = divmod(int(gain.argmax()), p)
        if not gain[i, j] > 0:
            break
        group[group == j] = i
        for sums in (total, none):
            sums[i] += sums[j]
            sums[:, i] = sums[i]
        total[i, i] = total[j] = total[:, j] = -np.inf
        missed[i] = 0.0
    return np.asarray(group[:, None] == group)


def functionals(reading: Reading, structure: Structure) -> FloatArray:
    """Functionals û W of the features, one per regime, shape (r, n_features).

    Exact moments have no error to condition on.
    """
    t, choice = reading.targets, reading.choice.reading
    at, white = (np.arange(len(choice)), choice), t.white
    u = t.u[at]
    if not white.exact:
        apart = ~structure.same_district[np.ix_(white.owner, white.owner)]
        variance = 1.0 / t.precision[at][:, None]
        share = variance / (variance + variance.T) * (apart & t.usable[:, None] & t.usable)
        for _ in range(PASSES):
            u = u - (share * (u @ u.T)) @ u
            u /= np.linalg.norm(u, axis=1, keepdims=True)
    return np.asarray(u @ white.W)
