"""Which latents should the next client access?

A client can say something about the pairs that it sees in different districts; where interventions
are hard, about all of them. A pair is worth the bits that are expected from a client that has it
apart. Labels are added one by one, then exchanged, such that the worth of the pairs that are likely
apart grows. Without a size there are as many labels as bring the most bits per label, and at most
as many as the largest client has.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import entr

from jigsaw_crl.assembly.districts import Graphs, likely_graphs, trust_in_graphs
from jigsaw_crl.assembly.futures import Outlook, new_site, usual_rows
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.frozen import CLOSED

if TYPE_CHECKING:
    from jigsaw_crl.assembly import GlobalOrder

__all__ = ["EVEN", "Pair", "Proposal", "SiteSearch", "next_client", "propose"]

Pair = tuple[str, str]

# A pair is settled more likely than not above EVEN, and cannot be settled below UNLIKELY.
EVEN, UNLIKELY = 0.5, 0.05
# Sets that are compared exactly at a time: those that promise most if nothing is confounded.
MOST_SETS = 64


@dataclass(frozen=True)
class Proposal:
    """What the next client should access, and what it is expected to settle.

    Parameters
    ----------
    labels : tuple of str
        Sorted; empty if nothing is undetermined.
    expected_gain : float
        Uncertainty about ordered pairs that the client is expected to remove, in bits.
    settles : tuple of (str, str)
        Undetermined pairs (ancestor?, descendant?) that it settles with probability above ½.
    chances : tuple of float
        The probability that each of `settles` is settled.
    cannot : tuple of (str, str)
        Undetermined pairs that it cannot settle: not accessed, or almost surely in one district.
    undetermined : int
        Number of ordered pairs that are open now.
    expected : float
        Expected number of open pairs that it settles, those that others imply included.
    rows : int or None
        Rows per regime that the chances hold for; None for exact moments.
    reason : str
        Why so many labels.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.setting("A", 0)
    >>> order = jc.recover([world.client(0), world.client(4)]).order
    >>> proposal = jc.next_client(order, size=3)
    >>> len(proposal.labels), proposal.undetermined == len(order.undetermined())
    (3, True)
    """

    __pydantic_config__: ClassVar = CLOSED

    labels: tuple[str, ...]
    expected_gain: float
    settles: tuple[Pair, ...]
    chances: tuple[float, ...]
    cannot: tuple[Pair, ...]
    undetermined: int
    expected: float = 0.0
    rows: int | None = None
    reason: str = ""

    def __str__(self) -> str:
        if not self.undetermined:
            return "Nothing is undetermined: no further client is needed."
        return (
            f"Next client: {', '.join(self.labels)}. Expected to settle {self.expected:.1f} of "
            f"{self.undetermined} open pairs ({self.expected_gain:.1f} bits)"
            f"{'' if self.rows is None else f' with {self.rows:,} rows per regime'}; it cannot "
            f"settle {len(self.cannot)} of them."
        )


def next_client(
    order: GlobalOrder, size: int | None = None, *, rows: int | None = None, seed: int = 0
) -> Proposal:
    """The labels that a client should access to settle the most.

    Parameters
    ----------
    order : GlobalOrder
    size : int, optional
        How many latents the client can access; at least 2. All labels are proposed if there are
        fewer. By default as many as pay: see `Proposal.reason`.
    rows : int, optional
        Rows per regime of the client; by default as many as a typical client of the study has.
    seed : int

    Returns
    -------
    Proposal

    Examples
    --------
    >>> import numpy as np
    >>> from jigsaw_crl import Fragment, PartialOrder, assemble
    >>> from jigsaw_crl.assembly.design import next_client
    >>> from jigsaw_crl.fragment.fragment import Statements
    >>> def client(name, a, d):
    ...     blocks = (frozenset([a]), frozenset([d]))
    ...     return Fragment(name, "null-cone", (a, d), blocks,
    ...                     PartialOrder.from_pairs(blocks, [blocks]), blocks,
    ...                     statements=Statements(np.array([[0, 1], [0, 0]])))
    >>> order = assemble([client("lab-1", "pump", "flow"), client("lab-2", "valve", "flow")])
    >>> next_client(order, size=2).labels
    ('pump', 'valve')
    """
    return propose(order, size, rows, seed)[0]


def propose(
    order: GlobalOrder, size: int | None, rows: int | None, seed: int
) -> tuple[Proposal, dict[Pair, float]]:
    """The proposal, and the chance that it settles each open pair: see `next_client`."""
    if size is not None and not _whole_number(size):
        raise InputError(
            f"a client of {size!r} latent{'' if size == 1 else 's'} settles nothing",
            "Ask for two latents or more.",
        )
    if rows is not None and not _whole_number(rows):
        raise InputError(f"{rows!r} rows are not a number of rows", "Ask for two rows or more.")
    if not order.undetermined():
        return Proposal((), 0.0, (), (), (), 0), {}
    search = SiteSearch(order, usual_rows(order) if rows is None else int(rows), seed)
    chosen, reason = search.choose(size)
    labels, chance = tuple(order.labels[i] for i in chosen), search.chances(chosen)
    chances = {
        (order.labels[a], order.labels[d]): round(float(chance[a, d]), 3)
        for a, d in np.argwhere(search.outlook.open).tolist()
    }
    ranked = sorted(chances, key=lambda pair: -chances[pair])
    likely = [pair for pair in ranked if chances[pair] > EVEN and set(pair) <= set(labels)]
    proposal = Proposal(
        labels=labels,
        expected_gain=float((search.bits * chance).sum()),
        settles=tuple(likely),
        chances=tuple(chances[pair] for pair in likely),
        cannot=tuple(pair for pair, chance in chances.items() if chance < UNLIKELY),
        undetermined=len(chances),
        expected=round(sum(chances.values()), 2),
        rows=search.rows,
        reason=reason,
    )
    return proposal, chances


def _whole_number(given: float) -> bool:
    """Is it a whole number from 2 on?"""
    whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
    return whole and given >= 2


class SiteSearch:
    """The search for the labels of a client, and the chances of what it finds.

    Parameters
    ----------
    order : GlobalOrder
    rows : int or None
        Rows per regime of the client; None for exact moments.
    seed : int
    """

    def __init__(self, order: GlobalOrder, rows: int | None, seed: int) -> None:
        self.order, self.rows = order, rows
        self.outlook = Outlook.of(order, seed)
        hard = _hard_labels(order)
        self.hard = hard[:, None] & hard
        self.graphs = Graphs.of(np.zeros_like(self.outlook.orders))
        self.trust = np.ones(self.hard.shape)
        if not hard.all():
            rng = np.random.default_rng([order.seed, seed])
            self.graphs = likely_graphs(order.panel, self.outlook.orders, rng)
            self.trust = np.where(self.hard, 1.0, trust_in_graphs(order.panel, self.graphs))

    @cached_property
    def bits(self) -> FloatArray:
        """Uncertainty about each open pair, in bits, shape (p, p)."""
        # Half an order is added to each side, so that no open pair is certain.
        P = (self.outlook.orders.sum(axis=0) + 0.5) / (len(self.outlook.orders) + 1.0)
        return np.where(self.outlook.open, (entr(P) + entr(1.0 - P)) / np.log(2), 0.0)

    @cached_property
    def worth(self) -> FloatArray:
        """Bits that are expected from each open pair, if a client has it and has it apart."""
        pairs = self.outlook.asked(np.arange(len(self.order)))
        always = np.ones((len(self.outlook.orders), len(pairs[0])))
        future = new_site(self.outlook, pairs, always, self.rows)
        return self.bits * self.trust * self.outlook.chance(future)

    def chances(self, labels: IntArray) -> FloatArray:
        """Probability that a client with these labels settles each open pair, shape (p, p)."""
        pairs = a, d = self.outlook.asked(labels)
        i, j = np.searchsorted(labels, a), np.searchsorted(labels, d)
        tells = self.graphs.apart(labels[None])[:, 0, i, j] | self.hard[a, d]
        future = new_site(self.outlook, pairs, tells * self.trust[a, d], self.rows)
        return self.outlook.chance(future)

    def choose(self, size: int | None) -> tuple[IntArray, str]:
        """The best set of labels that was found, sorted, and why it has so many."""
        p = len(self.order)
        largest = max(len(f.labels) for f in self.order.fragments)
        most = min(max(largest, 2) if size is None else int(size), p)
        worth = np.where(self.outlook.open, self.worth + self.worth.T, -1.0)
        first = np.unravel_index(np.argmax(worth), (p, p))
        sets = [np.sort(np.array(first))]
        while len(sets[-1]) < most:
            outside = np.setdiff1d(np.arange(p), sets[-1])
            sets.append(self._best([np.append(sets[-1], new) for new in outside]))
        if size is not None:
            return self._exchanged(sets[-1]), "as many labels as asked for"
        each = [self._gains(labels[None])[0] / len(labels) for labels in sets]
        best = int(np.argmax(each))
        chosen = self._exchanged(sets[best])
        bits = self._gains(chosen[None])[0] / len(chosen)
        reason = f"{len(chosen)} labels bring {bits:.2g} bits per label"
        if best + 1 < len(sets):
            reason += f"; with one more it would be {each[best + 1]:.2g}"
        elif len(chosen) < p:
            reason += "; the largest site so far has no more labels than that"
        else:
            reason += "; there are no more labels"
        return chosen, reason

    def _exchanged(self, labels: IntArray) -> IntArray:
        """The set after exchanges of one label for another, while they gain."""
        while len(labels) < len(self.order):
            outside = np.setdiff1d(np.arange(len(self.order)), labels)
            other = self._best(
                [np.append(labels[labels != x], new) for x in labels for new in outside]
            )
            before, after = self._gains(np.array([labels, other]))
            if after <= before + 1e-9:
                break
            labels = other
        return labels

    def _best(self, sets: list[IntArray]) -> IntArray:
        """The most promising of several sets of one size, sorted."""
        tried = np.sort(np.array(sets), axis=1)
        if len(tried) > MOST_SETS:
            plain = self.worth[tried[:, :, None], tried[:, None, :]].sum(axis=(1, 2))
            tried = tried[np.argsort(-plain, kind="stable")[:MOST_SETS]]
        return np.asarray(tried[int(np.argmax(self._gains(tried)))])

    def _gains(self, sets: IntArray) -> FloatArray:
        """Bits of the pairs that each set of labels, shape (n_sets, size), has apart."""
        a, d = sets[:, :, None], sets[:, None, :]
        apart = np.where(self.hard[a, d], 1.0, self.graphs.apart(sets).mean(axis=0))
        return np.asarray((self.worth[a, d] * apart).sum(axis=(1, 2)))


def _hard_labels(order: GlobalOrder) -> BoolArray:
    """Labels whose interventions are hard at most of their clients, shape (p,)."""
    hard, seen = np.zeros((2, len(order)))
    for fragment in order.fragments:
        at = [order.index(label) for label in fragment.labels]
        seen[at] += 1
        if fragment.hard is not None:
            hard[at] += np.array(fragment.hard.hard)
    return np.asarray(2 * hard > seen)
