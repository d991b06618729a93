"""Effects of all clients together: one number for every ordered pair, with its error.

Under hard interventions the total effect of a on d is the same number at every client (T8), so that
clients are estimates of one quantity. For each pair:

- *Direction.* A latent counts as growing in the direction in which its intervention moved it. A
  client whose intervention shows no shift, or moved it the other way, is turned around so that its
  effects agree with those of the others; the second case is noted.
- *Sites that stand apart.* With three or more sites, one whose effect lies more than `APART` errors
  from the median of all is set aside and noted.
- *Pooling.* Inverse variance. No site has more than half of the weight, however small its error is
  said to be. `Q = Σ w (E − Ê)²` tests whether sites agree; where they do not (p < `UNEQUAL`), the
  spread between sites joins the error (random effects, DerSimonian and Laird).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from jigsaw_crl.assembly.panel import Panel
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.evidence.effects import Sizes

__all__ = ["PooledEffects", "SiteEffects", "labels_not_hard", "pool_effects"]

IntMatrix = npt.NDArray[np.int32]

# 95 % of a normal distribution.
INTERVAL = 1.959964
# Errors from the median beyond which a site is set aside: 1 in 150,000 by chance.
APART = 4.5
# Probability of such a disagreement by chance below which sites count as different.
UNEQUAL = 0.01
# Half the log-odds, before the data, that two interventions on a label move it the same way.
SAME_WAY = 10.0
# Half the log-odds of a pair's sign from which it may carry the sign of one label to another.
CLEAR_PAIR = 2.0
MOST_OF_PAIR = 8.0
# Rounds of the search for directions, and clients up to which all pairs of them are compared.
SWEEPS, MOST_CLIENTS = 6, 60
# Probability, over all pairs of a study, below which sites' effects contradict "hard".
NOT_ALL_HARD = 1e-3
# Pairs up to which every site that is set aside gets a note for each pair.
MOST_PAIRS = 5
# Rounding of exact moments.
ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class SiteEffects:
    """What every client says, shape (n_clients, p, p), rows the cause; NaN where it does not."""

    clients: tuple[str, ...]
    value: FloatArray
    error: FloatArray


@dataclass(frozen=True, eq=False)
class PooledEffects:
    """Effects of all clients together, rows the cause, columns the effect, shape (p, p).

    Parameters
    ----------
    labels : tuple of str
    estimate, error : array
        NaN where no client says anything.
    sites : array of int
        Clients that the estimate rests on.
    heterogeneity : array
        Probability of a disagreement between the sites as large as theirs by chance; NaN with one.
    set_aside : array of bool, shape (n_clients, p, p)
    by_site : SiteEffects
        In the common direction of every label.
    oriented : array of bool, shape (p,)
        Labels whose direction is that of an intervention; that of others is arbitrary.
    notes : tuple of str
    """

    labels: tuple[str, ...]
    estimate: FloatArray
    error: FloatArray
    sites: IntMatrix
    heterogeneity: FloatArray
    set_aside: BoolArray
    by_site: SiteEffects
    oriented: BoolArray
    notes: tuple[str, ...]

    @property
    def known(self) -> BoolArray:
        """Pairs with an estimate."""
        return np.asarray(~np.isnan(self.estimate))

    @property
    def low(self) -> FloatArray:
        """Lower end of the 95 % interval."""
        return np.asarray(self.estimate - INTERVAL * self.error)

    @property
    def high(self) -> FloatArray:
        """Upper end of the 95 % interval."""
        return np.asarray(self.estimate + INTERVAL * self.error)


def pool_effects(
    panel: Panel, *, quantity: str = "total", random_effects: bool = False
) -> PooledEffects | None:
    """Pool the effects of all clients; None if no client has any.

    Parameters
    ----------
    panel : Panel
    quantity : {"total", "applied"}
        Total effects, or what interventions did as they were applied.
    random_effects : bool
        The spread between sites joins the error of every pair, not only where they disagree.
    """
    p, names = len(panel.labels), tuple(f.client for f in panel.fragments)
    shape = (len(names), p, p)
    value, error = np.full(shape, np.nan), np.full(shape, np.nan)
    moved = np.zeros((len(names), p), dtype=bool)
    for k, fragment in enumerate(panel.fragments):
        if fragment.hard is None:
            continue
        members = np.array([panel.position[label] for label in fragment.labels])
        sizes: Sizes = getattr(fragment.hard, quantity)
        grid = np.ix_(members, members)
        value[k][grid], error[k][grid] = sizes.value, sizes.error
        moved[k, members] = np.array(fragment.hard.moved, dtype=bool)
    if np.isnan(value).all():
        return None
    notes: list[str] = []
    sign = np.ones((len(names), p))
    if quantity == "total":
        sign, turned = _directions(value, error, moved)
        value = value * sign[:, :, None] * sign[:, None, :]
        notes += _about_directions(panel.labels, names, turned)
    aside = _apart(value, error)
    notes += _about_sites(panel.labels, names, value, aside)
    used = np.where(aside, np.nan, value)
    estimate, deviation, chance = _combine(used, error, random_effects)
    return PooledEffects(
        labels=panel.labels,
        estimate=estimate,
        error=deviation,
        sites=(~np.isnan(used)).sum(axis=0).astype(np.int32),
        heterogeneity=chance,
        set_aside=aside,
        by_site=SiteEffects(names, value, error),
        oriented=np.asarray(moved.any(axis=0)),
        notes=tuple(notes),
    )


def _precision(error: FloatArray) -> FloatArray:
    """`1/error²`, 0 where there is no estimate."""
    return np.asarray(np.nan_to_num(1.0 / np.maximum(error, ROUNDING) ** 2))


def _directions(
    value: FloatArray, error: FloatArray, moved: BoolArray
) -> tuple[FloatArray, list[tuple[int, int]]]:
    """Sign of every client's labels (n_clients, p), and those turned against their own shift.

    A client's signs s maximise the agreement `Σ_ij J_ij s_i s_j + Σ_i b_i s_i` with the others: J
    is the weighted product of its effect and theirs, b the belief that interventions on one label
    move it one way.
    """
    K, p = moved.shape
    sign = np.ones((K, p))
    has = ~np.isnan(value)
    v, weight = np.nan_to_num(value), np.where(has, np.minimum(_precision(error), 1e8), 0.0)
    here = np.asarray((has | np.swapaxes(has, 1, 2)).any(axis=2))
    belief = np.where(moved, SAME_WAY, 0.0)
    # Clients that say most first: the others follow them.
    order = np.argsort(-(weight * v**2).sum(axis=(1, 2)), kind="stable")
    for sweep in range(SWEEPS):
        before = sign.copy()
        for position, k in enumerate(order):
            others = order[:position] if sweep == 0 else np.delete(order, position)
            if len(others):
                S = sign[others, :, None] * sign[others, None, :]
                J = _agreement(v[k], weight[k], v[others] * S, weight[others])
                sign[k] = _aligned(J, belief[k])
        # Clients may agree in two camps about one label: all of them together, label by label.
        for j in range(p if K <= MOST_CLIENTS else 0):
            mine = np.flatnonzero(here[:, j])
            if len(mine) > 1:
                C = _camps(v[mine], weight[mine], sign[mine], j)
                sign[mine, j] = _aligned(C, belief[mine, j])
        if sweep and np.array_equal(sign, before):
            break
    # The direction of a label is that in which most of its interventions moved it.
    moved = moved & here
    against = ((sign < 0) & moved).sum(axis=0) * 2 > moved.sum(axis=0)
    sign[:, against] *= -1.0
    turned = [(k, int(j)) for k in range(K) for j in np.flatnonzero((sign[k] < 0) & moved[k])]
    return sign, turned


def _agreement(
    own: FloatArray, weight: FloatArray, others: FloatArray, weights: FloatArray
) -> FloatArray:
    """J: log likelihood of equal signs of a pair at a client and at the others, halved, (p, p)."""
    total = weights.sum(axis=0)
    mean = np.divide(
        (weights * others).sum(axis=0), total, out=np.zeros_like(total), where=total > 0
    )
    seen = (weight > 0) & (total > 0)
    both = np.divide(weight * total, weight + total, out=np.zeros_like(total), where=seen)
    # One pair counts at most so much: a false effect does not turn the labels of a client.
    J = np.clip(both * own * mean, -MOST_OF_PAIR, MOST_OF_PAIR)
    return np.asarray(J + J.T)


def _camps(v: FloatArray, weight: FloatArray, sign: FloatArray, j: int) -> FloatArray:
    """The same between every two clients, for the effects on and of one label, (K, K)."""
    C = np.zeros((len(v), len(v)))
    for x, w in ((v[:, :, j], weight[:, :, j]), (v[:, j], weight[:, j])):
        turned = x * sign
        seen = (w > 0).astype(float)
        both = w[:, None] * w / np.maximum(w[:, None] + w, 1e-300)
        J = both * turned[:, None] * turned * (seen[:, None] * seen)
        C += np.clip(J, -MOST_OF_PAIR, MOST_OF_PAIR).sum(axis=2)
    np.fill_diagonal(C, 0.0)
    return C


def _aligned(J: FloatArray, field: FloatArray) -> FloatArray:
    """Signs with nearly the best `½ Σ J s s + Σ field s`: strongest pairs first, then single."""
    p = len(J)
    group, sign = np.arange(p), np.ones(p)
    a, b = np.triu_indices(p, 1)
    strength = np.abs(J[a, b])
    for e in np.argsort(-strength, kind="stable"):
        if strength[e] < CLEAR_PAIR:
            break
        i, j = a[e], b[e]
        if group[i] == group[j]:
            continue
        mine = group == group[j]
        if sign[i] * sign[j] * J[i, j] < 0:
            sign[mine] *= -1.0
        group[mine] = group[i]
    for g in np.unique(group):
        mine = group == g
        if float((field * sign)[mine].sum()) < 0:
            sign[mine] *= -1.0
    for _ in range(10 * p):
        gain = -2.0 * sign * (J @ sign + field)
        best = int(gain.argmax())
        if not gain[best] > 0:
            break
        sign[best] *= -1.0
    return sign


def _apart(value: FloatArray, error: FloatArray) -> BoolArray:
    """Sites that stand apart from the median of three or more, shape (n_clients, p, p)."""
    count = (~np.isnan(value)).sum(axis=0)
    several = count >= 3
    aside = np.zeros(value.shape, dtype=bool)
    if not several.any():
        return aside
    v, e = value[:, several], np.maximum(error[:, several], ROUNDING)
    middle = np.nanmedian(v, axis=0)
    # The median of k estimates has about 1.25² / k of their variance.
    of_middle = 1.5625 * np.nanmedian(e**2, axis=0) / count[several]
    with np.errstate(invalid="ignore"):
        far = np.abs(v - middle) > APART * np.sqrt(e**2 + of_middle)
    # Where half or more stand apart, nobody does: the sites disagree, and the test says so.
    far[:, 2 * far.sum(axis=0) >= count[several]] = False
    aside[:, several] = far
    return aside


def _combine(
    value: FloatArray, error: FloatArray, random_effects: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Pooled estimate, its error, and the probability of the disagreement by chance."""
    has = ~np.isnan(value)
    count = has.sum(axis=0)
    v = np.where(has, value, 0.0)
    w = np.where(has, _precision(error), 0.0)
    variance = np.where(has, np.maximum(error, ROUNDING) ** 2, 0.0)
    mean, _ = _weighted(v, w, variance, count)
    Q = (w * (v - mean) ** 2 * has).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = np.where(count > 1, chi2.sf(Q, np.maximum(count - 1, 1)), np.nan)
        total = w.sum(axis=0)
        spread = (Q - (count - 1)) / (total - (w**2).sum(axis=0) / total)
    between = np.where(count > 1, np.maximum(np.nan_to_num(spread, posinf=0.0), 0.0), 0.0)
    if not random_effects:
        between = np.where(chance < UNEQUAL, between, 0.0)
    variance = np.where(has, variance + between, 0.0)
    mean, deviation = _weighted(
        v, np.where(has, 1.0 / np.where(has, variance, 1.0), 0.0), variance, count
    )
    exact = np.where(has, error, 0.0).max(axis=0) == 0.0
    deviation = np.where(exact & (between == 0), 0.0, deviation)
    none = count == 0
    mean[none], deviation[none] = np.nan, np.nan
    return mean, deviation, chance


