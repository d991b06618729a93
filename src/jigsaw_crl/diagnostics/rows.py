"""Checks of rows: are they independent, whole, alike over time, and how heavy are their tails?

How many independent Gaussian rows they count for is measured when the client is built (see
`client/counting.py`) and used in every error. These findings say so, and name the cause: serial
dependence makes means vary more than the rows suggest, tails do not. Only moments are at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import numpy as np
from scipy.special import chdtri, ndtr, ndtri

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.nulls import CLEAR_ERRORS, FALSE_ALARM, LENIENT
from jigsaw_crl.base.text import few, number, percent, pluralise
from jigsaw_crl.client.client import Client
from jigsaw_crl.diagnostics.findings import NOTICEABLE, finding
from jigsaw_crl.moments.regime import MOST_PARTS, Moments, coarsened

# Beyond a kurtosis κ of 9 the error of a variance is so many times what Gaussian rows give, with
# (κ − 1)/2 = 2², and probabilities computed for Gaussian rows are no longer to be trusted. Laplace
# rows have 6.
HEAVY = NOTICEABLE**2 * 2 + 1
# Fewer rows than this carry a variance if a single row has more than four fifths of it: a reading
# that went wrong. In a system of products with heavy tails the largest row has up to two thirds.
ALONE = 1.5
# Numbers that loggers write for a reading that is missing, and how near an estimate must come.
CODES = (-99_999, -9_999, -999, -99, 999, 9_999, 99_999, 999_999, 32_767, 65_535, -32_768)
CODE_OFF = 0.002
# Standard score from which tails are called light. The sample kurtosis of few rows is skewed to the
# other side, and fewer rows than this show no tails.
LIGHT_TAILS, TAIL_ROWS = -CLEAR_ERRORS, 100
# Standard errors from which a skewness is clear, and within which a kurtosis fits. Fewer rows than
# the last number leave room for other laws than a Gaussian that is cut off.
SKEWED, FITS, MANY_ROWS = 6.0, 4.0, 3_000
# Standard deviations by which neighbouring stretches must be more alike than distant ones.
TRENDING = 3.0


def kurtosis(moments: Moments) -> FloatArray:
    """Kurtosis of each feature: 0 for constant ones, and 3, that of Gaussian rows, if unknown."""
    variance = np.diagonal(moments.covariance)
    if moments.fourth is None:
        return np.full_like(variance, 3.0)
    zero = np.zeros_like(variance)
    return np.asarray(np.divide(moments.fourth, variance**2, out=zero, where=variance > 0))


def differences(control: Moments, m: Moments) -> tuple[FloatArray, FloatArray, FloatArray]:
    """How far each feature is from the control: its mean and its variance, in standard errors.

    And the ratio of its variances. Fourth moments show how far variances vary by chance. Infinite
    or NaN for a feature that does not vary in one of the two.
    """
    n0, n1 = (x.mean_rows for x in (control, m))
    v0, v1 = (np.diagonal(x.covariance) for x in (control, m))
    each = (control, n0), (m, n1)
    of_variance = sum(np.maximum(kurtosis(x) - 1.0, 0.5) / n for x, n in each)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Few rows may not vary at all in a feature that is rarely seen.
        t = np.abs(m.mean - control.mean) / np.sqrt(np.maximum(v0, v1) / n1 + v0 / n0)
        ratio = v1 / v0
        return t, np.abs(np.log(ratio)) / np.sqrt(of_variance), ratio


def check_heavy_tails(client: Client) -> Iterator[Finding]:
    """Findings about tails that make rows count for less, and about codes and outliers in them."""
    heavy = []
    for regime, m in client.named_regimes:
        own, rows = kurtosis(m), m.rows or 0
        k = int(np.argmax(own))
        value = float(own[k])
        # Latents have heavier tails than the features that mix them.
        counts = m.counted is not None and m.counted.mean < m.counted.covariance / NOTICEABLE
        least = 3 + CLEAR_ERRORS * np.sqrt(24 / max(rows, 1)) if counts else HEAVY
        # Of few Gaussian rows, one may have much of the variance, but not all of it.
        if value <= (least if rows >= TAIL_ROWS else 3 * HEAVY):
            continue
        spoilt = _missing_code(client, regime, m, k) or _outliers(client, regime, m, k)
        # How many Gaussian rows they count for.
        worth = 2 * rows / (value - 1) if m.counted is None else float(m.n or 0)
        if spoilt is not None:
            yield spoilt
        elif NOTICEABLE * worth < rows:
            heavy.append((worth / rows, regime, value, client.features[k], rows, worth))
    if heavy:
        # The regime that they cost most, and the names of the others.
        _, regime, value, feature, rows, worth = min(heavy, key=lambda tails: tails[0])
        also = few(map(repr, dict.fromkeys(x for _, x, *_ in heavy if x != regime)))
        words = {"feature": feature, "rows": rows, "worth": worth}
        words["more"] = f"; also in {also}" if also else ""
        yield finding("heavy-tails", value, HEAVY, regime=regime, **words)


def _missing_code(client: Client, regime: str, m: Moments, k: int) -> Finding | None:
    """A number that stands for missing readings, if the moments of feature k fit one.

    With a share e of the rows at a distance D from the others, which hardly spread beside it, the
    kurtosis is `1/(e (1 − e)) − 3`, the variance `e (1 − e) D²`, and the value `μ + (1 − e) D`.
    """
    assert m.third is not None
    assert m.fourth is not None
    product = 1.0 / (m.fourth[k] / m.covariance[k, k] ** 2 + 3.0)
    share = 0.5 - np.sqrt(max(0.25 - product, 0.0))
    apart = np.sign(m.third[k]) * np.sqrt(m.covariance[k, k] / product)
    value = float(m.mean[k] + (1.0 - share) * apart)
    code = min(CODES, key=lambda c: abs(value - c))
    # A code is written more than once; one large value is an outlier.
    if abs(value - code) > CODE_OFF * abs(code) or share * (m.rows or 0) < 1.5:
        return None
    return finding("missing-code", regime=regime, feature=client.features[k], code=code)


def _outliers(client: Client, regime: str, m: Moments, k: int) -> Finding | None:
    """The finding about rows that carry the variance of feature k, if they are few.

    They are `(Σx²)²/Σx⁴ = n/κ`, of Gaussian or Laplace rows never fewer than a share of 1/27. Where
    the rows were counted, tails that come from one latent alone leave `n/(1 + (f − 1)(p + 2)/3)`
    rows along it, with f the factor over all directions.
    """
    assert m.fourth is not None
    p, counted, rows = client.n_latent, m.counted, m.rows or 0
    carrying = rows * float(m.covariance[k, k] ** 2 / m.fourth[k])
    least = min(p + 1.0, rows / (3 * HEAVY))
    factor = 1.0 if counted is None else 1 + (counted.covariance - 1) * (p + 2) / 3
    told_by_counting = counted is not None and carrying > ALONE and rows > (p + 1) * factor
    if carrying >= least or told_by_counting:
        return None
    # Trimming needs a covariance of its own: see `moments/preparing.py`.
    what = "leave the feature out with --ignore, or transform it"
    if rows > 2 * client.n_features:
        what = "leave whole rows out with --trim 0.05 (trim=0.05), or transform the feature"
    words = {"feature": client.features[k], "what": what}
    return finding("outliers", carrying, least, regime=regime, **words)


def check_counts(client: Client) -> Iterator[Finding]:
    """Findings about rows that count for fewer: alike, of few groups, or with missing values.

    Serial dependence makes means vary more than covariances, `1 + 2 Σ r_l` against `1 + 2 Σ r_l²`;
    otherwise heavy tails are the better explanation.
    """
    alike, groups, gaps = list[tuple[float, str, Moments]](), dict[str, int](), []
    for where, m in client.named_regimes:
        if m.counted is not None and m.counted.mean > max(NOTICEABLE, m.counted.covariance):
            alike.append((m.counted.mean, where, m))
        # With fewer groups than parts, how much groups differ shows only roughly.
        if m.groups and m.groups < MOST_PARTS:
            groups[where] = m.groups
        if m.incomplete is not None and m.incomplete.gaps:
            gaps.append((m.incomplete, m.uncounted().n or 1, where))
    if alike:
        factor, where, m = max(alike, key=lambda item: item[0])
        rows, what = "rows that follow one another are alike", "Record for longer"
        if m.groups is not None:
            rows, what = "rows of one group are alike", "Record more groups"
        words = {"alike": rows, "what": what, "where": where, "rows": m.rows or 0, "n": m.n or 0}
        yield finding("dependent-rows", factor, NOTICEABLE, mean_rows=m.mean_rows, **words)
    if groups:
        fewest, named = float(min(groups.values())), few(map(repr, groups))
        cost = "how much groups differ is known only roughly, and errors may be too small"
        if fewest == 1:
            cost = "what belongs to the regime cannot be told from what belongs to its group"
        yield finding("few-groups", fewest, float(MOST_PARTS), named=named, cost=cost)
    if gaps:
        own, worth, where = max(gaps, key=lambda item: item[0].rows / item[1])
        words = {x: sum(getattr(one, x) for one, _, _ in gaps) for x in ("gaps", "rows")}
        words |= {"own": own.rows, "worth": worth, "of_means": own.rows / own.mean, "where": where}
        yield finding("missing-values", own.rows / worth, **words)


def check_covariates(client: Client) -> Iterator[Finding]:
    """Covariates that are not as the control's in some regime."""
    covariates = client.covariates
    if covariates is None or client.is_population:
        return
    own = np.arange(-len(covariates.names), 0)
    control, *regimes = (m.select(own) for m in covariates.moments)
    # Mean and variance of each covariate in every regime.
    edge = float(ndtri(1 - FALSE_ALARM / (4 * len(regimes))))
    moved: dict[str, dict[str, None]] = {}
    for (label, _), m in zip(client.named_regimes[1:], regimes, strict=True):
        t, z, _ = differences(control, m)
        for name, far in zip(covariates.names, np.fmax(t, z).tolist(), strict=True):
            if far > edge:
                moved.setdefault(label, {})[name] = None
    for label, names in moved.items():
        yield finding("covariate-differs", regime=label, named=few(map(repr, names)))


