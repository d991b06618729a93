"""The paper's algorithms as plainly as they can be written: an oracle for tests on small clients.

Full n_k × n_k matrices, every subset tried, projections by the printed formula, nothing shared with
the package but the pseudo-inverse of known rank.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from jigsaw_crl.moments.regime import fixed_rank_pinv


def changes(client):
    """Θ⁽ʲ⁾ − Θ⁽⁰⁾ for each label, shape (n_features, n_features)."""
    p = client.n_latent
    control = fixed_rank_pinv(client.control_second_moment(), p)
    return [
        fixed_rank_pinv(client.second_moments(label)[0], p) - control for label in client.labels
    ]


def projected(D, members, rows):
    """M̃(C) (I − Wᵀ(WWᵀ)⁻¹W)."""
    M = np.vstack([D[j] for j in members])
    if len(rows) == 0:
        return M
    W = np.vstack(rows)
    return M @ (np.eye(M.shape[1]) - W.T @ np.linalg.inv(W @ W.T) @ W)


def ratio(M, r):
    sigma = np.linalg.svd(M, compute_uv=False)
    return sigma[:r].sum() / sigma.sum()


def dimension(M, scale):
    """Rank, with zero at 1e-9 of the size of the unprojected changes."""
    return int(np.count_nonzero(np.linalg.svd(M, compute_uv=False) > 1e-9 * scale))


def recover(client, tau=None):
    """Blocks, closed block order as pairs (ancestor, descendant), and Q̂ in label order.

    Exact moments when tau is None, else the finite-sample version.
    """
    D = changes(client)
    scale = max(np.linalg.norm(d, 2) for d in D)
    q, found, above = {}, [], {}
    remaining = list(range(len(D)))
    while remaining:
        chosen = next_block(D, remaining, [q[b] for b in found], tau, scale)
        r = len(chosen)
        ancestors = list(found)
        for B in found:
            M = projected(D, chosen, [q[b] for b in found if b != B])
            gone = dimension(M, scale) == r if tau is None else ratio(M, r) > 1 - tau
            if gone:
                ancestors.remove(B)
        M = projected(D, chosen, [q[b] for b in ancestors])
        q[chosen] = np.linalg.svd(M)[2][:r]
        above[chosen] = set(ancestors).union(*(above[b] for b in ancestors))
        found.append(chosen)
        remaining = [j for j in remaining if j not in chosen]
    named = {b: frozenset(client.labels[j] for j in b) for b in found}
    Q = np.zeros((len(D), D[0].shape[0]))
    for b in found:
        Q[list(b)] = q[b]
    return (
        set(named.values()),
        {(named[a], named[d]) for d in found for a in above[d]},
        Q,
    )


def next_block(D, remaining, rows, tau, scale):
    for r in range(1, len(remaining)):
        sets = list(combinations(remaining, r))
        if tau is None:
            for C in sets:
                if dimension(projected(D, C, rows), scale) == r:
                    return C
        else:
            ratios = [ratio(projected(D, C, rows), r) for C in sets]
            if max(ratios) >= 1 - tau:
                return sets[int(np.argmax(ratios))]
    return tuple(remaining)
