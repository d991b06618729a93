"""Mean and covariance of one regime.

`Moments` holds the mean `μ` and the covariance `C` (divisor n) of `n` rows of `d` features, or the
exact population values when `n is None`. The rows themselves are not kept.

Rows may come in batches b, each with an offset of its own. Then `C` is about the mean of each
batch, and every batch costs a degree of freedom: with n_b rows, mean μ_b and covariance C_b,

    n = Σ_b (n_b − 1) + 1 ,      C = Σ_b n_b C_b / n ,      μ = Σ_b n_b μ_b / Σ_b n_b ,

so that `n C/(n − 1)` is unbiased whatever the offsets are. The n_b and μ_b are kept.

Rows may depend on one another or have heavy tails. Then `n` is the number of independent Gaussian
rows whose covariance is as uncertain (`counted`). If rows have missing values, it is the number of
complete rows whose covariance is as uncertain (`incomplete`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from jigsaw_crl.base.arrays import ArrayLike, BoolArray, FloatArray, IntArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.frozen import ReadOnlyArrays
from jigsaw_crl.moments.checks import check_rows, check_values
from jigsaw_crl.moments.lattice import common_steps

# Eight stretches show a trend or a jump, and cost eight matrices.
MOST_PARTS = 8


@dataclass(frozen=True, eq=False)
class Batch(ReadOnlyArrays):
    """Name, number of rows and mean of those rows of a regime that lie in one batch."""

    name: str
    n: int
    mean: FloatArray

    def __post_init__(self) -> None:
        self._copy_read_only("mean")


@dataclass(frozen=True)
class Counted:
    """How many times more the moments of a regime vary than those of independent Gaussian rows."""

    n: int  # the rows, less one for every batch but the first
    mean: float  # the factor of the mean's variance, at least 1: serial dependence
    covariance: float  # the factor of the covariance's variance, at least 1: also heavy tails


@dataclass(frozen=True)
class Incomplete:
    """What missing values cost a regime."""

    rows: int
    gaps: int  # rows with a missing value
    mean: float = 1.0  # the factor by which the mean varies more than that of complete rows


@dataclass(frozen=True, eq=False)
class Moments(ReadOnlyArrays):
    """Mean and covariance of one regime.

    Parameters
    ----------
    n : int or None
        Number of rows, less one for every batch but the first; None for exact population moments.
        If `counted`, the number of independent Gaussian rows they count for.
    mean : array, shape (d,)
    covariance : array, shape (d, d)
        About `mean`, or about the mean of each batch; with divisor n.
    third, fourth : array, shape (d,), optional
        Third and fourth central moments of each feature, which show how heavy its tails are;
        None where only second moments were given.
    parts : tuple of Moments, optional
        Moments of consecutive stretches of the same rows, at most eight, which show whether the
        regime drifts; empty where the order of the rows is unknown. Offsets of batches are taken
        off their means. If the rows come in groups, sets of groups instead.
    batches : tuple of Batch
        Rows and mean of each batch, sorted by name; empty where batches are unknown.
    counted : Counted, optional
        How `n` follows from the rows; None if rows are taken as independent and Gaussian.
    groups : int, optional
        Number of groups of rows that are alike (subjects, runs); None where they are unknown.
    incomplete : Incomplete, optional
        What missing values cost; None if all rows are complete.
    trimmed : bool
        The rows that lay farthest out were left out, so that tails are lighter than they were.
    step : array, shape (d,), optional
        The step to which each feature was rounded, 0 for none; None where rows were not seen.

    Examples
    --------
    >>> import numpy as np
    >>> from jigsaw_crl.moments.regime import Moments
    >>> m = Moments.from_rows(np.array([[0.0, 1.0], [2.0, 1.0]]))
    >>> m.n, m.mean.tolist(), m.covariance.tolist()
    (2, [1.0, 1.0], [[1.0, 0.0], [0.0, 0.0]])
    """

    n: int | None
    mean: FloatArray
    covariance: FloatArray
    third: FloatArray | None = None
    fourth: FloatArray | None = None
    parts: tuple[Moments, ...] = ()
    batches: tuple[Batch, ...] = ()
    counted: Counted | None = None
    groups: int | None = None
    incomplete: Incomplete | None = None
    trimmed: bool = False
    step: FloatArray | None = None

    def __post_init__(self) -> None:
        # Copies: later changes to the caller's arrays have no effect.
        self._copy_read_only("mean", "covariance", "third", "fourth", "step")

    @classmethod
    def from_rows(cls, rows: ArrayLike, *, parts: bool = False) -> Moments:
        """Moments of rows in memory, shape (n, d), equal to those of chunks to the last bit.

        With `parts` also those of stretches of the rows.
        """
        # `accumulator` builds on this module.
        from jigsaw_crl.moments.accumulator import Accumulator

        x = check_rows(rows)
        # Sums stop at the first bad block; this message counts all bad values.
        check_values(x)
        whole = Accumulator(x.shape[1], most=MOST_PARTS if parts else 1)
        whole.add(x)
        return whole.moments()

    @classmethod
    def of_batches(cls, batches: Mapping[str, Moments]) -> Moments:
        """Moments within batches, from those of the rows of each batch.

        Examples
        --------
        >>> import numpy as np
        >>> from jigsaw_crl.moments.regime import Moments
        >>> one, two = Moments.from_rows([[0.0], [2.0]]), Moments.from_rows([[10.0], [12.0]])
        >>> both = Moments.of_batches({"monday": one, "tuesday": two})
        >>> both.rows, both.n, both.mean.tolist(), both.n * both.covariance / (both.n - 1)
        (4, 3, [6.0], array([[2.]]))
        """
        own = [(name, batches[name]) for name in sorted(batches)]
        return together([replace(m, batches=(Batch(name, m.n or 0, m.mean),)) for name, m in own])

    @property
    def rows(self) -> int | None:
        """Number of rows; None for exact population moments."""
        if self.batches:
            return sum(b.n for b in self.batches)
        if self.incomplete is not None:
            return self.incomplete.rows
        return self.n if self.counted is None else self.counted.n

    @property
    def mean_rows(self) -> float:
        """Number of independent rows whose mean is as uncertain; of estimates only."""
        gaps = 1.0 if self.incomplete is None else self.incomplete.mean
        return (self.rows or 0) / gaps / (1.0 if self.counted is None else self.counted.mean)

    def uncounted(self) -> Moments:
        """The same, with rows taken as independent and Gaussian."""
        return self if self.counted is None else replace(self, n=self.counted.n, counted=None)

    def counting(self, mean: float, covariance: float, *, least: int = 2) -> Moments:
        """The same, whose mean and covariance vary by these factors more than rows suggest."""
        plain = self.uncounted()
        if plain.n is None:
            return plain
        effective = round((plain.n - 1) / covariance) + 1
        counted = Counted(plain.n, mean, covariance)
        return replace(plain, n=max(effective, min(least, plain.n)), counted=counted)

    def merge(self, other: Moments) -> Moments:
        """Moments of both sets of rows together; the parts of `other` follow this one's."""
        return together((self, other))

    def select(self, features: BoolArray | IntArray) -> Moments:
        """Moments of some features, by their positions (in any order) or a boolean mask."""
        arrays = {x: getattr(self, x) for x in ("mean", "third", "fourth", "step")}
        return replace(
            self,
            covariance=self.covariance[np.ix_(features, features)],
            parts=tuple(part.select(features) for part in self.parts),
            batches=tuple(replace(b, mean=b.mean[features]) for b in self.batches),
            **{x: own[features] for x, own in arrays.items() if own is not None},
        )


