"""The direction of every latent at every client, and where the data leave it open.

A latent is known up to its sign. It counts as growing in the direction in which a sensor rises that
a user named for it (`Effects.up`); if none is named, in that in which its intervention moved it. A
site that names none is turned first if the shifts of those that name one went down. Where no shift
shows, the sign of label i at client k, s_ki, is arbitrary, and only effects that two clients both
see say how their signs fit together: if k and l both have the effect of j on i, and it is clearly
not zero, then `s_ki s_kj s_li s_lj` is the product of the two signs they find: who knows one of
`s_ki s_kj` and `s_li s_lj` knows the other. One direction per label may be chosen freely. What
these rules and choices leave open is arbitrary: an effect whose sign depends on it has a size and
no sign (`open_signs`).
"""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray

# Half the log-odds, before the data, that two interventions on a label move it the same way.
SAME_WAY = 4.0
# One pair counts at most so much: a false effect does not turn the labels of a client.
MOST_OF_PAIR = 8.0
# Half the log-odds from which a pair settles how the signs of two clients fit together.
SETTLES = 4.0
# Rounding of exact moments.
ROUNDING = 1e-6


def precision(error: FloatArray) -> FloatArray:
    """`1/error²`, 0 where there is no estimate."""
    return np.asarray(np.nan_to_num(1.0 / np.maximum(error, ROUNDING) ** 2))


def directions(
    value: FloatArray, error: FloatArray, moved: BoolArray, named: BoolArray
) -> tuple[FloatArray, list[tuple[int, int]]]:
    """Sign of every client's labels (n_clients, p), and those turned against their own shift.

    A client's signs s maximise the agreement `Σ_ij J_ij s_i s_j + Σ_i b_i s_i` with the others: J
    is the weighted product of its effect and theirs, b the belief that interventions on one label
    move it one way. `named` are labels whose direction a named sensor gives, (n_clients, p).
    """
    K, p = moved.shape
    sign, has = np.ones((K, p)), ~np.isnan(value)
    v, weight = np.nan_to_num(value), _clear(value, error)
    here = np.asarray((has | np.swapaxes(has, 1, 2)).any(axis=2))
    belief = np.where(moved, SAME_WAY, 0.0)
    # Clients that say most first: the others follow them.
    order = np.argsort(-(weight * v**2).sum(axis=(1, 2)), kind="stable")
    for sweep in range(2):
        for position, k in enumerate(order):
            others = np.delete(order, position) if sweep else order[:position]
            if len(others):
                S = sign[others, :, None] * sign[others, None, :]
                J = _agreement(v[k], weight[k], v[others] * S, weight[others])
                sign[k] = _aligned(J, belief[k])
        # Clients may agree in two camps about one label: all of them together, label by label.
        for j in range(p):
            mine = np.flatnonzero(here[:, j])
            if len(mine) > 1:
                C = _camps(v[mine], weight[mine], sign[mine], j)
                sign[mine, j] = _aligned(C, belief[mine, j])
    # The direction of a label is that of most sites that name a sensor for it; if none does, that
    # in which most of its interventions moved it.
    moved = moved & here & (named | ~named.any(axis=0))
    against = ((sign < 0) & moved).sum(axis=0) * 2 > moved.sum(axis=0)
    sign[:, against] *= -1.0
    return sign, [(k, j) for k, j in np.argwhere((sign < 0) & moved).tolist()]


def _clear(value: FloatArray, error: FloatArray) -> FloatArray:
    """The weight of every effect, 0 if it may be zero: signs of noise add up over many pairs."""
    weight, v = np.minimum(precision(error), 1e8), np.nan_to_num(value)
    return np.where(v**2 * weight > 2 * SETTLES, weight, 0.0)


def _agreement(
    own: FloatArray, weight: FloatArray, others: FloatArray, weights: FloatArray
) -> FloatArray:
    """J: log likelihood of equal signs of a pair at a client and at the others, halved, (p, p)."""
    total = weights.sum(axis=0)
    mean = (weights * others).sum(axis=0) / np.where(total > 0, total, 1.0)
    both = weight * total / np.where(weight + total > 0, weight + total, 1.0)
    J = np.clip(both * own * mean, -MOST_OF_PAIR, MOST_OF_PAIR)
    return np.asarray(J + J.T)