def check_light_tails(client: Client) -> list[Finding]:
    """A finding if the features have lighter tails than sums of Gaussian noises.

    A feature that is a sum of Gaussian noises has kurtosis 3, and more if the noises have heavy
    tails. Sensors and effects that saturate give less, and so does noise of bounded range. With ρ
    the correlations of the d features, the mean excess kurtosis of one regime has the variance
    `24/n · Σ_fg ρ_fg⁴ / d²` for Gaussian rows. The regimes' standard scores are added up.
    """
    if client.is_population or client.control.trimmed:
        return []
    excess, score = [], []
    for _, m in client.linear.named_regimes:
        if m.fourth is None or (m.n or 0) < TAIL_ROWS:
            continue
        n, variance = float(m.n or 0), np.diagonal(m.covariance)
        varies = variance > np.finfo(np.float64).eps * variance.max()
        spread = np.sqrt(variance[varies])
        correlation = m.covariance[np.ix_(varies, varies)] / np.outer(spread, spread)
        own = np.mean(kurtosis(m)[varies]) - 3.0 * (n - 1) / (n + 1)
        excess.append(float(own))
        score.append(float(own / np.sqrt(24.0 / n * np.mean(correlation**4))))
    total = sum(score) / np.sqrt(max(len(score), 1))
    if not score or total >= LIGHT_TAILS:
        return []
    least = 3 + min(excess)
    return [finding("light-tails", round(total, 2), LIGHT_TAILS, least=least)]


