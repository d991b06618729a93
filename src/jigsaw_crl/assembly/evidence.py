"""What the clients of a panel say under a use: one client's evidence on each pair, and the sum.

Some unknowns are the same at all clients (`missed`: had a label a second direction?), so a client's
evidence depends on the others a little. This is where that enters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.missed import Missed, missed_directions
from jigsaw_crl.assembly.panel import Panel, Rows, Use
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.evidence.pooled import Pooled
from jigsaw_crl.fragment.fragment import CANNOT_SAY, NO, YES

__all__ = ["SPEAKS", "Claims", "Evidence"]

# A client "says" yes or no when what it brings passes three to one.
SPEAKS = float(np.log(3.0))


@dataclass(frozen=True, eq=False)
class Claims:
    """What one client says under a use.

    Parameters
    ----------
    client : str
    members : array of int, shape (p,)
    certain : array of int8, shape (p, p), or None
        Its statements, if it states.
    bayes : BayesFactors or None
        Its factors, if it weighs, with districts from all its pairs together.
    log_open : array, shape (p, p), or None
        Log probability that each pair lies in one district there, if it weighs.
    evidence : Pooled
        What it brings to the pool, districts averaged over; zero where it does not say.
    says : array of bool, shape (p, p)
        Pairs about which it says something.
    """

    client: str
    members: IntArray
    certain: npt.NDArray[np.int8] | None
    bayes: BayesFactors | None
    log_open: FloatArray | None
    evidence: Pooled
    says: BoolArray

    def without_ancestors_of(self, labels: BoolArray) -> Claims:
        """The claims with nothing said about the ancestors of some labels of the study (a mask).

        Statements stay: what a single direction means is decided where they are made.
        """
        if self.bayes is None:
            return self
        kept = self.says & ~labels[self.members]
        return replace(self, evidence=self.evidence.where(kept), says=kept)

    @cached_property
    def log_factor(self) -> FloatArray:
        """Log Bayes factor of every pair against "unrelated"."""
        return self.evidence.log_factor()

    @cached_property
    def opinion(self) -> FloatArray:
        """Log factor of every pair against all else: only one direction can hold.

        Statements say no to the other direction themselves.
        """
        x = np.where(self.says, self.log_factor, 0.0)
        return x if self.bayes is None else np.asarray(x - np.logaddexp(0.0, x.T))

    @cached_property
    def stance(self) -> npt.NDArray[np.int8]:
        """1 where the client says yes, -1 where it says no, 0 where it does not say."""
        if self.certain is not None:
            out = np.where(self.certain == YES, 1, np.where(self.certain == NO, -1, 0))
        else:
            x = np.where(self.says, self.log_factor, 0.0)
            out = np.where(x > SPEAKS, 1, np.where(x < -SPEAKS, -1, 0))
        np.fill_diagonal(out, 0)
        return out.astype(np.int8)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The clients' claims under a use, and what they say together.

    Parameters
    ----------
    panel : Panel
    use : Use
    claims : tuple of Claims
        By client.
    missed : Missed
        What the numbers of directions say, from all clients that count.
    """

    panel: Panel
    use: Use
    claims: tuple[Claims, ...]
    missed: Missed

    @classmethod
    def of(cls, panel: Panel, use: Use) -> Evidence:
        return cls.heard(panel, use).without_single_directions()

    @classmethod
    def heard(cls, panel: Panel, use: Use) -> Evidence:
        """All that the clients say; used to compare the clients with each other.

        It includes what single directions say about ancestors. The order does not use that, but a
        client that contradicts the others there is not to be trusted elsewhere.
        """
        factors = [_factors(panel, use, k) for k in range(len(panel.rows))]
        counted = zip(panel.rows, factors, use.weights.tolist(), strict=True)
        missed = missed_directions(len(panel.labels), counted)
        claims = tuple(
            _claims(rows, bayes, panel, use, missed)
            for rows, bayes in zip(panel.rows, factors, strict=True)
        )
        return cls(panel, use, claims, missed)

    def without_single_directions(self) -> Evidence:
        """The evidence without ancestors of labels that moved a single direction at every client.

        Such a label has no ancestors, or its interventions changed noise alone.
        """
        alike = self.alike
        if not alike.any():
            return self
        missed = replace(self.missed, ancestry=np.where(alike, 0.0, self.missed.ancestry))
        claims = tuple(c.without_ancestors_of(alike) for c in self.claims)
        return replace(self, claims=claims, missed=missed)

    @property
    def alike(self) -> BoolArray:
        """Labels that moved a single direction at every client, and are not hard, shape (p,)."""
        return np.asarray(~(self.missed.two | _declared(self.panel, self.use)))

    def reweighed(self, use: Use) -> Evidence:
        """The same claims with other weights; what is set aside must not differ."""
        return replace(self, use=use)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.panel.labels

    @property
    def n_scales(self) -> int:
        return self.panel.n_scales

    @cached_property
    def pooled(self) -> Pooled:
        """The weighted sum over all clients."""
        parts = zip(self.use.weights.tolist(), self.claims, strict=True)
        return Pooled.sum(
            self.n_scales, len(self.labels), ((w, c.members, c.evidence) for w, c in parts)
        )

    def without(self, clients: Iterable[int]) -> Pooled:
        """The weighted sum over all other clients."""
        parts = ((self.use.weights[k], self.claims[k]) for k in clients)
        return self.pooled.minus((float(w), c.members, c.evidence) for w, c in parts)

    @cached_property
    def counts(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """How many clients say yes, and how many no, for every ordered pair, shape (p, p) each."""
        p = len(self.labels)
        yes, no = np.zeros((2, p, p), dtype=np.int32)
        for c in self.claims:
            grid = np.ix_(c.members, c.members)
            yes[grid] += c.stance > 0
            no[grid] += c.stance < 0
        return yes, no

    def sides(self, a: int, d: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The clients that say that a is an ancestor of d, and those that say it is not."""
        said = [
            (self.claims[k].client, int(self.claims[k].stance[i, j]))
            for k, i, j in self.panel.seen_by(a, d)
        ]
        yes, no = (tuple(name for name, s in said if s == side) for side in (1, -1))
        return yes, no


def _declared(panel: Panel, use: Use) -> BoolArray:
    """Labels whose interventions change weights by what the clients that count say, shape (p,)."""
    out = np.zeros(len(panel.labels), dtype=bool)
    for k, rows in enumerate(panel.rows):
        if use.weights[k] > 0:
            not_hard, _ = use.labels_of(panel, k)
            out[rows.members] |= rows.declared & ~not_hard
    return out


def _factors(panel: Panel, use: Use, k: int) -> BayesFactors | None:
    """The factors of one client, without what the use sets aside."""
    rows = panel.rows[k]
    if rows.bayes is None:
        return None
    not_hard, silent = use.labels_of(panel, k)
    bayes = rows.bayes
    if rows.soft is not None and not_hard.any():
        bayes = bayes.where(~(not_hard[:, None] | not_hard), rows.soft)
    if rows.client in use.withheld:
        bayes = bayes.without_ancestry()
    return bayes.silenced(silent) if silent.any() else bayes


def _claims(
    rows: Rows, bayes: BayesFactors | None, panel: Panel, use: Use, missed: Missed
) -> Claims:
    if bayes is None:
        assert rows.certain is not None
        none = np.zeros(len(rows.members), dtype=bool)
        certain = _believed(rows, panel, use)
        says = np.asarray(certain != CANNOT_SAY)
        np.fill_diagonal(says, False)
        strength = np.log((1.0 - use.rate) / use.rate)
        stated = np.where(certain == YES, strength, -strength)
        scales = np.broadcast_to(stated, (panel.n_scales, *stated.shape))
        evidence = Pooled.of_client(scales, np.zeros_like(stated), none, says)
        return Claims(rows.client, rows.members, certain, None, None, evidence, says)
    bayes, log_open = bayes.joint(missed.excuse[rows.members])
    evidence = bayes.averaged(log_open)
    if evidence.n_scales != panel.n_scales:
        evidence = evidence.at_scales(panel.n_scales)
    says = np.asarray(evidence.n_clients > 0)
    return Claims(rows.client, rows.members, None, bayes, log_open, evidence, says)


def _believed(rows: Rows, panel: Panel, use: Use) -> npt.NDArray[np.int8]:
    """Exact statements without those that rest on interventions that were not hard."""
    assert rows.certain is not None
    doubted = np.array([panel.labels[i] in use.soft for i in rows.members])
    if not doubted.any():
        return rows.certain
    return np.where(doubted[:, None] | doubted, np.int8(CANNOT_SAY), rows.certain)