def _camps(v: FloatArray, weight: FloatArray, sign: FloatArray, j: int) -> FloatArray:
    """The same between every two clients, for the effects on and of one label, (K, K).

    With the effect itself at its best value, the log likelihood of signs s is, up to a constant,
    `½ (Σ_k s_k w_k v_k)² / Σ_k w_k`, so two clients share `w_k w_l / Σ w` and not more.
    """
    C = np.zeros((len(v), len(v)))
    for x, w in ((v[:, :, j], weight[:, :, j]), (v[:, j], weight[:, j])):
        turned = x * sign
        both = w[:, None] * w / np.maximum(w.sum(axis=0), 1e-300)
        J = both * turned[:, None] * turned
        C += np.clip(J, -MOST_OF_PAIR, MOST_OF_PAIR).sum(axis=2)
    np.fill_diagonal(C, 0.0)
    return C


def _aligned(J: FloatArray, field: FloatArray) -> FloatArray:
    """Signs with nearly the best `½ Σ J s s + Σ field s`, by the best single changes."""
    sign = _joined(J, field)
    for _ in range(10 * len(J)):
        gain = -2.0 * sign * (J @ sign + field)
        best = int(gain.argmax())
        if not gain[best] > 0:
            break
        sign[best] *= -1.0
    return sign


def _joined(J: FloatArray, field: FloatArray) -> FloatArray:
    """Signs that follow the strongest pairs first, and the field as groups."""
    group, sign = np.arange(len(J)), np.ones(len(J))
    a, b = np.nonzero(np.triu(J, 1))
    for e in np.argsort(-np.abs(J[a, b]), kind="stable"):
        i, j = a[e], b[e]
        if group[i] != group[j]:
            mine = group == group[j]
            sign[mine] *= 1.0 if sign[i] * sign[j] * J[i, j] >= 0 else -1.0
            group[mine] = group[i]
    for g in np.unique(group):
        mine = group == g
        sign[mine] *= 1.0 if (field * sign)[mine].sum() >= 0 else -1.0
    return sign


def open_signs(value: FloatArray, error: FloatArray, here: BoolArray, moved: BoolArray) -> IntArray:
    """Which signs of each client's labels fit together.

    Parameters
    ----------
    value, error : array, shape (n_clients, p, p)
        In the directions of `directions`.
    here, moved : array of bool, shape (n_clients, p)
        Labels that a client reads, and those among them whose direction a shift shows.

    Returns
    -------
    array of int, shape (n_clients, p)
        0 where the sign is determined. The sign of an effect of j on i at client k is determined if
        the numbers of (k, i) and (k, j) are equal: both signs are open, but not their product.
    """
    group = np.where(here & ~moved, 1 + np.arange(here.size).reshape(here.shape), 0)
    clear = np.asarray(_clear(value, error) > 0)
    _choose_directions(group, clear, here, np.asarray((moved & here).any(axis=0)))
    shared, before = np.argwhere(clear.sum(axis=0) > 1).tolist(), np.zeros(0)
    while not np.array_equal(before, group):
        before = group.copy()
        for i, j in shared:
            clients = np.flatnonzero(clear[:, i, j])
            if (group[clients, i] == group[clients, j]).any():
                for k in clients:
                    _join(group[k], i, j)
    return group


def _choose_directions(
    group: IntArray, clear: BoolArray, here: BoolArray, oriented: BoolArray
) -> None:
    """Choose one direction for every label that no intervention orients.

    The choice makes the signs of effects determined: as many as there are labels to orient, in a
    forest over the labels, whose root is an oriented label or a direction of its own.
    """
    tree = np.where(oriented, -1, np.arange(len(oriented)))
    order = np.argsort(-clear.sum(axis=(1, 2)), kind="stable").tolist()
    for k in order:
        for i, j in np.argwhere(clear[k]).tolist():
            if tree[i] != tree[j]:
                _join(group[k], i, j)
                _join(tree, i, j)
    for i in range(len(oriented)):
        own = [k for k in order if here[k, i]]
        if tree[i] == i and own:
            group[own[0]][group[own[0]] == group[own[0], i]] = 0


def _join(group: IntArray, i: int, j: int) -> None:
    """Give the groups of i and j the lower number of the two."""
    low, high = sorted((group[i], group[j]))
    group[group == high] = low
