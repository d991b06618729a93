"""Fragments in the coordinator's numbering: who says what about which pair.

Clients are sorted by name and labels alphabetically, so that nothing downstream can depend on the
order in which fragments arrived.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.missed import Missed, missed_directions
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.evidence.pooled import Pooled
from jigsaw_crl.fragment.fragment import CANNOT_SAY, NO, YES, Fragment

__all__ = [
    "MOST_SAMPLED",
    "SPEAKS",
    "Claims",
    "Panel",
    "check_size",
    "read_fragments",
]

# Orders of more labels are not sampled: chains take more than 200 bytes for each of the p² pairs
# (3 GB at this size), and a minute of moves hardly touches each pair once.
MOST_SAMPLED = 4_000


def check_size(p: int) -> None:
    """Refuse to sample orders of so many labels."""
    if p > MOST_SAMPLED:
        raise InputError(
            f"there are {p:,} labels that clients share, and orders of {MOST_SAMPLED:,} labels at "
            "most are sampled",
            "Leave labels out, or assemble groups of clients separately.",
        )


# A client "says" yes or no when the log-odds that it brings pass log 3: three to one.
SPEAKS = float(np.log(3.0))


@dataclass(frozen=True, eq=False)
class Claims:
    """What one client says, by position among the coordinator's labels.

    Parameters
    ----------
    client : str
    members : array of int, shape (p,)
        Position of each of the client's labels.
    certain : array of int8, shape (p, p), or None
        Yes, no or cannot say (1, 0, -1), where the client states rather than weighs.
    sure : bool
        The statements come from exact moments.
    bayes : BayesFactors or None
        Where the client weighs rather than states.
    log_open : array, shape (p, p), or None
        Log probability that each pair lies in one district there, where the client weighs.
    evidence : Pooled or None
        The factors with districts averaged over; zero where the client cannot say.
    says : array of bool, shape (p, p)
        Pairs about which the client states or weighs something.
    one_of : tuple of (tuple of int, int)
        Candidates, one of which is an ancestor of the last.
    together : array of bool, shape (p, p)
        Pairs that the client puts in one district (or block, where districts are unknown).
    """

    client: str
    members: IntArray
    certain: npt.NDArray[np.int8] | None
    sure: bool
    bayes: BayesFactors | None
    log_open: FloatArray | None
    evidence: Pooled | None
    says: BoolArray
    one_of: tuple[tuple[tuple[int, ...], int], ...]
    together: BoolArray

    @cached_property
    def odds(self) -> FloatArray:
        """Log-odds of every pair, of a client that weighs."""
        assert self.evidence is not None
        return self.evidence.log_odds()

    @cached_property
    def stance(self) -> npt.NDArray[np.int8]:
        """1 where the client says yes, -1 where it says no, 0 where it does not say."""
        if self.certain is not None:
            out = np.where(self.certain == YES, 1, np.where(self.certain == NO, -1, 0))
        else:
            # What it brings to the pool, so that a verdict names the clients that it rests on.
            mean = np.where(self.says, self.odds, 0.0)
            out = np.where(mean > SPEAKS, 1, np.where(mean < -SPEAKS, -1, 0))
        np.fill_diagonal(out, 0)
        return out.astype(np.int8)


@dataclass(frozen=True, eq=False)
class Panel:
    """All clients' claims on one list of labels."""

    labels: tuple[str, ...]
    claims: tuple[Claims, ...]
    fragments: tuple[Fragment, ...]
    n_scales: int
    missed: Missed

    @cached_property
    def position(self) -> dict[str, int]:
        return {label: i for i, label in enumerate(self.labels)}

    @property
    def all_sure(self) -> bool:
        return all(c.sure for c in self.claims)

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

    @cached_property
    def where(self) -> npt.NDArray[np.int32]:
        """`where[k, i]`: row of label i at client k, -1 when it has no such label."""
        out = np.full((len(self.claims), len(self.labels)), -1, dtype=np.int32)
        for k, members in enumerate(self.members):
            out[k, members] = np.arange(len(members))
        return out

    @property
    def many(self) -> bool:
        """Are there too many labels to sample orders of?"""
        return len(self.labels) > MOST_SAMPLED

    @property
    def states(self) -> bool:
        """Does a client state rather than weigh?"""
        return any(c.certain is not None for c in self.claims)

    @property
    def names(self) -> tuple[str, ...]:
        """The clients."""
        return tuple(c.client for c in self.claims)

    @property
    def members(self) -> tuple[IntArray, ...]:
        """Positions of each client's labels, ascending."""
        return tuple(c.members for c in self.claims)

    @cached_property
    def _holders(self) -> tuple[IntArray, ...]:
        """The clients that have each label, ascending."""
        labels = np.concatenate(self.members)
        clients = np.repeat(np.arange(len(self.members)), [len(m) for m in self.members])
        order = np.argsort(labels, kind="stable")
        ends = np.cumsum(np.bincount(labels, minlength=len(self.labels)))
        return tuple(np.split(clients[order], ends[:-1]))

    def joined(self, joined: Iterable[FloatArray]) -> Panel:
        """The same, each client knowing how probably a cause hidden from it joins each pair."""
        pairs = zip(self.claims, joined, strict=True)
        return replace(self, claims=tuple(self._joined(*one) for one in pairs))

    def _joined(self, claims: Claims, here: FloatArray) -> Claims:
        if claims.bayes is None:
            return claims
        excuse = self.missed.excuse[claims.members]
        log_open, evidence = _weighed(claims.bayes, excuse, self.n_scales, here)
        return replace(claims, log_open=log_open, evidence=evidence)

    def seen_by(self, a: int, d: int) -> list[tuple[int, int, int]]:
        """The clients that have both labels: number, and rows of a and d there."""
        both = np.intersect1d(self._holders[a], self._holders[d], assume_unique=True)
        return [(k, *np.searchsorted(self.members[k], (a, d)).tolist()) for k in both.tolist()]

    def stances(self, a: int, d: int) -> list[tuple[Claims, int]]:
        """Each client that has both labels, with what it says: 1 yes, -1 no, 0 nothing."""
        return [
            (self.claims[k], int(self.claims[k].stance[i, j])) for k, i, j in self.seen_by(a, d)
        ]


