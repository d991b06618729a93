"""Checks of the rows of a client: are they independent, whole, and how heavy are their tails?

How many independent Gaussian rows they count for is measured when the client is built (see
`client/counting.py`) and used in every error. These findings say so, and name the cause: serial
dependence makes means vary more than the rows suggest, tails do not.

Only moments are at hand. With a share e of the rows at a code such as −9999, the kurtosis of a
feature, its variance and its third moment give the code; if readings stop at the end of a sensor's
range, the skewness of a Gaussian feature gives the place where they stop (see `_clipped`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri, ndtr, ndtri

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import few, number, percent, pluralise
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.covariates import unchanged
from jigsaw_crl.client.nulls import FALSE_ALARM
from jigsaw_crl.diagnostics.findings import finding
from jigsaw_crl.moments.regime import Moments

__all__ = ["check_light_tails", "check_rows", "tail_factor"]

# Beyond a kurtosis of 9 the error of a variance is twice what Gaussian rows give, (9−1)/2 = 2²,
# and probabilities computed for Gaussian rows are no longer to be trusted. Laplace rows have 6.
HEAVY = 9.0
# Rows that carry the variance of a feature are called outliers when they are fewer than a share of
# 1/27 of all; no sample of Gaussian or Laplace rows comes near that.
MOST_CARRIERS = 3 * HEAVY
# Fewer rows than this carry a variance if a single row has more than half of it; the parts of a
# regime, of which one has that row, do not show how bad that is.
ALONE = 4.0
# Errors are larger by the square root of this; below it, nothing is reported.
NOTICEABLE = 2.0
# Tails that leave a larger share of the rows cost nothing that is worth a line.
COSTS = 0.98
# Numbers that loggers write for a reading that is missing, and how near an estimate must come.
CODES = (-99_999, -9_999, -999, -99, 999, 9_999, 99_999, 999_999, 32_767, 65_535, -32_768)
NEAR = 0.002
# Fewer groups show only roughly how much groups differ.
ENOUGH_GROUPS = 8
# Standard score from which tails are called light. The sample kurtosis of few rows is skewed to the
# other side, and fewer rows than the second number show no tails.
LIGHT, ENOUGH_ROWS = -5.0, 100
# Standard errors from which a skewness is clear, and within which a kurtosis fits. Fewer rows than
# the last number leave room for other laws than a Gaussian that is cut off.
SKEWED, FITTING, MANY_ROWS = 6.0, 4.0, 3_000
# Why rows are alike, and what helps: rows in order, and rows in groups.
_STRETCHES = (
    "rows that follow one another are alike",
    "Record for longer: denser readings add nothing.",
)
_GROUPS = (
    "rows of one group are alike",
    "Record more groups: further rows of the same ones add little.",
)


def kurtosis(moments: Moments) -> FloatArray | None:
    """Kurtosis of each feature (3 for Gaussian rows), 0 for constant ones; None if unknown."""
    if moments.fourth is None:
        return None
    variance = np.diagonal(moments.covariance)
    zero = np.zeros_like(variance)
    return np.asarray(np.divide(moments.fourth, variance**2, out=zero, where=variance > 0))


def tail_factor(moments: Moments) -> float:
    """The factor by which heavy tails increase the variance of a variance: `(κ − 1)/2`, at least 1.

    κ is the mean kurtosis of the features. Divided by this factor, n is the number of Gaussian rows
    with the same error; what `n` contains already is left out.
    """
    own = kurtosis(moments)
    if own is None or not own.any():
        return 1.0
    known = 1.0 if moments.counted is None else moments.counted.covariance
    return max(1.0, (float(own[own > 0].mean()) - 1) / 2 / known)


def gaussian_kurtosis(n: int, level: float) -> float:
    """Upper quantile of the sample kurtosis of n Gaussian rows (Anscombe and Glynn 1983).

    The sample kurtosis is skewed: its cube root, suitably scaled, is close to normal from 20 rows
    on. Infinite for fewer.
    """
    if n < 20:
        return float("inf")
    mean = 3 * (n - 1) / (n + 1)
    variance = 24 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5))
    skew = (
        6
        * (n * n - 5 * n + 2)
        / ((n + 7) * (n + 9))
        * np.sqrt(6 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    )
    a = 6 + 8 / skew * (2 / skew + np.sqrt(1 + 4 / skew**2))
    c = 2 / (9 * a)
    root = 1 - c - np.sqrt(c) * float(ndtri(1 - level))
    if root <= 0:
        return float("inf")
    x = ((1 - 2 / a) / root**3 - 1) / np.sqrt(2 / (a - 4))
    return float(mean + np.sqrt(variance) * x)


class _Tails(NamedTuple):
    """The heaviest feature of a regime, if it is heavier than chance allows."""

    regime: str
    feature: str
    kurtosis: float
    moments: Moments

    @property
    def rows(self) -> int:
        return self.moments.rows or 0

    @property
    def worth(self) -> float:
        """The number of Gaussian rows whose covariance is as uncertain."""
        if self.moments.counted is None:
            return 2 * self.rows / (self.kurtosis - 1)
        return float(self.moments.n or 0)

    @property
    def carrying(self) -> float:
        """Rows that effectively carry the feature's variance: `(Σx²)²/Σx⁴ = n/κ`."""
        return self.rows / self.kurtosis