def together(several: Sequence[Moments]) -> Moments:
    """Moments of several sets of rows together, their parts one after the other.

    Rows of one batch are moved to their common mean; without batches, all rows are one. The mean
    of a set being δ away from it, the powers of its n rows sum to

        n (C + δδᵀ) ,   n (t + 3 v δ + δ³) ,   n (f + 4 t δ + 6 v δ² + δ⁴) ,

    with v, t and f its second, third and fourth moments. In a batch they are those of all batches.
    What is unknown of one set is unknown of all.
    """
    first, known = several[0], [m for m in several if m.counted is not None]
    if len(several) == 1:
        return first
    for other in several:
        if first.n is None or other.n is None:
            what = "population moments cannot be merged with others"
            raise InputError(what, "Merge estimates.")
        if len(first.mean) != len(other.mean):
            what = f"moments of {len(first.mean)} and of {len(other.mean)} features"
            raise InputError(f"{what} cannot be merged", "Compute both from the same columns.")
        for what in ("batches", "groups"):
            if bool(getattr(first, what)) != bool(getattr(other, what)):
                wrong = f"moments with {what} cannot be merged with moments without"
                raise InputError(wrong, "Name the column for all rows, or for none.")
    if known:
        weights = np.array([m.rows or 0 for m in known]) / sum(m.rows or 0 for m in known)
        factors = [(m.counted.mean, m.counted.covariance) for m in known if m.counted]
        return together([m.uncounted() for m in several]).counting(*(weights @ factors).tolist())
    # Name, rows and mean of each batch, and its set; without batches, all rows are one.
    pieces = [
        (*batch, m)
        for m in several
        for batch in [(b.name, b.n, b.mean) for b in m.batches] or [("", m.n or 0, m.mean)]
    ]
    names = sorted({name for name, *_ in pieces})
    place = {name: i for i, name in enumerate(names)}
    of = [place[name] for name, *_ in pieces]
    sizes = np.bincount(of, [n for _, n, *_ in pieces]).astype(int)
    means, rows = np.zeros((len(names), len(first.mean))), int(sizes.sum())
    for i, (_, n, own, _) in zip(of, pieces, strict=True):
        means[i] += n / sizes[i] * own
    mean = sizes / rows @ means
    covariance = np.asarray(sum((m.n or 0) * m.covariance for m in several))
    powers = None
    if all(m.third is not None and m.fourth is not None for m in several):
        powers = np.sum([(m.n or 0) * np.array([m.third, m.fourth]) for m in several], axis=0)
    for i, (_, n, own, m) in zip(of, pieces, strict=True):
        away = own - means[i]
        covariance += n * np.outer(away, away)
        if powers is not None:
            share = (m.n or 0) / (sum(b.n for b in m.batches) or m.n or 1)
            v, t = share * np.diagonal(m.covariance), share * np.asarray(m.third)
            powers[0] += n * (3 * v * away + away**3)
            powers[1] += n * (4 * t * away + 6 * v * away**2 + away**4)
    parts = [p for m in several for p in m.parts]
    if len(names) > 1:
        offsets = [mean - m.mean for m in several for _ in m.parts]
        parts = [replace(p, mean=p.mean + x) for p, x in zip(parts, offsets, strict=True)]
    n, groups = rows - len(names) + 1, [m.groups for m in several]
    gaps = [m.incomplete or Incomplete(m.rows or 0, 0) for m in several]
    total = sum(x.rows for x in gaps)
    factor = sum(x.rows * x.mean for x in gaps) / total
    incomplete = Incomplete(total, sum(x.gaps for x in gaps), factor)
    return Moments(
        n,
        mean,
        covariance / n,
        None if powers is None else powers[0] / n,
        None if powers is None else powers[1] / n,
        parts=coarsened(parts) if all(m.parts for m in several) else (),
        batches=tuple(map(Batch, names, sizes.tolist(), means)) if first.batches else (),
        groups=None if None in groups else sum(x or 0 for x in groups),
        incomplete=incomplete if any(m.incomplete for m in several) else None,
        trimmed=any(m.trimmed for m in several),
        step=common_steps(m.step for m in several),
    )


def coarsened(parts: Sequence[Moments], most: int = MOST_PARTS) -> tuple[Moments, ...]:
    """At most `most` parts: the neighbours with the fewest rows are merged, one pair at a time."""
    own = list(parts)
    while len(own) > most:
        sizes = [(a.n or 0) + (b.n or 0) for a, b in pairwise(own)]
        k = sizes.index(min(sizes))
        own[k : k + 2] = [own[k].merge(own[k + 1])]
    return tuple(own)
