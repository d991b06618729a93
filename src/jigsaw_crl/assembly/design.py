"""Which latents should the next client access?

A client can say something about the pairs that it sees in different districts; where interventions
are hard, about all of them. Labels that moved a single direction so far are proposed hard: other
interventions on them settle nothing about their ancestors. A pair is worth the bits that are
expected from a client that has it apart. Labels are added one by one, then exchanged, such that the
worth of the pairs that are likely apart grows, by cost. Without a size there are as many labels as
bring the most bits by cost, and at most as many as the largest client has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import entr

from jigsaw_crl.assembly.districts import Graphs, likely_graphs, trust_in_graphs
from jigsaw_crl.assembly.futures import Outlook, new_site, usual_rows
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.frozen import CLOSED, FrozenMapping
from jigsaw_crl.base.progress import counted
from jigsaw_crl.base.text import few, pluralise

if TYPE_CHECKING:
    from jigsaw_crl.assembly import GlobalOrder

__all__ = ["EVEN", "Pair", "Proposal", "SiteSearch", "next_client", "propose"]

Pair = tuple[str, str]

# A pair is settled more likely than not above EVEN, and cannot be settled below UNLIKELY.
EVEN, UNLIKELY = 0.5, 0.05
# Sets that are compared exactly at a time: those that promise most if nothing is confounded.
MOST_SETS = 64
NO_COST: Mapping[str, float] = FrozenMapping({})


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
    hard : tuple of str
        Labels whose interventions should be hard: soft ones settle nothing about their ancestors.
    at_most : bool
        No client so far says anything, so the chances are those of a client that is always right.

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
    hard: tuple[str, ...] = ()
    at_most: bool = False

    @property
    def kinds(self) -> str:
        """Which interventions are to be hard, in a sentence; empty if none needs to be."""
        if not self.hard:
            return ""
        return (
            f"Make the interventions on {few(self.hard)} hard, and say so: those so far moved a "
            "single direction, which settles nothing about their ancestors."
        )

    @property
    def expects(self) -> str:
        """How many open pairs it settles, in words."""
        settles = "settles at most" if self.at_most else "is expected to settle"
        each = "" if self.rows is None else f" with {self.rows:,} rows per regime"
        pairs = pluralise(self.undetermined, "open pair")
        return (
            f"{settles} {self.expected:.1f} of {pairs}{each} ({self.expected_gain:.2g} bits), if "
            "its interventions are as strong as those so far"
        )

    def __str__(self) -> str:
        if not self.undetermined:
            return "Nothing is undetermined: no further client is needed."
        return " ".join(
            f"Next client: {', '.join(self.labels)}. {self.kinds} Such a client {self.expects}; it "
            f"cannot settle {len(self.cannot)} of them.".split()
        )


def next_client(
    order: GlobalOrder,
    size: int | None = None,
    *,
    rows: int | None = None,
    seed: int = 0,
    cost: Mapping[str, float] = NO_COST,
    cannot: Collection[str] = (),
) -> Proposal:
    """The labels that a client should access to settle the most.

    Parameters
    ----------
    order : GlobalOrder
    size : int, optional
        How many labels the client can access; at least 2. All labels are proposed if there are
        fewer. By default as many as pay: see `Proposal.reason`.
    rows : int, optional
        Rows per regime of the client; by default as many as a typical client of the study has.
    seed : int
    cost : mapping of str to float, optional
        What an intervention on a label costs; 1 for labels that are not named.
    cannot : collection of str, optional
        Labels on which the client cannot intervene.

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
    return propose(order, size, rows, seed, cost=cost, cannot=cannot)[0]


def propose(
    order: GlobalOrder,
    size: int | None,
    rows: int | None,
    seed: int,
    *,
    cost: Mapping[str, float] = NO_COST,
    cannot: Collection[str] = (),
) -> tuple[Proposal, dict[Pair, float]]:
    """The proposal, and the chance that it settles each open pair: see `next_client`."""
    if size is not None and not _whole_number(size):
        raise InputError(
            f"a client of {size!r} label{'' if size == 1 else 's'} settles nothing",
            "Ask for two labels or more.",
        )
    if rows is not None and not _whole_number(rows):
        raise InputError(f"{rows!r} rows are not a number of rows", "Ask for two rows or more.")
    if not order.undetermined():
        return Proposal((), 0.0, (), (), (), 0), {}
    usual = usual_rows(order) if rows is None else int(rows)
    search = SiteSearch(order, usual, seed, *_feasible(order, cost, cannot))
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
        hard=tuple(order.labels[i] for i in chosen if search.make_hard[i]),
        at_most=order.mode == "evidence" and not search.outlook.words.any_speaks,
    )
    return proposal, chances


