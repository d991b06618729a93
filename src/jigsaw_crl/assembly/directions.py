"""The direction of every latent at every client, and where the data leave it open.

A latent is known up to its sign. It counts as growing in the direction in which a sensor rises that
a user named for it (`Effects.up`); if none is named, in that in which its intervention moved it. A
site that names none is turned first if the shifts of those that name one went down. Where no shift
shows, the sign of label i at client k, s_ki, is arbitrary, and only effects that two clients both
see say how their signs fit together: if k and l both have the effect of j on i, and it is clearly
not zero, then `s_ki s_kj s_li s_lj` is the product of the two signs they find. With signs as bits
these are linear equations over {0, 1}. One direction per label may be chosen freely. What the
equations and these choices leave open is arbitrary: an effect whose sign depends on it has a size
and no sign (`open_signs`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray, FloatArray

__all__ = ["ROUNDING", "directions", "open_signs", "precision"]

# Half the log-odds, before the data, that two interventions on a label move it the same way.
SAME_WAY = 4.0
# One pair counts at most so much: a false effect does not turn the labels of a client.
MOST_OF_PAIR = 8.0
# Half the log-odds from which a pair settles how the signs of two clients fit together.
SETTLES = 4.0
# Rounding of exact moments.
ROUNDING = 1e-6

Masks = npt.NDArray[np.object_]


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
    v, weight = np.nan_to_num(value), np.where(has, np.minimum(precision(error), 1e8), 0.0)
    # The signs of effects that may be zero are noise, which adds up over many pairs.
    weight = np.where(v**2 * weight > 2 * SETTLES, weight, 0.0)
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
    """Signs with nearly the best `½ Σ J s s + Σ field s`: the best single changes, two starts."""
    found = []
    for sign in (_joined(J, field), np.ones(len(J))):
        for _ in range(10 * len(J)):
            gain = -2.0 * sign * (J @ sign + field)
            best = int(gain.argmax())
            if not gain[best] > 0:
                break
            sign[best] *= -1.0
        found.append(sign)
    return max(found, key=lambda s: float(s @ J @ s / 2 + field @ s))


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


def open_signs(
    value: FloatArray, error: FloatArray, here: BoolArray, moved: BoolArray
) -> Masks | None:
    """What is open about the sign of each client's labels; None if nothing is.

    Parameters
    ----------
    value, error : array, shape (n_clients, p, p)
        In the directions of `directions`.
    here, moved : array of bool, shape (n_clients, p)
        Labels that a client reads, and those among them whose direction a shift shows.

    Returns
    -------
    array of int, shape (n_clients, p)
        Bits, one for each independent sign that is open. The sign of an effect of j on i at client
        k is determined if the masks of (k, i) and (k, j) are equal, and two clients agree about it
        if the exclusive or of these masks is the same at both.
    """
    free = np.argwhere(here & ~moved).tolist()
    if not free:
        return None
    bit: Masks = np.zeros(here.shape, dtype=object)
    for number, (k, i) in enumerate(free):
        bit[k, i] = 1 << number
    weight = np.where(np.isnan(value), 0.0, np.minimum(precision(error), 1e8))
    clear, equations = np.nan_to_num(value) ** 2 * weight, dict[int, int]()
    for i, j in np.argwhere((clear > SETTLES).sum(axis=0) > 1).tolist():
        k = int(clear[:, i, j].argmax())
        both = weight[k, i, j] * weight[:, i, j]
        both = both / np.maximum(weight[k, i, j] + weight[:, i, j], 1e-300)
        said = both * np.abs(np.nan_to_num(value[:, i, j] * value[k, i, j]))
        for other in np.flatnonzero(said > SETTLES).tolist():
            _add(equations, bit[k, i] ^ bit[k, j] ^ bit[other, i] ^ bit[other, j])
    oriented = np.asarray((moved & here).any(axis=0))
    _choose_directions(equations, bit, clear > 2 * SETTLES, here, oriented)
    for k, i in free:
        bit[k, i] = _rest(equations, bit[k, i])
    return bit if bit.any() else None


def _choose_directions(
    equations: dict[int, int], bit: Masks, clear: BoolArray, here: BoolArray, oriented: BoolArray
) -> None:
    """Choose one direction for every label that no intervention orients.

    The choice makes the signs of effects determined: as many as there are labels to orient, in a
    forest over the labels, whose root is an oriented label or a direction of its own.
    """
    group = np.where(oriented, -1, np.arange(len(oriented)))
    order = np.argsort(-clear.sum(axis=(1, 2)), kind="stable").tolist()
    for k in order:
        for i, j in np.argwhere(clear[k]).tolist():
            if group[i] != group[j]:
                _add(equations, bit[k, i] ^ bit[k, j])
                low, high = sorted((group[i], group[j]))
                group[group == high] = low
    for i in range(len(oriented)):
        own = [k for k in order if here[k, i]]
        if group[i] == i and own:
            _add(equations, bit[own[0], i])


def _rest(equations: dict[int, int], bits: int) -> int:
    """What equations over {0, 1}, by their first bit, leave open of a sum of unknowns."""
    left = 0
    while bits:
        top = bits.bit_length() - 1
        row = equations.get(top)
        left |= 1 << top if row is None else 0
        bits ^= 1 << top if row is None else row
    return left


def _add(equations: dict[int, int], bits: int) -> None:
    """Add the equation that the sum of these unknowns is known."""
    if bits := _rest(equations, bits):
        equations[bits.bit_length() - 1] = bits