def read_fragments(fragments: Iterable[Fragment]) -> Panel:
    """Sort, number and check the fragments.

    Raises
    ------
    InputError
        No fragment, or two with one client name.
    """
    given = list(fragments)
    for item in given:
        if not isinstance(item, Fragment):
            raise InputError(
                f"a fragment is expected, got {type(item).__name__}",
                "Pass what `recover_fragment` returns, or read it with `Fragment.from_json`.",
            )
    if not given:
        raise InputError("there is no fragment to assemble", "Pass at least one fragment.")
    given.sort(key=lambda fragment: fragment.client)
    for one, other in pairwise(given):
        if one.client == other.client:
            raise InputError(
                "two fragments carry this client's name",
                "Give each client one name, or keep only its latest fragment.",
                client=one.client,
            )
    labels = tuple(sorted({label for fragment in given for label in fragment.labels}))
    scales = {fragment.bayes.scales for fragment in given if fragment.bayes is not None}
    n_scales = len(scales.pop()) if len(scales) == 1 else 1
    missed = missed_directions(labels, given)
    position = {label: i for i, label in enumerate(labels)}
    claims = tuple(_claims_of(fragment, position, n_scales, missed.excuse) for fragment in given)
    return Panel(labels, claims, tuple(given), n_scales, missed)


def _claims_of(
    fragment: Fragment, position: dict[str, int], n_scales: int, excuse: FloatArray
) -> Claims:
    """What a fragment says, by position among the coordinator's labels."""
    members = np.array([position[label] for label in fragment.labels], dtype=np.intp)
    # Sums must not depend on how the client lists its labels, not even in the last digit.
    listed = np.argsort(members)
    members = members[listed]
    grid = np.ix_(listed, listed)
    bayes, certain, one_of = None, None, []
    sure = False
    if fragment.statements is not None:
        stated = fragment.statements
        certain, sure = stated.ancestor, True
        one_of = [
            (tuple(sorted(position[c] for c in candidates)), position[d])
            for candidates, d in stated.one_of
        ]
    elif fragment.bayes is not None:
        bayes = fragment.bayes.at(listed).bounded()
    else:
        certain, sure = _from_blocks(fragment), fragment.n_samples is None
    if bayes is None:
        assert certain is not None
        log_open, evidence = None, None
        says = ((certain != CANNOT_SAY) & ~np.eye(len(members), dtype=bool))[grid]
    else:
        log_open, evidence = _weighed(bayes, excuse[members], n_scales, None)
        says = evidence.n_clients > 0
    groups = fragment.blocks if fragment.districts is None else fragment.districts
    together = np.zeros((len(members), len(members)), dtype=bool)
    for group in groups:
        inside = [fragment.index(label) for label in group]
        together[np.ix_(inside, inside)] = True
    return Claims(
        client=fragment.client,
        members=members,
        certain=None if certain is None else certain[grid],
        sure=sure,
        bayes=bayes,
        log_open=log_open,
        evidence=evidence,
        says=says,
        one_of=tuple(sorted(one_of)),
        together=together[grid],
    )


def _weighed(
    bayes: BayesFactors, excuse: FloatArray, n_scales: int, joined: FloatArray | None
) -> tuple[FloatArray, Pooled]:
    """Log probabilities of districts, and the evidence averaged over them at the study's scales."""
    log_open = bayes.log_open(excuse, joined)
    evidence = bayes.averaged(log_open)
    return log_open, evidence if evidence.n_scales == n_scales else evidence.at_scales(n_scales)


def _from_blocks(fragment: Fragment) -> npt.NDArray[np.int8]:
    """What blocks and block order alone settle, shape (p, p).

    A cover between two singleton blocks is an ancestor; a label whose block is neither the same
    nor an ancestor is none; all else stays open.
    """
    p = len(fragment.labels)
    order = fragment.block_order
    number = {block: i for i, block in enumerate(order.elements)}
    block = np.array([number[fragment.block_of(label)] for label in fragment.labels])
    single = np.array([len(b) == 1 for b in order.elements])
    above = order.matrix[np.ix_(block, block)]
    cover = order.cover_matrix[np.ix_(block, block)]
    out = np.full((p, p), -1, dtype=np.int8)
    out[cover & single[block][:, None] & single[block][None, :]] = YES
    out[~above & (block[:, None] != block[None, :])] = NO
    return out
