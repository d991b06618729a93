"""Sites whose effects stand apart from those of the others.

With three or more sites of a pair, let z be the distance of a site's effect from the median of all,
in standard errors. A site is set aside

- for one pair, if |z| exceeds `APART` there;
- for all pairs, if it stands apart in many: the mean of `min(z², CAP)` over its pairs, about 1 for
  a site that measures the same effects as the others, exceeds `FAR` and twice that of a typical
  site, and `MANY` of them differ by two errors. The rest is then judged again without it. If a
  third of the sites or more would go, none does: then the sites disagree, which is another finding.
"""

from __future__ import annotations

import numpy as np

from jigsaw_crl.assembly.directions import ROUNDING
from jigsaw_crl.base.arrays import BoolArray, FloatArray

__all__ = ["pairs_apart", "sites_apart"]

# Errors from the median beyond which a site is set aside for a pair: 1 in 150,000 by chance.
APART = 4.5
# Mean of min(z², CAP) above which a site is set aside; honest sites of simulated studies reach
# 1.2. FEW pairs more are counted, with z = 0, so that a few pairs are not enough.
FAR, CAP, FEW = 1.5, 16.0, 6
# Pairs in which it must differ by more than two errors: one wrong effect costs a site that effect.
MANY = 3
# How much further from the others than a typical site it must be.
UNUSUAL = 2.0
# Share of the sites up to which they can be set aside.
MINORITY = 1 / 3


def pairs_apart(value: FloatArray, error: FloatArray) -> BoolArray:
    """Pairs in which a site stands apart from the median, shape (n_clients, p, p)."""
    several, z = _distances(value, error)
    aside = np.zeros(value.shape, dtype=bool)
    far = z > APART
    # Where half or more stand apart, nobody does: the sites disagree, and the test says so.
    far[:, 2 * far.sum(axis=0) >= (~np.isnan(z)).sum(axis=0)] = False
    aside[:, several] = far
    return aside


def sites_apart(value: FloatArray, error: FloatArray) -> BoolArray:
    """Sites that stand apart from the others in many pairs, shape (n_clients,)."""
    n = len(value)
    out = np.zeros(n, dtype=bool)
    present = int((~np.isnan(value)).any(axis=(1, 2)).sum())
    while True:
        _, z = _distances(np.where(out[:, None, None], np.nan, value), error)
        count = (~np.isnan(z)).sum(axis=1)
        if not count.any():
            return out
        score = np.nansum(np.minimum(z**2, CAP), axis=1) / (count + FEW)
        far = score > max(FAR, UNUSUAL * float(np.median(score[count > 0])))
        far &= (z > 2.0).sum(axis=1) >= MANY
        if not far.any():
            return out
        out |= far
        if out.sum() >= MINORITY * present:
            return np.zeros(n, dtype=bool)


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
