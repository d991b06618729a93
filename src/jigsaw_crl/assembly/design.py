"""Which latents should the next client access?

A client can say something about the pairs that it sees in different districts; where interventions
are hard, about all of them. Labels that moved a single direction so far are proposed hard: other
interventions on them settle nothing about their ancestors. A pair is worth the bits that are
expected from a client that has it apart. Labels are added one by one, such that the worth of the
pairs that are likely apart grows, by cost. Without a size there are as many labels as bring the
most bits by cost, and at most as many as the largest client has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import entr

from jigsaw_crl.assembly.dissent import LEAST_CHANCE
from jigsaw_crl.assembly.futures import Outlook
from jigsaw_crl.assembly.verdict import OPEN
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import CLOSED
from jigsaw_crl.base.frozen import FrozenMapping
from jigsaw_crl.base.terminal import counted
from jigsaw_crl.base.text import few, pluralise

if TYPE_CHECKING:
    from jigsaw_crl.assembly.order import GlobalOrder

Pair = tuple[str, str]

# A pair is settled more likely than not above EVEN, and cannot be settled below UNLIKELY.
EVEN, UNLIKELY = 0.5, 0.05
# Sets that are compared exactly at a time: those that promise most if nothing is confounded.
MOST_SETS = 64
NO_COST: Mapping[str, float] = FrozenMapping({})


@dataclass(frozen=True, repr=False)
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
    reason : str
        Why this many labels.
    hard : tuple of str
        Labels whose interventions should be hard, which the expectation counts on: those so far are
        hard, or moved a single direction.
    kinds : str
        Which interventions to apply, in a sentence; empty if any kind helps.
    expects : str
        How many open pairs it settles, in words; at most so many if no client so far says anything.
    more_rows : str
        Where more rows may settle open pairs instead, in a sentence; empty if nowhere.

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
    reason: str = ""
    hard: tuple[str, ...] = ()
    kinds: str = ""
    expects: str = ""
    more_rows: str = ""

    def __str__(self) -> str:
        if not self.undetermined:
            return "Nothing is undetermined: no further client is needed."
        rest = f"; it cannot settle {len(self.cannot)} of them" if self.cannot else ""
        return " ".join(
            f"Next client: {', '.join(self.labels)}. {self.kinds} Such a client "
            f"{self.expects}{rest}.".split()
        )

    # A notebook shows what is readable.
    __repr__ = __str__


def next_client(
    order: GlobalOrder,
    size: int | None = None,
    *,
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
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.setting("A", 0)
    >>> order = jc.recover([world.client(0), world.client(4)]).order
    >>> jc.next_client(order, size=3, cannot=["z1"]).labels
    ('z2', 'z3', 'z5')
    """
    whole = isinstance(size, int | np.integer) and not isinstance(size, bool)
    if size is not None and not (whole and size >= 2):
        raise InputError(
            f"a client of {size!r} label{'' if size == 1 else 's'} settles nothing",
            "Ask for two labels or more.",
        )
    if not order.undetermined():
        return Proposal((), 0.0, (), (), (), 0)
    search = SiteSearch(order, seed, cost, cannot)
    chosen, reason = search.choose(size)
    labels, chance = tuple(order.labels[i] for i in chosen), search.chances(chosen)
    chances = {
        (order.labels[a], order.labels[d]): round(float(chance[a, d]), 3)
        for a, d in np.argwhere(search.outlook.open).tolist()
    }
    ranked = sorted(chances, key=lambda pair: -chances[pair])
    likely = [pair for pair in ranked if chances[pair] > EVEN and set(pair) <= set(labels)]
    gain, expected = float((search.bits * chance).sum()), sum(chances.values())
    weighs = order.mode == "evidence"
    bound = weighs and not search.outlook.words.total[1].max() > LEAST_CHANCE
    return Proposal(
        labels=labels,
        expected_gain=gain,
        settles=tuple(likely),
        chances=tuple(chances[pair] for pair in likely),
        cannot=tuple(pair for pair, chance in chances.items() if chance < UNLIKELY),
        undetermined=len(chances),
        expected=round(expected, 2),
        reason=reason,
        hard=tuple(order.labels[i] for i in chosen if search.hard[i, i]),
        kinds=_kinds(search, chosen),
        expects=(
            f"{'settles at most' if bound else 'is expected to settle'} {expected:.1f} of "
            f"{pluralise(len(chances), 'open pair')} ({gain:.2g} bits), if its interventions are "
            "as strong as those so far, and its rows as many"
        ),
        more_rows=_more_rows(order) if weighs else "",
    )