def _feasible(
    order: GlobalOrder, cost: Mapping[str, float], cannot: Collection[str]
) -> tuple[FloatArray, BoolArray]:
    """The cost of each label, and those that a client can have, shape (p,) each."""
    costs, able = np.ones(len(order)), np.ones(len(order), dtype=bool)
    for label, amount in cost.items():
        if not (np.isfinite(amount) and amount > 0):
            raise InputError(f"the cost of {label!r} is {amount}", "Give a number above 0.")
        costs[order.index(label)] = amount
    able[[order.index(label) for label in cannot]] = False
    if able.sum() < 2:
        raise InputError(
            "fewer than two labels are left for a further client", "Exclude fewer labels."
        )
    return costs, able


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
    cost : array, shape (p,)
        Of an intervention on each label.
    able : array of bool, shape (p,)
        Labels that the client can have.
    """

    def __init__(
        self,
        order: GlobalOrder,
        rows: int | None,
        seed: int,
        cost: FloatArray | None = None,
        able: BoolArray | None = None,
    ) -> None:
        self.order, self.rows = order, rows
        self.cost = np.ones(len(order)) if cost is None else cost
        self.able = np.ones(len(order), dtype=bool) if able is None else able
        self.outlook = Outlook.of(order, seed)
        # Exact moments keep the rule that a single direction means "no ancestors".
        self.make_hard = order.said.alike & (order.mode == "evidence")
        hard = _hard_labels(order) | self.make_hard
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
        future = new_site(self.outlook, pairs, always, self.rows, self.make_hard)
        return self.bits * self.trust * self.outlook.chance(future)

    def chances(self, labels: IntArray) -> FloatArray:
        """Probability that a client with these labels settles each open pair, shape (p, p)."""
        pairs = a, d = self.outlook.asked(labels)
        i, j = np.searchsorted(labels, a), np.searchsorted(labels, d)
        tells = self.graphs.apart(labels[None])[:, 0, i, j] | self.hard[a, d]
        chance = tells * self.trust[a, d]
        future = new_site(self.outlook, pairs, chance, self.rows, self.make_hard)
        return self.outlook.chance(future)

    def choose(self, size: int | None) -> tuple[IntArray, str]:
        """The best set of labels that was found, sorted, and why it has so many."""
        able = np.flatnonzero(self.able)
        largest = max(len(f.labels) for f in self.order.fragments)
        most = min(max(largest, 2) if size is None else int(size), len(able))
        both = self.able[:, None] & self.able
        worth = (self.worth + self.worth.T) / (self.cost[:, None] + self.cost)
        first = np.unravel_index(
            np.argmax(np.where(both & self.outlook.open, worth, -1.0)), both.shape
        )
        sets = [np.sort(np.array(first))]
        for _ in counted(range(most - 2), most - 2):
            outside = np.setdiff1d(able, sets[-1])
            sets.append(self._best([np.append(sets[-1], new) for new in outside]))
        if size is not None:
            return self._exchanged(sets[-1]), "as many labels as asked for"
        best = int(np.argmax([self._by_cost(labels[None])[0] for labels in sets]))
        chosen = self._exchanged(sets[best])
        reason = self._told(chosen)
        if best + 1 < len(sets):
            reason += f"; {self._told(sets[best + 1])}"
        elif len(chosen) < len(able):
            reason += "; the largest client so far has no more labels than that"
        else:
            reason += "; there are no more labels"
        return chosen, reason

    def _told(self, labels: IntArray) -> str:
        """The bits that a client with these labels brings, in all and by cost."""
        bits, cost = float((self.bits * self.chances(labels)).sum()), self.cost[labels].sum()
        by = "label" if (self.cost == 1.0).all() else "unit of cost"
        return f"{len(labels)} labels bring {bits:.2g} bits, {bits / cost:.2g} per {by}"

    def _exchanged(self, labels: IntArray) -> IntArray:
        """The set after exchanges of one label for another, while they gain."""
        while len(labels) < self.able.sum():
            outside = np.setdiff1d(np.flatnonzero(self.able), labels)
            other = self._best(
                [np.append(labels[labels != x], new) for x in labels for new in outside]
            )
            before, after = self._by_cost(np.array([labels, other]))
            if after <= before + 1e-9:
                break
            labels = other
        return labels

    def _best(self, sets: list[IntArray]) -> IntArray:
        """The most promising of several sets of one size, sorted."""
        tried = np.sort(np.array(sets), axis=1)
        if len(tried) > MOST_SETS:
            plain = self.worth[tried[:, :, None], tried[:, None, :]].sum(axis=(1, 2))
            plain = plain / self.cost[tried].sum(axis=1)
            tried = tried[np.argsort(-plain, kind="stable")[:MOST_SETS]]
        return np.asarray(tried[int(np.argmax(self._by_cost(tried)))])

    def _by_cost(self, sets: IntArray) -> FloatArray:
        """Gains of sets of labels, shape (n_sets, size), by what they cost."""
        return np.asarray(self._gains(sets) / self.cost[sets].sum(axis=1))

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
