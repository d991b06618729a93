"""How many more rows at an existing site would settle which open pairs?

A site measures the share s of a pair with an error e (`Fragment.shares`), and e² falls as one over
the rows. In one future of r times as many rows, an order is drawn, then whether the two labels lie
in one district at the site, and the true share given these and what the site has measured:
N(s, e²) times the prior N(0, τ²) of an ancestor, 0 otherwise. The site's log factor at scale τ,

    l_τ = −½ log(1 + τ²/e²) + ½ (s/e)² τ²/(τ² + e²) ,

changes by the difference of this formula at (s', e²/r) and at (s, e²). A district explains an
ancestor's share too; it loses ½ log r of the same gain, and log r where there is no ancestor. In
one district nothing is said, whatever the number of rows, unless the intervention is hard. The
rules of a verdict then apply as in `futures`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from jigsaw_crl.assembly.evidence import Claims
from jigsaw_crl.assembly.futures import MOST_SAID, Outlook
from jigsaw_crl.assembly.verdict import OPEN
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.evidence.pooled import Pooled

if TYPE_CHECKING:
    from jigsaw_crl.assembly import GlobalOrder
    from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["MoreRows", "more_rows", "rows_chances"]

# Factors on a site's rows that are tried.
FACTORS = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
# Chances that the answer is given for: an even one, and a good one.
EVEN, GOOD = 0.5, 0.8
# Futures per site: at most, at least, and over all sites (each takes about a millisecond).
MOST_FUTURES, LEAST_FUTURES, ALL_FUTURES = 64, 24, 512
# How often the formula for a site's evidence fails: other readings of a regime, districts that the
# site finds later. A chance is then no better than even. Chosen on seeds 3000 to 3005 of
# `benchmarks/design_chances.py`.
UNMODELLED = 0.1
NEVER_TOGETHER = "no site has both labels: only a new site can settle it"
ONE_DISTRICT = (
    "in one district (joined by hidden causes) wherever it is seen: more rows do not help, a new "
    "site may"
)
TOO_WEAK = f"more than {FACTORS[-1]:g} times the rows at any one site"
NOT_READ = "no site reads it: an intervention on one of the two is too weak or moves the mean alone"


@dataclass(frozen=True)
class MoreRows:
    """The rows that would settle one open pair at the site that needs the fewest more.

    Parameters
    ----------
    ancestor, descendant : str
    site : str or None
        None if more rows do not help.
    rows : int or None
        Rows per regime that the site has now.
    even, good : int or None
        Rows per regime, in total, at which the chance to settle the pair is one half and four
        fifths; None if `FACTORS` does not reach that.
    reason : str
        Why more rows do not help; empty if they do.
    joined : bool
        With the rows there are, every site that has both labels puts them in one district. Where
        `site` is given, that is not sure, and more rows may show that it is not so.
    """

    ancestor: str
    descendant: str
    site: str | None
    rows: int | None
    even: int | None
    good: int | None
    reason: str = ""
    joined: bool = False


def more_rows(order: GlobalOrder, *, seed: int = 0) -> tuple[MoreRows, ...]:
    """For every open pair, the rows that would settle it; those that need the fewest first.

    Empty from exact moments, whose open pairs no number of rows settles, and from Algorithm 3.
    """
    opened = _open(order)
    if order.mode != "evidence" or not opened.any():
        return ()
    sites = [k for k, c in enumerate(order.said.claims) if c.bayes is not None]
    outlook = Outlook.of(order)
    tables = {k: _table(order, outlook, k, FACTORS, seed) for k in sites}
    found = [_answer(order, outlook, tables, int(a), int(d)) for a, d in np.argwhere(opened)]
    return tuple(sorted(found, key=lambda m: (m.even is None, (m.even or 0) - (m.rows or 0))))


def rows_chances(
    order: GlobalOrder, site: str, factor: float, *, seed: int = 0
) -> dict[tuple[str, str], float]:
    """The chance that `factor` times the rows of a site settle each open pair."""
    (k,) = (k for k, f in enumerate(order.fragments) if f.client == site)
    (chance,) = _table(order, Outlook.of(order), k, (factor,), seed)
    return {
        (order.labels[a], order.labels[d]): round(float(chance[a, d]), 3)
        for a, d in np.argwhere(_open(order)).tolist()
    }


def _open(order: GlobalOrder) -> BoolArray:
    return np.asarray((order.verdicts == OPEN) & ~np.eye(len(order.labels), dtype=bool))


def _table(
    order: GlobalOrder, outlook: Outlook, k: int, factors: Iterable[float], seed: int
) -> list[FloatArray]:
    """Share of futures in which each pair is settled, for each factor on the rows of site k."""
    p = len(order.labels)
    n = int(np.clip(ALL_FUTURES // len(order.fragments), LEAST_FUTURES, MOST_FUTURES))
    claims, fragment = outlook.model.said.claims[k], order.fragments[k]
    weight, members = float(outlook.model.said.use.weights[k]), claims.members
    assert claims.evidence is not None
    others = outlook.model.pooled.minus([(weight, members, claims.evidence)])
    rng = np.random.default_rng([order.seed, seed, 12, k])
    factors = list(factors)
    settled = np.zeros((len(factors), p, p))
    for truth in order.sample(n, seed=seed):
        site = _Site.of(outlook, claims, fragment, truth, rng)
        for f, factor in enumerate(factors):
            own = Pooled.sum(others.n_scales, p, [(weight, members, site.at(factor, rng))])
            settled[f] += outlook.settled(others + own, rng)
    share = (settled + 0.5) / (n + 1.0)
    return list(share + UNMODELLED * (0.5 - share))


@dataclass(frozen=True, eq=False)
class _Site:
    """One future of a site: what is true of its pairs, all arrays by its own labels, (p_k, p_k).

    Parameters
    ----------
    claims : Claims
    value, error : array
        Shares as measured.
    share : array
        The true ones.
    ancestor : array of bool
    inside : array of bool
        In one district, and no hard intervention helps.
    """

    claims: Claims
    value: FloatArray
    error: FloatArray
    share: FloatArray
    ancestor: BoolArray
    inside: BoolArray

    @classmethod
    def of(
        cls,
        outlook: Outlook,
        claims: Claims,
        fragment: Fragment,
        truth: BoolArray,
        rng: np.random.Generator,
    ) -> _Site:
        """Draw a future in which the order is `truth`."""
        bayes, log_open = claims.bayes, claims.log_open
        assert bayes is not None
        assert log_open is not None
        grid = np.ix_(claims.members, claims.members)
        ancestor = truth[grid]
        value, error = _shares(claims, fragment)
        # The scale of an ancestor's effect, from what all clients say.
        weights = outlook.model.pooled.ancestor[:, grid[0], grid[1]]
        weights = weights + np.log(outlook.shares)[:, None, None]
        weights = np.exp(weights - np.logaddexp.reduce(weights, axis=0)).cumsum(axis=0)
        scale = (rng.random(ancestor.shape) > weights).sum(axis=0)
        tau = np.append(bayes.scales, 0.0)[np.minimum(scale, len(bayes.scales))]
        shrunk = tau**2 / (tau**2 + error**2)
        noise = rng.standard_normal(ancestor.shape)
        share = np.where(ancestor, shrunk * value + np.sqrt(shrunk) * error * noise, 0.0)
        # Districts are symmetric: one draw a pair.
        best = np.nan_to_num(bayes.ancestor.max(axis=0))
        apart = np.where(ancestor, best, np.where(ancestor.T, best.T, 0.0))
        odds = log_open + np.nan_to_num(bayes.district) - np.log1p(-np.exp(log_open)) - apart
        draw = np.triu(rng.random(odds.shape), 1)
        inside = (draw + draw.T < 1.0 / (1.0 + np.exp(-odds))) & ~bayes.settled
        return cls(claims, value, error, share, ancestor, inside)

    def at(self, factor: float, rng: np.random.Generator) -> Pooled:
        """What the site says with `factor` times its rows."""
        bayes, log_open = self.claims.bayes, self.claims.log_open
        assert bayes is not None
        assert log_open is not None
        noise = self.error / np.sqrt(factor - 1.0) * rng.standard_normal(self.share.shape)
        later = (self.value + (factor - 1.0) * (self.share + noise)) / factor
        error = self.error / np.sqrt(factor)
        gain = np.stack(
            [
                _log_factor(tau, later, error) - _log_factor(tau, self.value, self.error)
                for tau in bayes.scales
            ]
        )
        ancestor = np.nan_to_num(bayes.ancestor) + gain
        either = self.ancestor | self.ancestor.T
        best = np.where(self.ancestor, gain.max(axis=0), gain.max(axis=0).T)
        change = np.where(either, best - 0.5 * np.log(factor), -np.log(factor))
        district = np.nan_to_num(bayes.district) + change
        # A regime that is too weak to read becomes readable with more rows, sooner or later.
        unread = ~self.claims.says & (rng.random(self.inside.shape) < factor**-0.5)
        ancestor[:, unread] = np.nan
        ancestor[:, self.inside & ~unread] = 0.0
        district = np.where(self.inside, MOST_SAID, district)
        new = replace(bayes, ancestor=ancestor, district=np.fmax(district, district.T))
        return new.bounded().averaged(log_open)


def _shares(claims: Claims, fragment: Fragment) -> tuple[FloatArray, FloatArray]:
    """Shares and errors in the order of the claims; what is not measured counts as 0 ± 1."""
    p = len(claims.members)
    if fragment.shares is None:
        return np.zeros((p, p)), np.ones((p, p))
    listed = np.argsort(np.array(fragment.labels, dtype=object))
    grid = np.ix_(listed, listed)
    value, error = fragment.shares.value[grid], fragment.shares.error[grid]
    known = ~np.isnan(value)
    return np.where(known, value, 0.0), np.where(known, np.maximum(error, 1e-6), 1.0)


def _log_factor(tau: float, value: FloatArray, error: FloatArray) -> FloatArray:
    """Log factor of an effect of scale τ against none: see the module."""
    gain = 0.5 * (value / error) ** 2 * tau**2 / (tau**2 + error**2)
    return np.asarray(gain - 0.5 * np.log1p(tau**2 / error**2))


def _answer(
    order: GlobalOrder, outlook: Outlook, tables: dict[int, list[FloatArray]], a: int, d: int
) -> MoreRows:
    """The site that needs the fewest more rows for one pair."""
    pair = (order.labels[a], order.labels[d])
    seen = [(k, i, j) for k, i, j in outlook.model.said.panel.seen_by(a, d) if k in tables]
    sent = outlook.model.said.panel.rows
    joined = bool(seen) and all(sent[k].together[i, j] for k, i, j in seen)
    best: MoreRows | None = None
    for k, _, _ in seen:
        rows = int(np.median(list((order.fragments[k].n_samples or {"": 0}).values())))
        even, good = (_rows(tables[k], a, d, rows, level) for level in (EVEN, GOOD))
        if even is not None and (best is None or even - rows < _extra(best)):
            best = MoreRows(*pair, order.fragments[k].client, rows, even, good, joined=joined)
    if best is not None:
        return best
    return MoreRows(*pair, None, None, None, None, _why_not(outlook, seen), joined)


def _extra(found: MoreRows) -> int:
    return (found.even or 0) - (found.rows or 0)


def _rows(table: list[FloatArray], a: int, d: int, rows: int, level: float) -> int | None:
    """Rows at which the chance of a pair reaches a level, between the factors by logarithm."""
    chance = np.maximum.accumulate([t[a, d] for t in table])
    at = int(np.searchsorted(chance, level))
    if at == len(chance):
        return None
    # As it stands, the pair is open.
    factors, chance = np.array([1.0, *FACTORS]), np.array([0.0, *chance])
    part = (level - chance[at]) / (chance[at + 1] - chance[at])
    return _round_up(float(factors[at] * (factors[at + 1] / factors[at]) ** part) * rows)


def _round_up(rows: float) -> int:
    """Two digits are more than is known."""
    step = 10 ** max(int(np.floor(np.log10(rows))) - 1, 0)
    return int(np.ceil(rows / step) * step)


def _why_not(outlook: Outlook, seen: list[tuple[int, int, int]]) -> str:
    if not seen:
        return NEVER_TOGETHER
    claims, rows = outlook.model.said.claims, outlook.model.said.panel.rows
    if not any(claims[k].says[i, j] for k, i, j in seen):
        return NOT_READ
    if all(rows[k].together[i, j] for k, i, j in seen if claims[k].says[i, j]):
        return ONE_DISTRICT
    return TOO_WEAK
