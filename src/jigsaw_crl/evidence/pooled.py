"""What several clients say together about every pair.

Some unknowns belong to a client and are averaged over at each client: are i and j in one district
there, and was a second direction missed there that other clients saw? Others belong to the pair or
to a target, and are the same at all clients: the scale of an effect, and whether a target of which
every client saw one direction has a second. Clients are therefore added up for each scale, with and
without a lean, and these unknowns are averaged over once, after pooling:

    ancestor against unrelated = log Σ_τ w_τ exp Σ_k x_kτ ,      Σ_τ w_τ = 1 .

The last scale is "invisible": an effect that nobody can see, x = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.evidence.priors import MISSED

CountArray = npt.NDArray[np.int32]
Shares = Sequence[float | FloatArray]


@dataclass(frozen=True, eq=False)
class Pooled:
    """Log Bayes factors against "unrelated", of one client or summed over several."""

    # "Row is an ancestor of column", for each effect scale and for an invisible effect, shape
    # (n_scales + 1, p, p); and the same if the lines of targets with a single direction lean. At a
    # client that saw one, that is the larger of its factor and its lean, which excuses no other.
    ancestor: FloatArray
    leaning: FloatArray
    # "Unrelated, but a line leans", from the clients that saw a single direction, shape (p, p).
    lean: FloatArray
    # Number of clients at which a target of the pair shows a single direction, at which that of the
    # column does, and which say something about the pair.
    in_doubt: CountArray
    single: CountArray
    n_clients: CountArray

    @classmethod
    def of_client(
        cls,
        ancestor: FloatArray,
        lean: FloatArray,
        single: BoolArray,
        says: BoolArray,
        missed: BoolArray | None = None,
    ) -> Pooled:
        """Evidence of one client; `single`: labels that show one direction; `says`: its pairs.

        `missed`: labels of which it missed a direction that other clients saw; the probability of
        a lean is one half then.
        """
        x = np.where(says, np.concatenate([ancestor, np.zeros((1, *lean.shape))]), 0.0)
        in_doubt = (single[:, None] | single) & says
        own = np.where(in_doubt, lean, 0.0)
        leaning = np.where(in_doubt, np.fmax(x, own), x)
        if missed is not None and missed.any():
            here = missed[:, None] | missed
            x = np.where(here, np.logaddexp(x, leaning) - np.logaddexp(0.0, own), x)
            leaning, own = np.where(here, x, leaning), np.where(here, 0.0, own)
            in_doubt &= ~here
        counts = (count.astype(np.int32) for count in (in_doubt, single & says, says))
        return cls(x, leaning, own, *counts)

    @classmethod
    def sum(cls, n_scales: int, p: int, parts: Iterable[tuple[float, IntArray, Pooled]]) -> Pooled:
        """Weighted sum over clients: (weight, positions of its labels, evidence) each."""
        scales, counts = np.zeros((2, n_scales + 1, p, p)), np.zeros((3, p, p), dtype=np.int32)
        return cls(scales[0], scales[1], np.zeros((p, p)), *counts)._plus(parts, 1)

    def minus(self, parts: Iterable[tuple[float, IntArray, Pooled]]) -> Pooled:
        """The sum without some of its parts."""
        return self._each(np.copy)._plus(parts, -1)

    def _plus(self, parts: Iterable[tuple[float, IntArray, Pooled]], sign: int) -> Pooled:
        """Add evidence of clients, in place."""
        for weight, members, evidence in parts:
            if weight == 0.0:
                continue
            places = np.ix_(members, members)
            for name in ("ancestor", "leaning", "lean"):
                getattr(self, name)[(..., *places)] += sign * weight * getattr(evidence, name)
            for name in ("in_doubt", "single", "n_clients"):
                getattr(self, name)[places] += sign * getattr(evidence, name)
        return self

    def _each(self, change: Callable[..., Any], *others: Pooled) -> Pooled:
        """The function of each array, and of the same arrays of others."""
        names = self.__dataclass_fields__
        return Pooled(*(change(*(getattr(x, n) for x in (self, *others))) for n in names))

    def at(self, places: Any) -> Pooled:
        """The evidence at some places of the arrays: an index or a mask of pairs."""
        where = places if isinstance(places, tuple) else (places,)
        return self._each(lambda x: x[(..., *where)])

    def where(self, chosen: BoolArray) -> Pooled:
        """The evidence about some pairs, and none about the others."""
        return self._each(lambda x: np.where(chosen, x, np.zeros_like(x)))

    def less(self, other: FloatArray) -> Pooled:
        """What speaks for "ancestor", less a log factor of something else that explains it."""
        ancestor, leaning = (
            x - np.minimum(other, np.fmax(x, 0.0)) for x in (self.ancestor, self.leaning)
        )
        return replace(self, ancestor=ancestor, leaning=leaning)

    def __add__(self, other: Pooled) -> Pooled:
        """Evidence of both, about the same labels."""
        return self._each(np.add, other)

    def at_scales(self, n_scales: int) -> Pooled:
        """The same log Bayes factor at each of `n_scales` scales, for pooling with others."""
        flat = np.broadcast_to(self.log_factor(), (n_scales, *self.lean.shape))
        none = np.zeros(len(self.lean), dtype=bool)
        return Pooled.of_client(flat, np.zeros_like(self.lean), none, self.n_clients > 0)

    def log_factor(
        self, shares: Shares | None = None, leans: float | FloatArray | None = None
    ) -> FloatArray:
        """ "Row is an ancestor of column" against "unrelated", shape (p, p); NaN stays NaN.

        With `A` and `A'` the mixtures of `ancestor` and `leaning` over the scales, and m the
        probability of a lean where a target is in doubt (0 elsewhere),

            log[(1 − m) e^A + m e^A'] − log[(1 − m) + m e^lean] .

        `shares` are the weights of the scales, the invisible one last. By default the visible
        scales have equal weights, as for one client on its own, and a single direction of the
        column counts against its having ancestors, with probability `MISSED`. `leans` is m, by
        default `MISSED`.
        """
        alone = shares is None
        if shares is None:
            n = len(self.ancestor) - 1
            shares = [1.0 / n] * n + [0.0]
        odds = mixed(self.ancestor, shares).astype(np.float64) + 0.0  # no -0
        doubted = self.in_doubt > 0
        if doubted.any():
            m, *own = (
                w if np.ndim(w) == 0 else np.broadcast_to(w, doubted.shape)[doubted]
                for w in (MISSED if leans is None else leans, *shares)
            )
            leaning = mixed(self.leaning[:, doubted], own)
            with np.errstate(divide="ignore", invalid="ignore"):
                both = np.logaddexp(odds[doubted] + np.log1p(-m), leaning + np.log(m))
                odds[doubted] = both - unrelated(self.lean[doubted], m)
        return np.asarray(odds + np.log(MISSED) * (self.single > 0) if alone else odds)


def unrelated(lean: FloatArray, m: float | FloatArray) -> FloatArray:
    """Log weight of "unrelated", leaning (probability m) or not, against not leaning."""
    with np.errstate(divide="ignore"):
        leaning = np.where(np.asarray(m) > 0, lean, 0.0) + np.log(m)
        return np.asarray(np.logaddexp(np.log1p(-m), leaning))


def mixed(x: FloatArray, shares: Shares) -> FloatArray:
    """`log Σ_s w_s exp x_s`; NaN stays NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # A scale of no weight adds nothing.
        given = [(one, w) for one, w in zip(x, shares, strict=True) if np.ndim(w) or w != 0]
        return np.asarray(np.logaddexp.reduce([one + np.log(w) for one, w in given], axis=0))