def is_skewed(client: Client) -> bool:
    """Whether a feature is clearly skewed over all regimes, which linear responses to symmetric
    noise are not.

    A skewness has the variance 6/n in Gaussian rows; tails widen it, about as κ³.
    """
    scores = []
    for _, m in client.named_regimes:
        if m.third is None or (m.n or 0) < TAIL_ROWS:
            continue
        variance = np.maximum(np.diagonal(m.covariance), np.finfo(np.float64).tiny)
        error = np.sqrt(6.0 / float(m.n or 1) * np.maximum(kurtosis(m) / 3.0, 1.0) ** 3)
        scores.append(m.third / variance**1.5 / error)
    return bool(scores) and bool(np.abs(np.sum(scores, axis=0)).max() > SKEWED * len(scores) ** 0.5)


def check_clipped(client: Client) -> Iterator[Finding]:
    """Features whose readings stop at one value, the end of the sensor's range.

    A Gaussian reading that stops at a, in its own standard deviations, has a skewness that gives a,
    and then a kurtosis that must fit; the value follows from mean and variance. It is the same in
    all regimes.
    """
    long = [m for _, m in client.named_regimes if (m.rows or 0) >= MANY_ROWS]
    long = [m for m in long if m.third is not None and m.fourth is not None]
    if len(long) < 2 or client.reduction is not None:
        return
    # Shape (regimes, 1), and (regimes, features).
    n = np.array([[float(m.rows or 0)] for m in long])
    each = [(m.mean, m.third, m.fourth, np.diagonal(m.covariance)) for m in long]
    mean, third, fourth, variance = np.array(each).swapaxes(0, 1)
    sd = np.sqrt(np.where(variance > 0, variance, 1.0))
    skew, error = third / sd**3, np.sqrt(6.0 / n)
    a, s, kurt, centre, spread = _censored()
    at, place = np.interp(-np.abs(skew), s, a), (a - centre) / spread
    fits = np.abs(fourth / sd**4 - np.interp(at, a, kurt)) < FITS * np.sqrt(24.0 / n)
    fits &= (a[0] < at) & (at < a[-1])
    slope = np.abs(np.interp(at, a, np.gradient(place, s)))
    value = mean - np.sign(skew) * sd * np.interp(at, a, place)
    clear = np.abs(skew) > SKEWED * error
    weight = clear / (sd * np.hypot(slope * error, n**-0.5)) ** 2
    for k in np.flatnonzero((clear.sum(axis=0) > 1) & (fits | ~clear).all(axis=0)).tolist():
        stop, count = float(np.average(value[:, k], weights=weight[:, k])), int(clear[:, k].sum())
        off = float(weight[:, k] @ (value[:, k] - stop) ** 2)
        if off > float(chdtri(count - 1, FALSE_ALARM)):
            continue
        side = "largest" if stop > client.control.mean[k] else "smallest"
        words = {"feature": client.features[k], "stop": number(stop), "side": side}
        words["regimes"] = pluralise(count, "regime")
        most = float(ndtr(-at[clear[:, k], k]).max())
        yield finding("clipped", most, share=percent(most), **words)