def _weighted(
    v: FloatArray, w: FloatArray, variance: FloatArray, count: IntMatrix
) -> tuple[FloatArray, FloatArray]:
    """Weighted mean and its error; no site has more than half of the weight of several."""
    total = w.sum(axis=0)
    share = np.divide(w, total, out=np.zeros_like(w), where=total > 0)
    most = np.where(count > 2, 0.5, 1.0)
    over = np.maximum(share - most, 0.0).sum(axis=0)
    rest = np.where(share > most, 0.0, share)
    left = rest.sum(axis=0)
    share = np.minimum(share, most) + rest * np.divide(
        over, left, out=np.zeros_like(over), where=left > 0
    )
    mean = (share * v).sum(axis=0)
    return mean, np.sqrt((share**2 * variance).sum(axis=0))


def _about_directions(
    labels: tuple[str, ...], names: tuple[str, ...], turned: list[tuple[int, int]]
) -> Iterable[str]:
    """Notes on the sites whose interventions went the other way, one a label."""
    for j in sorted({j for _, j in turned}):
        who = [names[k] for k, label in turned if label == j]
        yield (
            f"the intervention on {labels[j]} seems to have moved it the other way at {few(who)} "
            "than at most sites; effects are given in the direction of most sites"
        )


def _about_sites(
    labels: tuple[str, ...], names: tuple[str, ...], value: FloatArray, aside: BoolArray
) -> Iterable[str]:
    """Notes on the sites that were set aside, one a pair, or one a site if there are many."""
    pairs = np.argwhere(aside.any(axis=0))
    if len(pairs) > MOST_PAIRS:
        for k in np.flatnonzero(aside.any(axis=(1, 2))):
            which = [f"{labels[a]} on {labels[d]}" for a, d in np.argwhere(aside[k])]
            yield (
                f"{names[k]} stands apart from the others in {pluralise(len(which), 'effect')} and "
                f"is set aside there: {few(which, 3)}"
            )
        return
    for a, d in pairs:
        own = aside[:, a, d]
        rest = float(np.nanmedian(value[~own, a, d]))
        who = ", ".join(f"{names[k]} finds {value[k, a, d]:.2f}" for k in np.flatnonzero(own))
        yield (f"effect of {labels[a]} on {labels[d]}: {who}, the others {rest:.2f}; set aside")


def labels_not_hard(effects: PooledEffects | None) -> dict[str, float]:
    """Labels whose interventions cannot all have been hard, by how surely sites differ.

    The effect of a on d is one number if the intervention on d is hard. If the sites' effects on d
    differ beyond chance, and no single site is the reason, the claim is wrong for d. The value is
    the smallest probability of such a difference, times the number of pairs that were tested.
    """
    if effects is None:
        return {}
    tested = effects.sites > 1
    chance = np.where(tested, np.nan_to_num(effects.heterogeneity, nan=1.0), 1.0)
    chance = np.minimum(chance * max(int(tested.sum()), 1), 1.0)
    least = chance.min(axis=0)
    return {
        label: float(value)
        for label, value in zip(effects.labels, least, strict=True)
        if value < NOT_ALL_HARD
    }
