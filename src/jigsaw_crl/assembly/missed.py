"""How often is a second direction missed, and which labels may have ancestors all the same?

Once per label, not per client or pair: that a target has an ancestor is the same at all clients.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln

from jigsaw_crl.assembly.panel import Rows
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.evidence.factors import BayesFactors

__all__ = ["Missed", "missed_directions"]

# A label that moved two directions somewhere and has no labelled ancestor: one in five (an
# unlabelled cause, or a spouse).
TWO_DIRECTIONS = float(np.log(5.0))
# What is tried for the share of misses, how alike labels are in it, and the share of labels that
# have ancestors: few values, because a study has few labels to tell them apart.
MEANS = (0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65)
SIZES, WITH_ANCESTORS = (1.0, 2.0, 4.0, 8.0), (0.3, 0.5, 0.7, 0.85, 0.95)
# A line leans with at most this probability: beyond it, the clients that saw one say nothing.
MOST_LEAN, LEAST_LEAN = 0.5, 0.01


@dataclass(frozen=True, eq=False)
class Missed:
    """What the number of directions says about a label's having ancestors.

    Parameters
    ----------
    ancestry : array, shape (p,)
        Log factor of "has an ancestor".
    chance : array, shape (p,)
        Probability that a label has ancestors although a client saw one direction only; 0 where no
        client did.
    share : float
        Estimated share of misses in the study.
    two : array of bool, shape (p,)
        Labels that moved two directions at some client.
    """

    ancestry: FloatArray
    chance: FloatArray
    share: float
    two: BoolArray

    @property
    def excuse(self) -> FloatArray:
        """Probability that a label that shows one direction somewhere has two, shape (p,).

        A label known to have ancestors is excused: a weak direction is weak at all clients.
        """
        return np.clip(self.chance, LEAST_LEAN, 1.0)

    @property
    def leans(self) -> FloatArray:
        """Probability that a line of the pair leans, shape (p, p)."""
        one = np.where(self.chance > 0, np.clip(self.chance, LEAST_LEAN, MOST_LEAN), 0.0)
        both = 1.0 - (1.0 - one[:, None]) * (1.0 - one)
        return np.asarray(np.clip(both, LEAST_LEAN, MOST_LEAN))


def missed_directions(p: int, clients: Iterable[tuple[Rows, BayesFactors | None, float]]) -> Missed:
    """Estimate how often a second direction is missed, by marginal likelihood.

    A label without ancestors is single at every client. One with ancestors is missed at a share of
    its clients that is Beta(a, b) over labels. a, b and the share f of labels with ancestors
    maximise the likelihood of the counts, with one imagined label missed at 1 of 10 clients.

    Parameters
    ----------
    p : int
        Number of labels.
    clients : iterable of (Rows, BayesFactors or None, float)
        Each with the factors that are used, and how far the client counts.
    """
    single, seen = np.zeros((2, p))
    for rows, bayes, weight in clients:
        if bayes is not None:
            # A client that says nothing about a label's ancestors has not counted its directions.
            counted = ~np.isnan(bayes.ancestor).any(axis=0).all(axis=0)
            single[rows.members] += weight * (np.array(bayes.single) & counted)
            seen[rows.members] += weight * counted
    both = seen - single > 1e-9
    # Axes: the mean a / (a + b) and the size a + b of the Beta distribution, f, and the labels.
    mean, size, f = (np.array(x) for x in (MEANS, SIZES, WITH_ANCESTORS))
    a, b = ((x[:, None] * size)[..., None, None] for x in (mean, 1.0 - mean))
    likely = betaln(a + single, b + seen - single) - betaln(a, b)
    imagined = (betaln(a + 1, b + 9) - betaln(a, b))[..., 0]
    with_ancestors = likely + np.log(f)[:, None]
    each = np.logaddexp(with_ancestors, np.log1p(-f)[:, None])
    total = imagined + np.where(both, with_ancestors, each).sum(axis=-1)
    best = np.unravel_index(int(total.argmax()), total.shape)
    share, chosen, counts = float(mean[best[0]]), f[best[2]], likely[best[0], best[1], 0]
    has = chosen * np.exp(counts)
    chance = np.where(both, 1.0, has / (has + 1.0 - chosen))
    ancestry = np.where(both, TWO_DIRECTIONS, counts)
    return Missed(ancestry * (seen > 0), np.where(single > 0, chance, 0.0), share, both)