def _kinds(search: SiteSearch, chosen: IntArray) -> str:
    """Which interventions a client with these labels should apply; empty if any kind helps."""
    order = search.order
    if order.mode == "evidence" and order.use.withheld:
        return (
            "The system is not linear: apply hard interventions that shift the mean, and say that "
            f"they are hard, at a new client or again at {few(sorted(order.use.withheld))}. Others "
            "settle nothing."
        )
    hard, single = (
        few(order.labels[i] for i in chosen if some[i])
        for some in (np.diagonal(search.hard), search.make_hard)
    )
    if not hard:
        return ""
    why = "the expectation counts on it."
    if single:
        those = "" if single == hard else f" on {single}"
        why = f"those so far{those} moved a single direction, which settles nothing about their "
        why += "ancestors."
    return f"Make the interventions on {hard} hard, and say so: {why}"


class SiteSearch:
    """The search for the labels of a client; options as for `next_client`."""

    def __init__(
        self,
        order: GlobalOrder,
        seed: int = 0,
        cost: Mapping[str, float] = NO_COST,
        cannot: Collection[str] = (),
    ) -> None:
        self.order, self.cost, able = order, np.ones(len(order)), np.ones(len(order), dtype=bool)
        for label, amount in cost.items():
            if not (np.isfinite(amount) and amount > 0):
                raise InputError(f"the cost of {label!r} is {amount}", "Give a number above 0.")
            self.cost[order.index(label)] = amount
        able[[order.index(label) for label in cannot]] = False
        self.able = np.flatnonzero(able)
        if len(self.able) < 2:
            raise InputError(
                "fewer than two labels are left for a further client", "Exclude fewer labels."
            )
        self.outlook = Outlook(order, seed)
        # Exact moments keep the rule that a single direction means "no ancestors".
        self.make_hard = order.said.alike & (order.mode == "evidence")
        hard = _hard_labels(order) | self.make_hard
        self.hard = hard[:, None] & hard
        # A pair that a client found in one district against expectation may be confounded by a
        # latent without a label: it counts half, so that no client is proposed again and again.
        self.trust = np.ones(self.hard.shape)
        for sent in order.panel.rows if not hard.all() else ():
            unexpected = sent.together * _apart(self.outlook.orders, sent.members).mean(axis=0)
            self.trust[np.ix_(sent.members, sent.members)] *= 1.0 - 0.5 * unexpected
        self.trust[self.hard] = 1.0

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
        return self.bits * self.trust * self.outlook.chance(pairs, always, self.make_hard)

    def chances(self, labels: IntArray) -> FloatArray:
        """Probability that a client with these labels settles each open pair, shape (p, p)."""
        pairs = a, d = self.outlook.asked(labels)
        i, j = np.searchsorted(labels, a), np.searchsorted(labels, d)
        tells = _apart(self.outlook.orders, labels)[:, i, j] | self.hard[a, d]
        chance = tells * self.trust[a, d]
        return self.outlook.chance(pairs, chance, self.make_hard)

    def choose(self, size: int | None) -> tuple[IntArray, str]:
        """The best set of labels that was found, sorted, and why it has so many."""
        largest = max(2, *(len(f.labels) for f in self.order.fragments))
        most = min(largest if size is None else int(size), len(self.able))
        worth = (self.worth + self.worth.T) / (self.cost[:, None] + self.cost)
        grid = np.ix_(self.able, self.able)
        worth = np.where(self.outlook.open[grid], worth[grid], -1.0)
        first = np.unravel_index(np.argmax(worth), worth.shape)
        sets = [np.sort(self.able[np.array(first)])]
        for _ in counted(range(most - 2), most - 2):
            sets.append(self._with_one_more(sets[-1]))
        if size is not None:
            return sets[-1], "as many labels as asked for"
        every = counted(sets, len(sets))
        bits = [float((self.bits * self.chances(labels)).sum()) for labels in every]
        shares = [b / self.cost[labels].sum() for b, labels in zip(bits, sets, strict=True)]
        best = int(np.argmax(shares))
        by = "label" if (self.cost == 1.0).all() else "unit of cost"
        reason = "; ".join(
            f"{len(sets[k])} labels bring {bits[k]:.2g} bits, {shares[k]:.2g} per {by}"
            for k in range(best, min(best + 2, len(sets)))
        )
        return sets[best], reason

    def _with_one_more(self, labels: IntArray) -> IntArray:
        """The set with the label that promises most beside them, sorted.

        Where several promise the same, the one that is most likely a common cause of its pairs:
        several hidden causes may join a pair, and without all of them no single one helps.
        """
        outside = np.setdiff1d(self.able, labels)
        plain = (self.worth[labels].sum(axis=0) + self.worth[:, labels].sum(axis=1))[outside]
        above = self.outlook.orders[:, :, labels].astype(np.float32)
        worth = self.worth[np.ix_(labels, labels)]
        shared = np.einsum("nla,nld,ad->l", above, above, worth, optimize=True)
        ranked = outside[np.lexsort((-shared[outside], -plain / self.cost[outside]))]
        sets = [np.sort(np.append(labels, new)) for new in ranked[:MOST_SETS]]
        gains = [(self._gain(one), shared[new]) for one, new in zip(sets, ranked, strict=False)]
        return sets[max(range(len(sets)), key=gains.__getitem__)]

    def _gain(self, labels: IntArray) -> float:
        """Bits of the pairs that a client with these labels has apart, by cost."""
        grid = np.ix_(labels, labels)
        apart = _apart(self.outlook.orders, labels).mean(axis=0)
        bits = (self.worth[grid] * np.where(self.hard[grid], 1.0, apart)).sum()
        return float(bits / self.cost[labels].sum())


