"""The search for the labels of a further client.

Orders that agree with what is known are sampled, each with a graph that implies it and fits the
districts the clients reported. A client that accesses a set O of labels can say something about the
pairs within O that it sees in different districts; where interventions are hard, about all of them.
The worth of O is the entropy of the undetermined pairs among these, each times the chance that a
client with so many rows settles it (`futures`), averaged over the graphs.

Compiled functions are imported where they are used, for start-up time.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from jigsaw_crl.assembly.futures import Donors, Outlook, usual_rows
from jigsaw_crl.assembly.verdict import NO, OPEN, YES
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.order import cover_matrix, refuted, transitive_closure

if TYPE_CHECKING:
    from jigsaw_crl.assembly import GlobalOrder

__all__ = ["Pair", "SiteSearch"]

Pair = tuple[str, str]

N_ORDERS = 32
# Graphs tried per order; the one that best fits the reported districts is kept.
N_GRAPHS = 24
# Futures drawn per order.
N_FUTURES = 4
# Share of the non-cover pairs that have an edge, in the graphs tried.
EXTRA_EDGES = (0.0, 0.1, 0.25, 0.5)
# Work (graphs × edges × candidate sets) above which fewer exchanges are tried.
MOST_WORK = 3e9
# No chance is stated higher: in simulations, one pair in twenty of the surest was not settled.
MOST_CHANCE = 0.99


def _check_rows(rows: int | None) -> None:
    """Raise an `InputError` unless `rows` is None or a number of rows."""
    if rows is not None and (
        isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 2
    ):
        raise InputError(f"{rows!r} rows are not a number of rows", "Ask for two rows or more.")


def _hard_labels(order: GlobalOrder) -> BoolArray:
    """Labels whose interventions are hard at most of their clients, shape (p,)."""
    hard, seen = np.zeros((2, len(order.labels)))
    for fragment in order.fragments:
        at = [order.index(label) for label in fragment.labels]
        seen[at] += 1
        if fragment.hard is not None:
            hard[at] += np.array(fragment.hard.hard)
    return np.asarray(2 * hard > seen)


def _entropy(share: FloatArray) -> FloatArray:
    """In bits. Half a sample is added to each side, so that no pair is certain."""
    p = (share * N_ORDERS + 0.5) / (N_ORDERS + 1.0)
    out: FloatArray = -(p * np.log2(p) + (1 - p) * np.log2(1 - p))
    return out


# -- graphs -----------------------------------------------------------------------------------

Graphs = tuple[IntArray, IntArray, IntArray]


def _graphs(order: GlobalOrder, orders: list[BoolArray], rng: np.random.Generator) -> Graphs:
    """One graph per order: its covers and the further edges that fit the clients best."""
    from jigsaw_crl.assembly.districts import mismatch

    views, found = _reported(order)
    kept = []
    for matrix in orders:
        cover = cover_matrix(matrix)
        tries = [
            cover | (matrix & (rng.random(matrix.shape) < EXTRA_EDGES[n % len(EXTRA_EDGES)]))
            for n in range(N_GRAPHS)
        ]
        listed = _edges([(matrix, t) for t in tries])
        kept.append((matrix, tries[int(np.argmin(mismatch(*listed, views, found)))]))
    return _edges(kept)


def _edges(graphs: list[tuple[BoolArray, BoolArray]]) -> Graphs:
    """Edges of (order, graph) pairs, one graph after the other, descendants first."""
    sources, targets, bounds = [], [], [0]
    for matrix, graph in graphs:
        s, t = np.nonzero(graph)
        # A label has more descendants than any label below it.
        last_first = np.argsort(matrix.sum(axis=1)[s], kind="stable")
        sources.append(s[last_first])
        targets.append(t[last_first])
        bounds.append(bounds[-1] + len(s))
    return (
        np.concatenate(sources).astype(np.int64),
        np.concatenate(targets).astype(np.int64),
        np.array(bounds, dtype=np.int64),
    )


def _reported(order: GlobalOrder) -> tuple[BoolArray, IntArray]:
    """The labels each client accesses, and their districts there, shape (n_clients, p) each."""
    known = [f for f in order.fragments if f.districts is not None]
    views = np.zeros((len(known), len(order.labels)), dtype=bool)
    found = np.full(views.shape, -1, dtype=np.int64)
    for k, fragment in enumerate(known):
        for number, district in enumerate(fragment.districts or ()):
            members = [order.index(label) for label in district]
            views[k, members] = True
            found[k, members] = number
    return views, found


def _trust_in_graphs(order: GlobalOrder, graphs: Graphs, a: IntArray, d: IntArray) -> FloatArray:
    """Factor per pair: halved for each client that found it in one district against expectation.

    Such a pair may be confounded by a latent that has no label; without this factor the same client
    would be proposed again and again.
    """
    from jigsaw_crl.assembly.districts import chances

    trust = np.ones(len(a))
    for view, found in zip(*_reported(order), strict=True):
        together = view[a] & view[d] & (found[a] == found[d])
        trust[together] *= 1.0 - 0.5 * np.asarray(chances(*graphs, view, a, d))[together]
    return trust


# -- the set ----------------------------------------------------------------------------------


class SiteSearch:
    """The search for the labels of a client, and the chances of what it finds.

    Parameters
    ----------
    order : GlobalOrder
    a, d : array of int, shape (n_open,)
        The undetermined pairs.
    rows : int or None
    seed : int
    """

    def __init__(
        self, order: GlobalOrder, a: IntArray, d: IntArray, rows: int | None, seed: int
    ) -> None:
        self.order, self.a, self.d, self.rows = order, a, d, rows
        self.rng = np.random.default_rng([order.seed, seed, 11])
        self.orders = order.sample(N_ORDERS, seed=seed)
        self.hard = _hard_labels(order)
        self.graphs = _graphs(order, self.orders, self.rng)
        self.trust = _trust_in_graphs(order, self.graphs, a, d)
        if self.hard.all():
            # Hidden causes leave nothing open: graphs without edges have no districts.
            none = np.zeros(0, dtype=np.int64)
            self.graphs = (none, none, np.zeros(N_ORDERS + 1, dtype=np.int64))
            self.trust = np.ones(len(a))
        self.donors = None
        if order.mode == "evidence":
            self.outlook = Outlook.of(order)
            self.donors = Donors.of(self.outlook.model.said, rows, self.rng)

    @classmethod
    def of(cls, order: GlobalOrder, rows: int | None, seed: int) -> SiteSearch | None:
        """The search for an order; None if nothing is open."""
        _check_rows(rows)
        opened = (order.verdicts == OPEN) & ~np.eye(len(order.labels), dtype=bool)
        # Contiguous even for a single pair: numba caches a function once per memory layout, and
        # processes that fill the cache at the same time can mix the versions up.
        a, d = (np.ascontiguousarray(i) for i in np.nonzero(opened))
        if not len(a):
            return None
        return cls(order, a, d, usual_rows(order) if rows is None else int(rows), seed)

    @cached_property
    def power(self) -> FloatArray:
        """Probability that a client that has both labels, apart, settles each open pair itself."""
        p = len(self.order.labels)
        if self.donors is None:
            return np.ones(len(self.a))
        apart = np.ones((1, len(self.a)), dtype=bool)
        found = self._share(np.ones(p, dtype=bool), apart, implied=False)
        return np.asarray(found[self.a, self.d])

    @cached_property
    def worth(self) -> FloatArray:
        """Bits that are expected from each open pair, if a client has it and has it apart."""
        bits = _entropy(np.mean([o[self.a, self.d] for o in self.orders], axis=0))
        return np.asarray(bits * self.trust * self.power)

    def gains(
        self,
        accessed: BoolArray,
        worth: FloatArray,
        leave: IntArray | None = None,
        enter: IntArray | None = None,
    ) -> FloatArray:
        """Expected worth of the set, or of sets that differ by labels: see `swap_gains`."""
        from jigsaw_crl.assembly.districts import swap_gains

        none = np.array([-1])
        enter = none if enter is None else enter
        leave = np.full_like(enter, -1) if leave is None else leave
        return np.asarray(swap_gains(*self.graphs, accessed, self.a, self.d, worth, leave, enter))

    def choose(self, most: int, *, fixed: bool) -> tuple[BoolArray, str]:
        """The best set found, and why it has so many labels.

        Labels are added one by one, then exchanged while that gains. With `fixed`, there are
        `most` of them; otherwise as many as settle the most pairs per label, and at most `most`.
        """
        accessed = np.zeros(len(self.order.labels), dtype=bool)
        # Start with the most uncertain pair; ties are broken at random.
        pair = int(np.argmax(self.worth + 1e-9 * self.rng.random(len(self.worth))))
        accessed[[self.a[pair], self.d[pair]]] = True
        sets = [accessed.copy()]
        while accessed.sum() < most:
            enter = self.rng.permutation(np.flatnonzero(~accessed)).astype(np.int64)
            gains = self.gains(accessed, self.worth, enter=enter)
            accessed[enter[int(np.argmax(gains))]] = True
            sets.append(accessed.copy())
        if fixed:
            return self._exchanged(sets[-1]), "as many labels as asked for"
        counted = self.trust * self.power
        per_label = np.array([self.gains(s, counted)[0] / s.sum() for s in sets])
        best = int(np.argmax(per_label))
        size = best + 2
        reason = f"{size} labels settle {per_label[best]:.2g} open pairs per label"
        if best + 1 < len(sets):
            reason += f"; with one more it would be {per_label[best + 1]:.2g}"
        elif size < len(accessed):
            reason += "; the largest site so far has no more labels than that"
        else:
            reason += "; there are no more labels"
        return self._exchanged(sets[best]), reason

    def _exchanged(self, accessed: BoolArray) -> BoolArray:
        """The set after exchanges of one label for another, while they gain."""
        size, p = int(accessed.sum()), len(accessed)
        per_set = len(self.graphs[0]) + (len(self.graphs[2]) - 1) * len(self.a)
        rounds = int(np.clip(MOST_WORK / (per_set * size * max(p - size, 1)), 1, 30))
        best = float(self.gains(accessed, self.worth)[0])
        for _ in range(rounds):
            pairs = np.array(
                [(i, j) for i in np.flatnonzero(accessed) for j in np.flatnonzero(~accessed)],
                dtype=np.int64,
            ).reshape(-1, 2)
            if not len(pairs):
                break
            pairs = pairs[self.rng.permutation(len(pairs))]
            gains = self.gains(accessed, self.worth, pairs[:, 0].copy(), pairs[:, 1].copy())
            top = int(np.argmax(gains))
            if gains[top] <= best + 1e-9:
                break
            best = float(gains[top])
            accessed[pairs[top, 0]], accessed[pairs[top, 1]] = False, True
        return accessed

    # -- its chances --------------------------------------------------------------------------

    def chances(self, accessed: BoolArray) -> dict[Pair, float]:
        """Probability that a client that accesses the set settles each open pair."""
        from jigsaw_crl.assembly.districts import chances

        source, target, bounds = self.graphs
        apart = np.array(
            [
                chances(source, target, bounds[g : g + 2].copy(), accessed, self.a, self.d) > 0
                for g in range(N_ORDERS)
            ]
        )
        apart |= self.hard[self.a] & self.hard[self.d] & accessed[self.a] & accessed[self.d]
        odds = self._share(accessed, apart, implied=True)
        labels = self.order.labels
        return {
            (labels[i], labels[j]): round(min(float(odds[i, j]), MOST_CHANCE), 3)
            for i, j in zip(self.a.tolist(), self.d.tolist(), strict=True)
        }

    def _share(self, accessed: BoolArray, apart: BoolArray, *, implied: bool) -> FloatArray:
        """Share of the futures in which each pair is settled, shape (p, p).

        `apart`: per order (or once for all), is each open pair in different districts?
        """
        inside = accessed[self.a] & accessed[self.d] & apart.any(axis=0)
        # One entry speaks of both directions of a pair.
        key = np.minimum(self.a, self.d) * len(accessed) + np.maximum(self.a, self.d)
        _, first = np.unique(np.where(inside, key, -1), return_index=True)
        n = np.array([k for k in first if inside[k]], dtype=np.int64)
        a, d = self.a[n], self.d[n]
        number = np.arange(N_ORDERS * N_FUTURES) % N_ORDERS
        speaks = apart[number % len(apart)][:, n]
        if implied:
            speaks &= self.rng.random(speaks.shape) < self.trust[n]
        settled = np.zeros((len(accessed),) * 2)
        entries = self._entries(a, d, number)
        for f, g in enumerate(number):
            who = np.flatnonzero(speaks[f])
            settled += self._settled(a[who], d[who], entries[f, who], self.orders[g], implied)
        # Half a future is added to each side, so that no chance is certain.
        return np.asarray((settled + 0.5) / (len(number) + 1.0))

    def _entries(self, a: IntArray, d: IntArray, number: IntArray) -> IntArray:
        """What the client says about each pair in each future: entries of `donors`."""
        out = np.zeros((len(number), len(a)), dtype=np.int64)
        if self.donors is None:
            return out
        stack = np.array(self.orders)[number]
        relation = stack[:, a, d] + 2 * stack[:, d, a]
        for column, (i, j) in enumerate(zip(a.tolist(), d.tolist(), strict=True)):
            out[:, column] = self.donors.drawn(
                i, j, relation[:, column], self.outlook.probability, self.rng
            )
        return out

    def _settled(
        self, a: IntArray, d: IntArray, entries: IntArray, truth: BoolArray, implied: bool
    ) -> BoolArray:
        """The pairs that are settled in one future, in which `truth` is the order."""
        if self.donors is not None:
            pooled = self.outlook.model.pooled
            return self.outlook.settled(self.donors.added(pooled, a, d, entries, 1.0), self.rng)
        verdicts = self.order.verdicts
        yes, no = verdicts == YES, verdicts == NO
        for i, j in ((a, d), (d, a)):
            yes[i, j] |= truth[i, j]
            no[i, j] |= ~truth[i, j]
        above = transitive_closure(yes)
        return np.asarray(above | refuted(above, no & ~above))
