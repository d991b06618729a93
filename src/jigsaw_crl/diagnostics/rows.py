"""Checks of the rows of a client: are they independent, whole, and how heavy are their tails?

How many independent Gaussian rows they count for is measured when the client is built (see
`client/counting.py`) and used in every error. These findings say so, and name the cause: serial
dependence makes means vary more than the rows suggest, tails do not. Only moments are at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri, ndtr, ndtri

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.nulls import CLEAR_ERRORS, FALSE_ALARM
from jigsaw_crl.base.text import few, number, percent, pluralise
from jigsaw_crl.client.client import Client
from jigsaw_crl.diagnostics.findings import NOTICEABLE, finding
from jigsaw_crl.moments.regime import MOST_PARTS, Moments

# Beyond a kurtosis of 9 the error of a variance is twice what Gaussian rows give, (9−1)/2 = 2²,
# and probabilities computed for Gaussian rows are no longer to be trusted. Laplace rows have 6.
HEAVY = 9.0
# Fewer rows than this carry a variance if a single row has more than four fifths of it: a reading
# that went wrong. In a system of products with heavy tails the largest row has up to two thirds.
ALONE = 1.5
# Numbers that loggers write for a reading that is missing, and how near an estimate must come.
CODES = (-99_999, -9_999, -999, -99, 999, 9_999, 99_999, 999_999, 32_767, 65_535, -32_768)
NEAR = 0.002
# Standard score from which tails are called light. The sample kurtosis of few rows is skewed to the
# other side, and fewer rows than this show no tails.
LIGHT, ENOUGH_ROWS = -CLEAR_ERRORS, 100
# Standard errors from which a skewness is clear, and within which a kurtosis fits. Fewer rows than
# the last number leave room for other laws than a Gaussian that is cut off.
SKEWED, FITTING, MANY_ROWS = 6.0, 4.0, 3_000


def kurtosis(moments: Moments) -> FloatArray | None:
    """Kurtosis of each feature (3 for Gaussian rows), 0 for constant ones; None if unknown."""
    if moments.fourth is None:
        return None
    variance = np.diagonal(moments.covariance)
    zero = np.zeros_like(variance)
    return np.asarray(np.divide(moments.fourth, variance**2, out=zero, where=variance > 0))


def differences(control: Moments, m: Moments) -> tuple[FloatArray, FloatArray, FloatArray]:
    """How far each feature is from the control: its mean and its variance, in standard errors.

    And the ratio of its variances. Fourth moments show how far variances vary by chance. Infinite
    or NaN for a feature that does not vary in one of the two.
    """
    n0, n1 = (x.mean_rows for x in (control, m))
    v0, v1 = (np.diagonal(x.covariance) for x in (control, m))
    each = ((kurtosis(x), n) for x, n in ((control, n0), (m, n1)))
    of_variance = sum(np.maximum((3.0 if k is None else k) - 1.0, 0.5) / n for k, n in each)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Few rows may not vary at all in a feature that is rarely seen.
        t = np.abs(m.mean - control.mean) / np.sqrt(np.maximum(v0, v1) / n1 + v0 / n0)
        ratio = v1 / v0
        return t, np.abs(np.log(ratio)) / np.sqrt(of_variance), ratio


class _Tails(NamedTuple):
    """The heaviest feature of a regime; `worth` is the number of Gaussian rows it counts for."""

    regime: str
    feature: str
    kurtosis: float
    moments: Moments
    rows: int
    worth: float


def check_heavy_tails(client: Client) -> list[Finding]:
    """Findings about tails that make rows count for less, and about codes and outliers in them."""
    findings: list[Finding] = []
    heavy = []
    for tails in _heavy(client):
        spoilt = _missing_code(client, tails) or _outliers(client, tails)
        if spoilt is not None:
            findings.append(spoilt)
        elif NOTICEABLE * tails.worth < tails.rows:
            heavy.append(tails)
    return [*findings, *([_heavy_tails(heavy)] if heavy else ())]


def _heavy(client: Client) -> Iterator[_Tails]:
    """Regimes with tails so heavy that errors grow noticeably, or that few rows carry."""
    for regime, m in client.named_regimes:
        own = kurtosis(m)
        if own is None:
            continue
        worst, rows = int(np.argmax(own)), m.rows or 0
        value = float(own[worst])
        # Latents have heavier tails than the features that mix them.
        counts = m.counted is not None and m.counted.mean < m.counted.covariance / NOTICEABLE
        least = 3 + CLEAR_ERRORS * np.sqrt(24 / max(rows, 1)) if counts else HEAVY
        # Of few Gaussian rows, one may have much of the variance, but not all of it.
        if value > (least if rows >= ENOUGH_ROWS else 3 * HEAVY):
            worth = 2 * rows / (value - 1) if m.counted is None else float(m.n or 0)
            yield _Tails(regime, client.features[worst], value, m, rows, worth)


def _missing_code(client: Client, tails: _Tails) -> Finding | None:
    """A number that stands for missing readings, if the moments of the feature fit one.

    With a share e of the rows at a distance D from the others, which hardly spread beside it, the
    kurtosis is `1/(e (1 − e)) − 3`, the variance `e (1 − e) D²`, and the value `μ + (1 − e) D`.
    """
    m, k = tails.moments, client.features.index(tails.feature)
    assert m.third is not None
    product = 1.0 / (tails.kurtosis + 3.0)
    share = 0.5 - np.sqrt(max(0.25 - product, 0.0))
    apart = np.sign(m.third[k]) * np.sqrt(m.covariance[k, k] / product)
    value = float(m.mean[k] + (1.0 - share) * apart)
    code = min(CODES, key=lambda c: abs(value - c))
    # A code is written more than once; one large value is an outlier.
    if abs(value - code) > NEAR * abs(code) or share * tails.rows < 1.5:
        return None
    words = {"feature": tails.feature, "code": code, "share": percent(float(share))}
    return finding("missing-code", regime=tails.regime, **words)


def _outliers(client: Client, tails: _Tails) -> Finding | None:
    """The finding about rows that carry the variance of a feature, if they are few.

    They are `(Σx²)²/Σx⁴ = n/κ`, of Gaussian or Laplace rows never fewer than a share of 1/27. Where
    the rows were counted, tails that come from one latent alone leave `n/(1 + (f − 1)(p + 2)/3)`
    rows along it, with f the factor over all directions.
    """
    p, counted, carrying = client.n_latent, tails.moments.counted, tails.rows / tails.kurtosis
    least = min(p + 1.0, tails.rows / (3 * HEAVY))
    factor = 1.0 if counted is None else 1 + (counted.covariance - 1) * (p + 2) / 3
    told_by_counting = counted is not None and carrying > ALONE and tails.rows > (p + 1) * factor
    if carrying >= least or told_by_counting:
        return None
    # Trimming needs a covariance of its own: see `moments/preparing.py`.
    what = "leave the feature out with --ignore, or transform it"
    if tails.rows > 2 * client.n_features:
        what = "leave whole rows out with --trim 0.05 (trim=0.05), or transform the feature"
    words = {"feature": tails.feature, "what": what}
    return finding("outliers", carrying, least, regime=tails.regime, **words)


def _heavy_tails(heavy: list[_Tails]) -> Finding:
    """The finding about the regime that heavy tails cost most, and the names of the others."""
    worst = min(heavy, key=lambda t: t.worth / t.rows)
    also = [t.regime for t in heavy if t.regime != worst.regime]
    more = f"; also in {few(map(repr, dict.fromkeys(also)))}" if also else ""
    words = {"feature": worst.feature, "rows": worst.rows, "worth": worst.worth, "more": more}
    return finding("heavy-tails", worst.kurtosis, HEAVY, regime=worst.regime, **words)


def check_dependent(client: Client) -> Iterator[Finding]:
    """Rows whose means vary more than independent rows allow.

    Serial dependence makes means vary more than covariances, `1 + 2 Σ r_l` against `1 + 2 Σ r_l²`;
    otherwise heavy tails are the better explanation.
    """
    found = [
        (m.counted.mean, where, m)
        for where, m in client.named_regimes
        if m.counted is not None and m.counted.mean > max(NOTICEABLE, m.counted.covariance)
    ]
    if found:
        factor, where, m = max(found, key=lambda item: item[0])
        alike, what = "rows that follow one another are alike", "Record for longer"
        if m.groups is not None:
            alike, what = "rows of one group are alike", "Record more groups"
        words = {"alike": alike, "what": what, "where": where, "rows": m.rows or 0, "n": m.n or 0}
        yield finding("dependent-rows", factor, NOTICEABLE, mean_rows=m.mean_rows, **words)


def check_groups(client: Client) -> Iterator[Finding]:
    """Regimes with rows of so few groups that their differences are hardly known."""
    # With fewer groups than parts, how much groups differ shows only roughly.
    found = {x: m.groups for x, m in client.named_regimes if (m.groups or np.inf) < MOST_PARTS}
    if found:
        fewest = float(min(n for n in found.values() if n is not None))
        cost = "how much groups differ is known only roughly, and errors may be too small"
        if fewest == 1:
            cost = "what belongs to the regime cannot be told from what belongs to its group"
        named = few(map(repr, found))
        yield finding("few-groups", fewest, float(MOST_PARTS), named=named, cost=cost)


def check_covariates(client: Client) -> Iterator[Finding]:
    """Covariates that are not as the control's in some regime."""
    if client.covariates is None or client.is_population:
        return
    control, *regimes = client.covariates.only()
    # Mean and variance of each covariate in every regime.
    edge = float(ndtri(1 - FALSE_ALARM / (4 * len(regimes))))
    moved: dict[str, dict[str, None]] = {}
    for (label, _), m in zip(client.named_regimes[1:], regimes, strict=True):
        t, z, _ = differences(control, m)
        for name, far in zip(client.covariates.names, np.fmax(t, z).tolist(), strict=True):
            if far > edge:
                moved.setdefault(label, {})[name] = None
    for label, names in moved.items():
        yield finding("covariate-differs", regime=label, named=few(map(repr, names)))


