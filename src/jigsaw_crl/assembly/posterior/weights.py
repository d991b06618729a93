"""How far each client is trusted: the factor that makes its evidence honest.

For client k let R₋ₖ be the order assembled from the rest. If k is right as often as its evidence
claims, a factor of 1 fits best to what the rest says; a client that is surer than it is right has a
smaller one (`_heat`), and one that contradicts the rest has none. The order of the rest depends on
the weights in turn, so that a few rounds are needed. Of clients that sent the same evidence
(`copies`) one counts: the one that the others contradict least, so that a client which repeats what
another says, and lies on some pairs, takes no weight from it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jigsaw_crl.assembly.evidence import Evidence
from jigsaw_crl.assembly.posterior.walk import best_order
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.evidence.priors import MODEL_ERROR, PAIR_COST

# Clients are left out one by one up to this many, in groups beyond; of many labels in as many
# groups as p² × groups allows, at least in LEAST_GROUPS: the cost stays bounded.
MOST_GROUPS, MOST_WORK, LEAST_GROUPS = 32, 8_000_000, 8
ROUNDS = 5
# Factors on a client's evidence that are tried, and what speaks before the data for evidence that
# means what it says.
HEATS = (1.0, 0.85, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.0)
AS_CLAIMED = 3.0


def weigh_clients(evidence: Evidence, rng: np.random.Generator) -> Evidence:
    """The evidence under trust in each client, found by leaving it out (in groups, if many).

    Weights agree with what they lead to: a fixpoint in a few rounds.
    """
    given, use, n = evidence, evidence.use, len(evidence.claims)
    stating = np.array([c.certain is not None for c in evidence.claims])
    # Two clients that disagree cannot tell which of them is wrong.
    for number in range(ROUNDS if n > 2 else 0):
        heat, errors, said = _measured(evidence, rng)
        ranked = np.lexsort((np.arange(n), errors)).tolist()
        use = replace(use, copies=tuple(tuple(sorted(g, key=ranked.index)) for g in use.copies))
        weights, rate = heat * use.shares, use.rate
        change = float(np.abs(weights - use.weights).max())
        asked = float(weights[stating] @ said[stating])
        if asked > 0:
            wrong = float(weights[stating] @ errors[stating])
            rate = float(np.clip(wrong / asked, MODEL_ERROR, 0.45))
        use = replace(use, weights=weights, rate=rate)
        if change < 0.02 and (number > 0 or not stating.any()):
            break
        evidence = replace(evidence, use=use)
        if rate != given.use.rate:
            evidence = Evidence.heard(given.panel, use)
    # Mostly every client counts as before: nothing is computed again.
    if use.rate != given.use.rate or (use.weights != given.use.weights).any():
        given = Evidence.heard(given.panel, use)
    return given.without_single_directions()


def _measured(evidence: Evidence, rng: np.random.Generator) -> FloatArray:
    """Of each client: the factor on its evidence; how many pairs the rest contradicts, of how many.

    The rest is the order of all clients but itself.
    """
    n, p = len(evidence.claims), len(evidence.labels)
    found = np.empty((3, n))
    n_groups = int(min(n, max(LEAST_GROUPS, min(MOST_GROUPS, MOST_WORK // (p * p)))))
    for group in np.array_split(rng.permutation(n), n_groups):
        out = {j for k in group.tolist() for j in evidence.use.with_copies(k)}
        rest = evidence.without(sorted(out)).log_factor()
        order = best_order(rest - PAIR_COST, rng)
        for k in group.tolist():
            claims = evidence.claims[k]
            grid = np.ix_(claims.members, claims.members)
            x, theirs = claims.log_factor, order[grid]
            # Evidence for a pair that was too little for the others' order is no contradiction.
            known = claims.says & ((rest[grid] < -1e-6) | theirs | theirs.T)
            wrong = known & ((x > 0) != theirs)
            found[:, k] = _heat(x, theirs, rest[grid], known & known.T), wrong.sum(), known.sum()
    return found


def _heat(x: FloatArray, theirs: BoolArray, direct: FloatArray, use: BoolArray) -> float:
    """The factor on a client's evidence x that makes it honest, at most 1.

    Of a pair, one of three things holds: a → d, d → a or neither. If the client is right with the
    probability that its evidence claims, β = 1 is the most likely factor in

        Σ log P(what the others say | β x) ,    P(a → d) : P(d → a) : P(neither)
                                                = exp(β x_ad − c) : exp(β x_da − c) : 1 ,

    with c the prior cost of an ancestor pair. A client that is surer than it is right has a smaller
    one, also where it calls both directions likely. Pairs share the errors of lines, so that they
    count half; a "neither" of the others counts by how firm their evidence `direct` is.
    """
    a, d = np.nonzero(np.triu(use, 1))
    x1, x2, forward, backward = x[a, d], x[d, a], theirs[a, d], theirs[d, a]
    firm = np.tanh(np.minimum(-direct[a, d], -direct[d, a]) / 2.0)
    weight = 0.5 * np.where(forward | backward, 1.0, np.maximum(firm, 0.0))
    beta = np.array(HEATS)[:, None]
    states = np.stack(np.broadcast_arrays(beta * x1 - PAIR_COST, beta * x2 - PAIR_COST, 0.0))
    held = np.where(forward, states[0], np.where(backward, states[1], 0.0))
    fit = (held - np.logaddexp.reduce(states, axis=0)) @ weight - AS_CLAIMED * (1.0 - beta[:, 0])
    return HEATS[int(np.argmax(fit))]