def check_rows(client: Client) -> list[Finding]:
    """Findings about rows that depend on one another or have heavy tails."""
    if client.is_population:
        return []
    regimes = [(client.control_name, client.control)]
    regimes += [(label, m) for label, ms in client.interventions.items() for m in ms]
    heavy = list(_heavy(client, regimes))
    coded = [f for t in heavy if (f := _missing_code(client, t))]
    heavy = [t for t in heavy if t.regime not in {f.regime for f in coded}]
    spoilt = [t for t in heavy if _is_spoilt(client, t)]
    rest = [t for t in heavy if t not in spoilt and t.worth < COSTS * t.rows]
    findings = coded + [_outliers(client, t) for t in spoilt]
    findings += [_heavy_tails(client, rest)] if rest else []
    findings += [*_clipped(client, regimes), *_dependent(client, regimes)]
    findings += _few_groups(client, regimes)
    return findings + _missing_values(client, regimes) + _covariates(client)


def _heavy(client: Client, regimes: list[tuple[str, Moments]]) -> Iterable[_Tails]:
    """Regimes with tails so heavy that errors grow noticeably."""
    level = FALSE_ALARM / (len(regimes) * client.n_features)
    for regime, m in regimes:
        own = kurtosis(m)
        if own is None:
            continue
        worst = int(np.argmax(own))
        value, rows = float(own[worst]), m.rows or 0
        chance = gaussian_kurtosis(rows, level)
        # Latents have heavier tails than the features that mix them.
        counts = m.counted is not None and m.counted.mean < m.counted.covariance / NOTICEABLE
        if value > max(HEAVY, chance) or (counts and value > chance):
            yield _Tails(regime, client.features[worst], value, m)


def _is_spoilt(client: Client, tails: _Tails) -> bool:
    """Do so few rows carry the variance that nothing can be said?

    Where the rows were counted, tails that come from one latent alone leave `n/(1 + (f − 1)(p +
    2)/3)` rows along it, with f the factor over all directions.
    """
    p, counted = client.n_latent, tails.moments.counted
    if counted is not None and tails.carrying > ALONE:
        along = tails.rows / (1 + (counted.covariance - 1) * (p + 2) / 3)
        if along > p + 1:
            return False
    return tails.carrying < min(p + 1.0, tails.rows / MOST_CARRIERS)


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
    return finding("missing-code", client=client.name, regime=tails.regime, **words)


def _outliers(client: Client, tails: _Tails) -> Finding:
    # Trimming needs a covariance of its own: see `moments/preparing.py`.
    whole = tails.rows > 2 * client.n_features
    trim = "leave whole rows out with --trim 0.05 (trim=0.05), or transform the feature"
    column = "leave the feature out with --ignore, or transform it"
    least = min(client.n_latent + 1.0, tails.rows / MOST_CARRIERS)
    words = {"feature": tails.feature, "what": trim if whole else column}
    return finding(
        "outliers", tails.carrying, least, client=client.name, regime=tails.regime, **words
    )


def _heavy_tails(client: Client, heavy: list[_Tails]) -> Finding:
    worst = min(heavy, key=lambda t: t.worth / t.rows)
    also = [t.regime for t in heavy if t.regime != worst.regime]
    more = f"; also in {few(map(repr, dict.fromkeys(also)))}" if also else ""
    place = {"client": client.name, "regime": worst.regime}
    words = {"feature": worst.feature, "rows": worst.rows, "worth": worst.worth, "more": more}
    return finding("heavy-tails", worst.kurtosis, HEAVY, **place, **words)


def _dependent(client: Client, regimes: list[tuple[str, Moments]]) -> list[Finding]:
    """Rows whose means vary more than independent rows allow.

    Serial dependence makes means vary more than covariances, `1 + 2 Σ r_l` against `1 + 2 Σ r_l²`;
    otherwise heavy tails are the better explanation.
    """
    found = [
        (m.counted.mean, regime, m)
        for regime, m in regimes
        if m.counted is not None and m.counted.mean > max(NOTICEABLE, m.counted.covariance)
    ]
    if not found:
        return []
    factor, regime, m = max(found, key=lambda item: item[0])
    alike, what = _STRETCHES if m.groups is None else _GROUPS
    words = {"alike": alike, "rows": m.rows or 0, "n": m.n or 0, "mean_rows": m.mean_rows}
    told = finding("dependent-rows", factor, NOTICEABLE, regime=regime, what=what, **words)
    return [replace(told, client=client.name, regime=None)]


def _few_groups(client: Client, regimes: list[tuple[str, Moments]]) -> list[Finding]:
    """Regimes with rows of so few groups that their differences are hardly known."""
    found = [(m.groups, regime) for regime, m in regimes if m.groups is not None]
    found = [(groups, regime) for groups, regime in found if groups < ENOUGH_GROUPS]
    if not found:
        return []
    fewest = min(found)[0]
    named = few(map(repr, dict.fromkeys(regime for _, regime in found)))
    cost = (
        "what belongs to the regime cannot be told from what belongs to its group"
        if fewest == 1
        else "how much groups differ is known only roughly, and errors may be too small"
    )
    least = float(ENOUGH_GROUPS)
    words = {"named": named, "cost": cost}
    return [finding("few-groups", float(fewest), least, client=client.name, **words)]