def _apart(orders: BoolArray, labels: IntArray) -> BoolArray:
    """Are two labels in different districts, if a client accesses these? Shape (n, size, size).

    Labels are joined by a common ancestor that is not accessed, with no accessed label between;
    districts are the components.
    """
    hidden = np.setdiff1d(np.arange(orders.shape[1]), labels)
    above, among = (orders[:, at[:, None], labels].astype(np.float32) for at in (hidden, labels))
    above = np.where(above @ among > 0, 0, above)
    joined = (np.swapaxes(above, 1, 2) @ above + np.eye(len(labels), dtype=np.float32)) > 0
    for _ in range(int(np.ceil(np.log2(len(labels))))):
        joined = joined.astype(np.float32) @ joined.astype(np.float32) > 0
    return np.asarray(~joined)


def _hard_labels(order: GlobalOrder) -> BoolArray:
    """Labels whose interventions are hard at most of their clients, shape (p,)."""
    hard, seen = np.zeros((2, len(order)))
    for fragment in order.fragments:
        at = [order.index(label) for label in fragment.labels]
        seen[at] += 1
        if fragment.hard is not None:
            hard[at] += np.array(fragment.hard.hard)
    return np.asarray(2 * hard > seen)


def _more_rows(order: GlobalOrder) -> str:
    """Where more rows may settle open pairs, in a sentence; empty if nowhere.

    A client must read the pair, and have it in two districts. How many rows it takes is not said:
    in simulations, numbers of rows for an even chance settled a fifth of the pairs.
    """
    is_open, found = order.verdicts == OPEN, []
    for rows, claims in zip(order.panel.rows, order.said.claims, strict=True):
        helps = (claims.says | claims.says.T) & ~rows.together
        found.append(
            (int((helps & is_open[np.ix_(rows.members, rows.members)]).sum()), rows.client)
        )
    told = [f"{pluralise(n, 'pair')} at {site}" for n, site in sorted(found, reverse=True) if n]
    return f"More rows may settle open pairs: {few(told)}." if told else ""