def check_missing(client: Client) -> Iterator[Finding]:
    """Rows with missing values that are used, and what that costs."""
    found = [
        (m.incomplete, m.uncounted().n or 1, where)
        for where, m in client.named_regimes
        if m.incomplete is not None and m.incomplete.gaps
    ]
    if found:
        own, worth, where = max(found, key=lambda item: item[0].rows / item[1])
        words = {x: sum(getattr(one, x) for one, _, _ in found) for x in ("gaps", "rows")}
        words |= {"own": own.rows, "worth": worth, "of_means": own.rows / own.mean}
        cost = own.rows / worth
        yield finding("missing-values", cost, where=where, **words)


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
    for _, m in client.named_regimes:
        if m.fourth is None or (m.n or 0) < ENOUGH_ROWS:
            continue
        n, variance = float(m.n or 0), np.diagonal(m.covariance)
        varies = variance > np.finfo(np.float64).eps * variance.max()
        spread = np.sqrt(variance[varies])
        correlation = m.covariance[np.ix_(varies, varies)] / np.outer(spread, spread)
        own = np.mean(m.fourth[varies] / variance[varies] ** 2) - 3.0 * (n - 1) / (n + 1)
        excess.append(float(own))
        score.append(float(own / np.sqrt(24.0 / n * np.mean(correlation**4))))
    total = sum(score) / np.sqrt(max(len(score), 1))
    if not score or total >= LIGHT:
        return []
    least = 3 + min(excess)
    return [finding("light-tails", round(total, 2), LIGHT, least=least)]