def _covariates(client: Client) -> list[Finding]:
    """Covariates that are not as the control's in some regime."""
    if client.covariates is None:
        return []
    control, regimes = client.covariates.only()
    found = []
    for label, ms in regimes.items():
        same = unchanged(control, ms, FALSE_ALARM / len(regimes))
        moved = [n for n, is_same in zip(client.covariates.names, same, strict=True) if not is_same]
        if moved:
            words = {"named": few(map(repr, moved))}
            found.append(finding("covariate-differs", client=client.name, regime=label, **words))
    return found


def _missing_values(client: Client, regimes: list[tuple[str, Moments]]) -> list[Finding]:
    """Rows with missing values that are used, and what that costs."""
    every = [(m.incomplete, regime, m) for regime, m in regimes]
    found = [(own, regime, m) for own, regime, m in every if own is not None and own.gaps]
    if not found:
        return []
    gaps, rows = (sum(getattr(own, x) for own, _, _ in found) for x in ("gaps", "rows"))
    own, regime, m = max(found, key=lambda item: item[0].rows / max(item[2].uncounted().n or 1, 1))
    worth = m.uncounted().n or 1
    words = {"gaps": gaps, "rows": rows, "own": own.rows, "worth": worth}
    told = finding(
        "missing-values", own.rows / worth, regime=regime, of_means=own.rows / own.mean, **words
    )
    return [replace(told, client=client.name, regime=None)]


def check_light_tails(client: Client) -> list[Finding]:
    """A finding if the features have lighter tails than sums of Gaussian noises.

    A feature that is a sum of Gaussian noises has kurtosis 3, and more if the noises have heavy
    tails, skewed or not. Sensors that saturate and effects that saturate give less. With ρ the
    correlations of the d features, the mean excess kurtosis of the features of one regime has the
    variance `24/n · Σ_fg ρ_fg⁴ / d²` for Gaussian rows. The regimes' standard scores are added up.
    Noise of bounded range has light tails too, and is as good as any other for the method; so the
    finding alone changes nothing. The study as a whole is withheld if what the regimes move
    contradicts a linear system as well (`assembly/linearity.py`).
    """
    if client.is_population or client.control.trimmed:
        return []
    regimes = [client.control, *(m for each in client.interventions.values() for m in each)]
    found = [_excess(m) for m in regimes if m.fourth is not None and (m.n or 0) >= ENOUGH_ROWS]
    if not found:
        return []
    excess, error = np.array(found).T
    score = float(np.sum(excess / error) / np.sqrt(len(found)))
    if score >= LIGHT:
        return []
    least = 3 + float(excess.min())
    return [finding("light-tails", round(score, 2), LIGHT, client=client.name, least=least)]


def _excess(moments: Moments) -> tuple[float, float]:
    """Mean excess kurtosis of the features of a regime that vary, and its standard error."""
    assert moments.fourth is not None
    n, variance = float(moments.n or 0), np.diagonal(moments.covariance)
    varies = variance > np.finfo(np.float64).eps * variance.max()
    spread = np.sqrt(variance[varies])
    correlation = moments.covariance[np.ix_(varies, varies)] / np.outer(spread, spread)
    excess = moments.fourth[varies] / variance[varies] ** 2 - 3.0 * (n - 1) / (n + 1)
    return float(excess.mean()), float(np.sqrt(24.0 / n * np.mean(correlation**4)))


def _clipped(client: Client, regimes: list[tuple[str, Moments]]) -> Iterable[Finding]:
    """Features whose readings stop at one value, the end of the sensor's range.

    A Gaussian reading that stops at a, in its own standard deviations, has a skewness that gives a,
    and then a kurtosis that must fit; the value follows from mean and variance. It is the same in
    all regimes.
    """
    long = [m for _, m in regimes if m.third is not None and (m.rows or 0) >= MANY_ROWS]
    if len(long) < 2 or client.reduction is not None:
        return
    for k, feature in enumerate(client.features):
        skewed = [m for m in long if abs(_skewness(m, k)) > SKEWED * np.sqrt(6.0 / (m.rows or 1))]
        found = [_stop(m, k) for m in skewed]
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
        yield finding("clipped", most, client=client.name, share=percent(most), **words)


def _skewness(m: Moments, k: int) -> float:
    assert m.third is not None
    sd = float(np.sqrt(m.covariance[k, k]))
    return float(m.third[k]) / sd**3 if sd > 0 else 0.0


def _stop(m: Moments, k: int) -> tuple[float, float, float] | None:
    """Where the readings of a feature stop, its standard error, and the share of rows there.

    None if the kurtosis does not fit.
    """
    assert m.fourth is not None
    n, sd, skew = float(m.rows or 0), float(np.sqrt(m.covariance[k, k])), _skewness(m, k)
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