@cache
def _censored() -> tuple[FloatArray, ...]:
    """For a Gaussian reading that stops at a: a, skewness, kurtosis, mean, standard deviation."""
    a = np.linspace(-1.0, 3.0, 81)
    z = np.linspace(-8.0, 8.0, 1601)
    weight = np.exp(-(z**2) / 2)
    weight /= weight.sum()
    x = np.minimum(z, a[:, None])
    mean = x @ weight
    second, third, fourth = (((x - mean[:, None]) ** k) @ weight for k in (2, 3, 4))
    return a, third / second**1.5, fourth / second**2, mean, np.sqrt(second)


# -- do control rows of different times and batches follow the same law? --------------------------


def check_drift(client: Client) -> Iterator[Finding]:
    """A finding about control rows whose mean moves from the beginning of the file to its end.

    With stretches k of n_k rows, `Σ n_k |W(μ_k − μ)|²` is χ² with (K − 1) r degrees of freedom
    when the mean stands still (W whitens by the control). Autocorrelated rows increase it, and so
    do directions with heavy tails, such as what a clipped sensor lacks; but no more over long
    distances than between neighbouring stretches, and then there is no drift.
    """
    W = client.white.rows.W
    # Neighbours are merged until the shortest one is long enough.
    parts = client.control.parts
    while len(parts) > 1 and min(part.n or 0 for part in parts) <= 2 * len(W):
        parts = coarsened(parts, len(parts) - 1)
    if len(parts) < 2:
        return
    steps = np.array([np.sqrt(m.n or 0) * (W @ (m.mean - client.control.mean)) for m in parts])
    moved = float(np.sum(steps**2))
    edge = float(chdtri((len(steps) - 1) * steps.shape[1], FALSE_ALARM))
    # If the middle step between neighbours is within chance, rows are independent from one stretch
    # to the next, and the mean moves by a few jumps.
    each = [(W @ (b.mean - a.mean), 1 / (a.n or 1) + 1 / (b.n or 1)) for a, b in pairwise(parts)]
    squares = sorted(float(step @ step) / variance for step, variance in each)
    jumps = squares[(len(squares) - 1) // 2] <= float(chdtri(len(W), LENIENT))
    # Von Neumann's ratio `η = Σ|x_{k+1} − x_k|²/Σ|x_k − x|²` of consecutive stretches is 2 on
    # average if these are exchangeable, however much they vary, with the variance
    # `4(K − 2)/((K² − 1) dims)`. Drift makes it smaller. Of two stretches it is always 2, and
    # nothing can be told: they count as a trend.
    (K, dims), away = steps.shape, steps - steps.mean(axis=0)
    ratio = float(np.sum(np.diff(steps, axis=0) ** 2) / max(np.sum(away**2), np.finfo(float).tiny))
    trends = K < 3 or ratio < 2 - TRENDING * np.sqrt(4 * (K - 2) / ((K**2 - 1) * dims))
    if moved > edge and (jumps or trends):
        # With more than half of its variance along some direction, the control's covariance is not
        # that of the system, and no regime can be compared with it.
        mostly = 2 * float(np.linalg.eigvalsh(steps.T @ steps)[-1]) > sum(
            part.n or 0 for part in parts
        )
        severity = "error" if mostly else "warning"
        than = "the rows vary otherwise" if mostly else "chance allows"
        place = client.control_name
        yield finding("drifting-control", moved, edge, regime=place, severity=severity, than=than)


def check_batches(client: Client) -> Iterator[Finding]:
    """Findings about the batches of a client whose rows are in several."""
    wander = client.white.errors.wander
    if wander is None:
        return
    if wander.strength > 1:
        where = ", in the direction where they differ most" if wander.uneven else ""
        yield finding("batch-wander", wander.strength, 1.0, size=wander.size, where=where)
    controls = {batch.name for batch in client.control.batches}
    named = client.named_regimes[1:]
    apart = [x for x, m in named if not {batch.name for batch in m.batches} <= controls]
    if not apart:
        return
    labels, severity = few(dict.fromkeys(apart)), "warning"
    cost = f"their means are uncertain by the {wander.size:.2g} that batches differ"
    if np.isnan(wander.size):
        cost = "no regime is in two batches to show how much they differ: these means are not used"
    elif wander.strength <= 1:
        cost = "batches do not differ by more than chance, so this costs little"
        severity = "info"
    value = None if np.isnan(wander.size) else wander.size
    yield finding("batch-without-control", value, labels=labels, severity=severity, cost=cost)


CHECKS = [
    check_heavy_tails,
    check_light_tails,
    check_clipped,
    check_counts,
    check_covariates,
    check_drift,
    check_batches,
]
