"""Which verdicts rest on one client, and which are contested?

A verdict rests on client k if it falls when k is left out: the posterior is sampled again, briefly,
with k's weight at zero. A pair whose verdict is then undetermined by a narrow margin (its
probability stays beyond `NEARLY`) counts as kept, because short chains would decide it by chance.
Clients that sent the same evidence are one client here.

A verdict is contested if the clients that speak against it would decide the opposite among
themselves. Sites that act together can outvote others about a pair; what the others said remains.
A client that lacks a common cause of two labels may see ancestry that is not there, and does not
contest that there is none.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.copies import find_copies, with_copies
from jigsaw_crl.assembly.decision import decide
from jigsaw_crl.assembly.panel import Panel
from jigsaw_crl.assembly.posterior import sample_orders
from jigsaw_crl.assembly.posterior.rounds import CHAINS, SWEEPS, OrderModel
from jigsaw_crl.assembly.posterior.weights import client_evidence, lacks_common_cause
from jigsaw_crl.assembly.verdict import CERTAIN_YES, LEAST_AGAINST, NO, OPEN, YES
from jigsaw_crl.base.arrays import BoolArray, FloatArray

__all__ = ["contested", "is_quick", "rests_on"]

# No single client: several, or nobody in particular.
NOBODY = -1
# A probability beyond this still supports its verdict in short chains.
NEARLY = 0.9
# Log-odds that are enough for a verdict.
ENOUGH = float(np.log(CERTAIN_YES / (1.0 - CERTAIN_YES)))
# Clients times squared labels, up to which it takes a few seconds.
MOST_QUICKLY = 6_000


def is_quick(panel: Panel) -> bool:
    """Whether `rests_on` takes a few seconds at most."""
    return len(panel.claims) * len(panel.labels) ** 2 <= MOST_QUICKLY


def rests_on(
    panel: Panel,
    trust: FloatArray,
    rate: float,
    verdicts: npt.NDArray[np.int8],
    probability: FloatArray,
    seed: int,
) -> dict[tuple[str, str], str]:
    """The client that a decided pair (ancestor, descendant) rests on, if there is one.

    Parameters
    ----------
    panel : Panel
    trust : array, shape (n_clients,)
    rate : float
        As in `OrderModel`.
    verdicts : array of int8, shape (p, p)
    probability : array, shape (p, p)
        From all clients.
    seed : int
    """
    out = np.full(verdicts.shape, NOBODY, dtype=np.int32)
    most = np.full(verdicts.shape, -np.inf)
    copies = find_copies(panel.fragments)
    for k in np.flatnonzero(trust > 0).tolist():
        rng = np.random.default_rng([seed, k])
        others = trust.copy()
        others[with_copies(np.array([k]), copies)] = 0.0
        model = OrderModel.of(panel, others, rate)
        # Twice, because the doubts of the first round still know what the client said.
        chance = probability
        for _ in range(2):
            weights = model.weights(chance)
            draws = sample_orders(weights, rng, n_chains=CHAINS, first=SWEEPS, most=SWEEPS)
            chance = draws.probability
        evidence = model.evidence(chance)
        left = decide(draws, evidence)
        for said, sure in ((YES, chance), (NO, 1.0 - chance)):
            gone = (verdicts == said) & (left != said)
            kept = (sure > NEARLY) & ((said == YES) | (evidence < -LEAST_AGAINST))
            gone &= ~kept
            np.fill_diagonal(gone, False)
            # Of several clients that a pair would fall without, the one that it needs most.
            take = gone & (1.0 - sure > most)
            out[take], most[take] = k, (1.0 - sure)[take]
    return {
        (panel.labels[a], panel.labels[d]): panel.claims[out[a, d]].client
        for a, d in np.argwhere(out != NOBODY).tolist()
    }


def contested(
    panel: Panel, trust: FloatArray, rate: float, verdicts: npt.NDArray[np.int8]
) -> BoolArray:
    """Decided pairs against which the evidence of some clients is firm, shape (p, p).

    The weighted log-odds of the clients that speak against the verdict add up to `ENOUGH`.

    Parameters
    ----------
    panel, trust, rate, verdicts
        As for `rests_on`.
    """
    against = np.zeros(verdicts.shape)
    for claims, weight in zip(panel.claims, trust.tolist(), strict=True):
        grid = np.ix_(claims.members, claims.members)
        x = np.where(claims.says, client_evidence(claims, rate, panel.n_scales).log_odds(), 0.0)
        x[(verdicts[grid] != YES) & lacks_common_cause(verdicts == YES, claims.members)] = 0.0
        against[grid] += weight * np.maximum(np.where(verdicts[grid] == YES, -x, x), 0.0)
    found = (verdicts != OPEN) & (against > ENOUGH)
    np.fill_diagonal(found, False)
    return np.asarray(found)