def is_skewed(client: Client) -> bool:
    """Whether a feature is clearly skewed over all regimes, which linear responses to symmetric
    noise are not.

    A skewness has the variance 6/n in Gaussian rows; tails widen it, about as κ³.
    """
    scores = []
    for _, m in client.named_regimes:
        own = kurtosis(m)
        if m.third is None or own is None or (m.n or 0) < ENOUGH_ROWS:
            continue
        variance = np.maximum(np.diagonal(m.covariance), np.finfo(np.float64).tiny)
        error = np.sqrt(6.0 / float(m.n or 1) * np.maximum(own / 3.0, 1.0) ** 3)
        scores.append(m.third / variance**1.5 / error)
    return bool(scores) and bool(np.abs(np.sum(scores, axis=0)).max() > SKEWED * len(scores) ** 0.5)


def check_clipped(client: Client) -> Iterator[Finding]:
    """Features whose readings stop at one value, the end of the sensor's range.

    A Gaussian reading that stops at a, in its own standard deviations, has a skewness that gives a,
    and then a kurtosis that must fit; the value follows from mean and variance. It is the same in
    all regimes.
    """
    long = []
    for _, m in client.named_regimes:
        if m.third is not None and (rows := m.rows or 0) >= MANY_ROWS:
            variance = np.maximum(np.diagonal(m.covariance), np.finfo(np.float64).tiny)
            long.append((m, m.third / variance**1.5, SKEWED * np.sqrt(6.0 / rows)))
    if len(long) < 2 or client.reduction is not None:
        return
    for k, feature in enumerate(client.features):
        found = [_stop(m, k, float(skew[k])) for m, skew, edge in long if abs(skew[k]) > edge]
        if len(found) < 2 or None in found:
            continue
        value, error, share = np.array(found).T
        weight = error**-2
        stop = float((weight * value).sum() / weight.sum())
        if float((weight * (value - stop) ** 2).sum()) > float(chdtri(len(found) - 1, FALSE_ALARM)):
            continue
        side = "largest" if stop > client.control.mean[k] else "smallest"
        words = {"feature": feature, "stop": number(stop), "side": side}
        words["regimes"] = pluralise(len(found), "regime")
        most = float(share.max())
        yield finding("clipped", most, share=percent(most), **words)


def _stop(m: Moments, k: int, skew: float) -> tuple[float, float, float] | None:
    """Where the readings of a feature stop, its standard error, and the share of rows there.

    None if the kurtosis does not fit.
    """
    assert m.fourth is not None
    n, sd = float(m.rows or 0), float(np.sqrt(m.covariance[k, k]))
    error = np.sqrt(6.0 / n)
    a, s, kurt, centre, spread = _censored()
    at = float(np.interp(-abs(skew), s, a))
    fits = abs(float(m.fourth[k]) / sd**4 - np.interp(at, a, kurt)) < FITTING * np.sqrt(24.0 / n)
    if not fits or not a[0] < at < a[-1]:
        return None
    place = (a - centre) / spread
    slope = np.interp(at, a, np.gradient(place, s))
    sign = -np.sign(skew)
    value = float(m.mean[k]) + sign * sd * float(np.interp(at, a, place))
    return value, sd * float(np.hypot(abs(slope) * error, n**-0.5)), float(ndtr(-at))


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
