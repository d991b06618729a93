"""Effects of all clients together: one number for every ordered pair, with its error.

Under hard interventions the total effect of a on d is the same number at every client (T8), so that
clients are estimates of one quantity. For each pair:

- *Direction.* A latent counts as growing in the direction in which its intervention moved it, or in
  which a sensor rises that a user named for it. A client whose intervention shows no shift, or
  moved it the other way, is turned around so that its effects agree with those of the others; the
  second case is noted. Where the data leave open which way it must be turned, the effect has a size
  and no sign (`directions`).
- *Sites that stand apart.* With three or more sites of a pair, let z be the distance of a site's
  effect from the median of all, in standard errors. A site is set aside for one pair if |z| exceeds
  `APART` there, and for all pairs if the mean of `min(z², CAP)` over its pairs is too large for a
  site that measures the same effects as the others. Effects of one label share the error of its
  line, so that the mean is taken for that of as many independent z² as the site has labels. If a
  third of the sites or more would go, none does: then the sites disagree, which is another finding.
- *Pooling.* Inverse variance. No site has more than twice its share of the weight, or half of it,
  however small its error is said to be, and no error is smaller than the rows allow.
  `Q = Σ w (E − Ê)²` tests whether sites agree; where they do not (p < `UNEQUAL`), the spread
  between sites joins the error (random effects, DerSimonian and Laird).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, chdtri, ndtri

from jigsaw_crl.assembly.directions import ROUNDING, directions, open_signs, precision
from jigsaw_crl.assembly.panel import Panel, Use
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.evidence.effects import INTERVAL, Sizes

IntMatrix = npt.NDArray[np.int32]

# One-sided 95 % point of the normal distribution.
ONE_SIDED = float(ndtri(0.95))
# Probability of such a disagreement by chance below which sites count as different.
UNEQUAL = 0.01
# Probability, over all pairs of a study, below which sites' effects contradict "hard".
NOT_ALL_HARD = 1e-3
# Errors from the median beyond which a site is set aside for a pair: 1 in 150,000 by chance.
APART = 4.5
# Probability, by chance, of the mean of min(z², CAP) from which a site is set aside. Sites are part
# of the median, which makes it smaller: of 439 sound ones of simulated studies, it was 0.6.
BY_CHANCE, CAP = 1 / 500, 16.0
# It must differ by more than two errors in MANY pairs, since one wrong effect costs a site that
# effect, and be UNUSUAL times as far from the others as a typical site.
MANY, UNUSUAL = 3, 2.0
_SOFT = (
    "interventions are said to be hard at other clients and not at {}: if they are hard there too, "
    "say so, and effects there count"
)
# Share of the sites up to which they can be set aside.
MINORITY = 1 / 3

# Of `Result.effects`, the columns of numbers.
COLUMNS = ("total", "standard_error", "low", "high", "sites", "heterogeneity_p")


@dataclass(frozen=True, eq=False)
class PooledEffects:
    """Effects of all clients together, rows the cause, columns the effect, shape (p, p)."""

    labels: tuple[str, ...]
    clients: tuple[str, ...]
    # NaN where no client says anything, and where the sign of the effect is not determined.
    estimate: FloatArray
    error: FloatArray
    # Size of the effects whose sign is not determined; NaN elsewhere.
    unsigned: FloatArray
    # Clients that the estimate rests on.
    sites: IntMatrix
    # Probability of a disagreement between sites as large as theirs by chance; NaN with one site.
    heterogeneity: FloatArray
    # What every client says, in the common direction of every label, its error, and what does not
    # count of it, shape (n_clients, p, p) each; NaN where it says nothing.
    by_site: FloatArray
    site_error: FloatArray
    set_aside: BoolArray
    # Clients that are set aside in all pairs: in how many they stand apart, and of how many.
    apart: Mapping[str, tuple[int, int]]
    # Labels whose direction is that of an intervention or of a named sensor; that of others is
    # arbitrary, shape (p,).
    oriented: BoolArray
    # −1 for labels of a client that were turned, else 1, shape (n_clients, p).
    direction: FloatArray
    notes: tuple[str, ...] = ()

    @property
    def known(self) -> BoolArray:
        """Pairs with an estimate."""
        return np.asarray(~np.isnan(self.estimate))

    def at(self, a: int | IntArray, d: int | IntArray) -> dict[str, FloatArray]:
        """What is known of some pairs (positions), by the names of `COLUMNS`."""
        value, error = self.estimate[a, d], self.error[a, d]
        low, high = value - INTERVAL * error, value + INTERVAL * error
        found = value, error, low, high, self.sites[a, d], self.heterogeneity[a, d]
        return dict(zip(COLUMNS, found, strict=True))


def pool_effects(panel: Panel, use: Use, *, quantity: str = "total") -> PooledEffects | None:
    """Pool the effects of all clients that count; None if no client has any.

    Clients that are trusted less than half are set aside; of several that sent the same evidence
    all but the first are left out.

    Parameters
    ----------
    panel : Panel
    use : Use
    quantity : {"total", "applied"}
        Total effects, or what interventions did as they were applied.
    """
    if all(fragment.hard is None for fragment in panel.fragments):
        return None
    names = tuple(f.client for f in panel.fragments)
    value, error, moved, hard, up = _tables(panel, use, "total")
    claimed: BoolArray = np.asarray(hard.any(axis=0))
    soft = [
        f.client
        for f in panel.fragments
        if f.hard is None and any(claimed[panel.position[label]] for label in f.labels)
    ]
    # Sites that name no sensor, where the interventions of those that do moved the label down.
    down = (up * moved).sum(axis=0) < 0
    first = np.where(down & moved & (up == 0), -1.0, 1.0)
    value = value * first[:, :, None] * first[:, None, :]
    moved, named = moved | (up != 0), up != 0
    sign, turned = directions(value, error, moved, named)
    pairs = sign[:, :, None] * sign[:, None, :]
    many = sites_apart(value * pairs, error)
    outside = ~use.trusted
    outside[list(many)] = True
    inside = np.where(outside[:, None, None], np.nan, value)
    if outside.any():
        inner = ~outside[:, None]
        again, turned = directions(inside, error, moved & inner, named & inner)
        sign = np.where(outside[:, None], sign, again)
        pairs = sign[:, :, None] * sign[:, None, :]
    groups = open_signs(inside * pairs, error, hard & ~outside[:, None], moved)
    if quantity == "applied":
        value, error, *_ = _tables(panel, use, quantity)
        pairs = np.broadcast_to((sign * first)[:, None, :], value.shape)
    if np.isnan(value).all():
        return None
    value = value * pairs
    aside = outside[:, None, None] & ~np.isnan(value)
    aside |= _pairs_apart(np.where(aside, np.nan, value), error)
    used = np.where(aside, np.nan, value)
    used, unsure = _with_one_sign(used, error, groups, of_cause=quantity == "total")
    estimate, deviation, chance = _combine(used, error)
    estimate, deviation, unsigned = _without_sign(estimate, deviation, unsure)
    pooled = PooledEffects(
        labels=panel.labels,
        clients=names,
        estimate=estimate,
        error=deviation,
        unsigned=unsigned,
        sites=(~np.isnan(used)).sum(axis=0).astype(np.int32),
        heterogeneity=chance,
        by_site=value,
        site_error=error,
        set_aside=aside,
        apart={names[k]: counts for k, counts in many.items()},
        oriented=np.asarray(moved.any(axis=0)),
        direction=sign * first,
    )
    turned = turned if quantity == "total" else []
    notes = [_SOFT.format(few(soft))] if soft else []
    about = _notes(pooled, turned, aside & ~outside[:, None, None])
    return replace(pooled, notes=(*about, *notes))


def _tables(
    panel: Panel, use: Use, quantity: str
) -> tuple[FloatArray, FloatArray, BoolArray, BoolArray, FloatArray]:
    """What every client says, (n_clients, p, p) twice; and of labels, moved, hard and up."""
    p = len(panel.labels)
    shape = (len(panel.fragments), p, p)
    value, error = np.full(shape, np.nan), np.full(shape, np.nan)
    moved, hard = np.zeros((2, *shape[:2]), dtype=bool)
    up = np.zeros(shape[:2])
    for k, fragment in enumerate(panel.fragments):
        if fragment.hard is None or use.with_copies(k)[0] != k:
            continue
        members = np.array([panel.position[label] for label in fragment.labels])
        claimed = fragment.hard.without(np.array([x in use.soft for x in fragment.labels]))
        sizes: Sizes = getattr(claimed, quantity)
        grid = np.ix_(members, members)
        # No error is smaller than that of a mean of all rows, in standard deviations. The least of
        # 48 simulated sites was 3.0 times that.
        floor = sum(fragment.n_samples.values()) ** -0.5 if fragment.n_samples else 0.0
        value[k][grid], error[k][grid] = sizes.value, np.maximum(sizes.error, floor)
        moved[k, members] = np.array(claimed.moved, dtype=bool)
        hard[k, members] = np.array(claimed.hard)
        up[k, members] = np.array(claimed.up or 0)
    return value, error, moved, hard, up


def sites_apart(value: FloatArray, error: FloatArray) -> dict[int, tuple[int, int]]:
    """Sites that stand apart from the others in many pairs: in how many, of how many, by number."""
    found: dict[int, tuple[int, int]] = {}
    present = int((~np.isnan(value)).any(axis=(1, 2)).sum())
    while True:
        rest = value.copy()
        rest[list(found)] = np.nan
        several, z = _distances(rest, error)
        count, far = (~np.isnan(z)).sum(axis=1), (z > 2.0).sum(axis=1)
        score = np.nansum(np.minimum(z**2, CAP), axis=1) / np.maximum(count, 1)
        usual = np.median(score[count > 0]) if count.any() else 0.0
        told = several & ~np.isnan(rest)
        labels = np.maximum((told.any(axis=1) | told.any(axis=2)).sum(axis=1), 1)
        edge = chdtri(labels, BY_CHANCE) / labels
        clear = score > np.maximum(edge, UNUSUAL * float(usual))
        out = np.flatnonzero(clear & (far >= MANY)).tolist()
        # The rest is judged again without them.
        found |= {k: (int(far[k]), int(count[k])) for k in out}
        if not out:
            return found
        if len(found) >= MINORITY * present:
            return {}


def _pairs_apart(value: FloatArray, error: FloatArray) -> BoolArray:
    """Pairs in which a site stands apart from the median, shape (n_clients, p, p)."""
    several, z = _distances(value, error)
    aside, far = np.zeros(value.shape, dtype=bool), z > APART
    # Where half or more stand apart, nobody does: the sites disagree, and the test says so.
    far[:, 2 * far.sum(axis=0) >= (~np.isnan(z)).sum(axis=0)] = False
    aside[:, several] = far
    return aside


def _distances(value: FloatArray, error: FloatArray) -> tuple[BoolArray, FloatArray]:
    """Pairs with three or more sites (p, p), and z there, shape (n_clients, n_pairs)."""
    count = (~np.isnan(value)).sum(axis=0)
    several = count >= 3
    if not several.any():
        return several, np.full((len(value), 0), np.nan)
    v, e = value[:, several], np.maximum(error[:, several], ROUNDING)
    e = np.where(np.isnan(v), np.nan, e)
    # The median of k estimates has about 1.25² / k of their variance.
    of_middle = 1.5625 * np.nanmedian(e**2, axis=0) / count[several]
    return several, np.abs(v - np.nanmedian(v, axis=0)) / np.sqrt(e**2 + of_middle)


def _with_one_sign(
    value: FloatArray, error: FloatArray, groups: IntArray, *, of_cause: bool
) -> tuple[FloatArray, BoolArray]:
    """Effects of clients whose signs fit together, and the pairs whose common sign is open.

    Of a pair, the clients whose sign is determined are kept. If there are none, the one with the
    smallest error.
    """
    has = ~np.isnan(value)
    free = has & (groups[:, None, :] != (groups[:, :, None] if of_cause else 0))
    unsure = free.any(axis=0) & ~(has & ~free).any(axis=0)
    best = np.where(has, error, np.inf).argmin(axis=0)
    alone = np.arange(len(value))[:, None, None] == best
    return np.where(free & ~(unsure & alone), np.nan, value), unsure


def _without_sign(
    estimate: FloatArray, error: FloatArray, unsure: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Effects whose sign is open: 0 with both signs in the interval, or a size and no estimate."""
    size = np.abs(estimate)
    may_be_zero = unsure & (size <= np.maximum(INTERVAL * error, ROUNDING))
    exact = may_be_zero & (error == 0)
    estimate = np.where(may_be_zero, 0.0, np.where(unsure, np.nan, estimate))
    wide = np.where(exact, 0.0, error + size / ONE_SIDED)
    deviation = np.where(may_be_zero, wide, np.where(unsure, np.nan, error))
    return estimate, deviation, np.where(unsure & ~may_be_zero, size, np.nan)


def _combine(value: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Pooled estimate, its error, and the probability of the disagreement by chance."""
    has = ~np.isnan(value)
    count = has.sum(axis=0)
    v = np.where(has, value, 0.0)
    w = np.where(has, precision(error), 0.0)
    variance = np.where(has, np.maximum(error, ROUNDING) ** 2, 0.0)
    mean, _ = _weighted(v, w, variance, count)
    Q = (w * (v - mean) ** 2 * has).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = np.where(count > 1, chdtrc(np.maximum(count - 1, 1), Q), np.nan)
        total = w.sum(axis=0)
        spread = (Q - (count - 1)) / (total - (w**2).sum(axis=0) / total)
    between = np.where(count > 1, np.maximum(np.nan_to_num(spread, posinf=0.0), 0.0), 0.0)
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
    """Weighted mean and its error; of three or more, no site has more than twice its share."""
    total = w.sum(axis=0)
    share = np.divide(w, total, out=np.zeros_like(w), where=total > 0)
    most = np.where(count > 2, np.minimum(0.5, 2.0 / np.maximum(count, 1)), 1.0)
    # What some have too much goes to the others, who may then have too much themselves.
    for _ in range(int(count.max(initial=0))):
        full = share >= most
        over, rest = np.maximum(share - most, 0.0).sum(axis=0), np.where(full, 0.0, share)
        if not (over > 1e-12).any():
            break
        left = rest.sum(axis=0)
        more = np.divide(over, left, out=np.zeros_like(over), where=left > 0)
        share = np.minimum(share, most) + rest * more
    mean = (share * v).sum(axis=0)
    return mean, np.sqrt((share**2 * variance).sum(axis=0))


def _notes(
    effects: PooledEffects, turned: list[tuple[int, int]], aside: BoolArray
) -> Iterator[str]:
    """What is said about directions, sites that are set aside, and effects without a sign."""
    labels, names, value = effects.labels, effects.clients, effects.by_site
    for j in sorted({j for _, j in turned}):
        who = [names[k] for k, label in turned if label == j]
        yield (
            f"the intervention on {labels[j]} seems to have moved it the other way at {few(who)} "
            "than at most clients; effects are given in the direction of most clients"
        )
    for site in effects.apart:
        yield f"{site} stands apart from the other clients in its effects; none of them is used"
    rest = np.where(aside, np.nan, value)
    for k in np.flatnonzero(aside.any(axis=(1, 2))):
        which = [
            f"{labels[a]} on {labels[d]} ({value[k, a, d]:.2f}, the others "
            f"{np.nanmedian(rest[:, a, d]):.2f})"
            for a, d in np.argwhere(aside[k])
        ]
        yield (
            f"{names[k]} stands apart from the others in {pluralise(len(which), 'effect')} and "
            f"is set aside there: {few(which, 3)}"
        )
    which = [
        f"{labels[a]} on {labels[d]} ({effects.unsigned[a, d]:.2f})"
        for a, d in np.argwhere(~np.isnan(effects.unsigned))
    ]
    if which:
        yield (
            f"the sign of {pluralise(len(which), 'effect')} is not determined, because no shift "
            "shows the direction of a label and no effect that several clients share does: "
            f"{few(which, 3)}; sizes in brackets"
        )


def labels_not_hard(effects: PooledEffects) -> dict[str, float]:
    """Labels whose interventions cannot all have been hard, by how surely sites differ.

    The effect of a on d is one number if the intervention on d is hard. If the sites' effects on d
    differ beyond chance, whichever site is left out, the claim is wrong for d. The value is the
    smallest probability of such a difference, times the number of pairs that were tested; of the
    sites that can be left out, the one that leaves least counts.
    """

    def least(chance: FloatArray) -> FloatArray:
        tested = ~np.isnan(chance)
        chance = np.where(tested, chance, 1.0) * max(int(tested.sum()), 1)
        return np.asarray(np.minimum(chance, 1.0).min(axis=0))

    found, errors = least(effects.heterogeneity), effects.site_error
    used = np.where(effects.set_aside, np.nan, effects.by_site)
    for k in np.flatnonzero(~np.isnan(used).all(axis=(1, 2))):
        doubted = found < NOT_ALL_HARD
        if not doubted.any():
            break
        rest = np.delete(used[:, :, doubted], k, axis=0)
        chance = _combine(rest, np.delete(errors[:, :, doubted], k, axis=0))[2]
        found[doubted] = np.maximum(found[doubted], least(chance))
    return {
        label: float(value)
        for label, value in zip(effects.labels, found, strict=True)
        if value < NOT_ALL_HARD
    }
