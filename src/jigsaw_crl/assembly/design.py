"""Which latents should the next client access?

Orders that agree with what is known are sampled, each with a graph that implies it and fits the
districts the clients reported. The worth of a set O of labels is the entropy of the undetermined
pairs within O that a client accessing O would see in different districts, averaged over the graphs:
such a client settles exactly those pairs.

Compiled functions are imported where they are used, for start-up time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jigsaw_crl.assembly.verdict import OPEN
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.order import cover_matrix

if TYPE_CHECKING:
    from jigsaw_crl.assembly import GlobalOrder

__all__ = ["Proposal", "next_client"]

Pair = tuple[str, str]

N_ORDERS = 32
# Graphs tried per order; the one that best fits the reported districts is kept.
N_GRAPHS = 24
# Share of the non-cover pairs that have an edge, in the graphs tried.
EXTRA_EDGES = (0.0, 0.1, 0.25, 0.5)
# Work (graphs × edges × candidate sets) above which fewer exchanges are tried.
MOST_WORK = 3e9
# A pair is settled more likely than not above LIKELY, and cannot be settled below UNLIKELY.
LIKELY, UNLIKELY = 0.5, 0.05


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

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.setting("A", 0)
    >>> order = jc.recover([world.client(0), world.client(4)]).order
    >>> proposal = jc.next_client(order, size=3)
    >>> len(proposal.labels), proposal.undetermined == len(order.undetermined())
    (3, True)
    """

    labels: tuple[str, ...]
    expected_gain: float
    settles: tuple[Pair, ...]
    chances: tuple[float, ...]
    cannot: tuple[Pair, ...]
    undetermined: int

    def __str__(self) -> str:
        if not self.undetermined:
            return "Nothing is undetermined: no further client is needed."
        return (
            f"Next client: {', '.join(self.labels)}. Expected to settle "
            f"{sum(self.chances):.1f} or more of {self.undetermined} open pairs "
            f"({self.expected_gain:.1f} bits); it cannot settle {len(self.cannot)} of them."
        )


def next_client(order: GlobalOrder, size: int, *, seed: int = 0) -> Proposal:
    """The `size` labels that a client should access to settle the most.

    Parameters
    ----------
    order : GlobalOrder
    size : int
        How many latents the client can access; at least 2. All labels are proposed if there are
        fewer.
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
    labels = order.labels
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 2:
        raise InputError(
            f"a client of {size!r} latent{'' if size == 1 else 's'} settles nothing",
            "Ask for two latents or more.",
        )
    size = min(int(size), len(labels))
    off = ~np.eye(len(labels), dtype=bool)
    # Contiguous even for a single pair: numba caches a function once per memory layout, and
    # processes that fill the cache at the same time can mix the versions up.
    a, d = (np.ascontiguousarray(i) for i in np.nonzero((order.verdicts == OPEN) & off))
    if not len(a):
        return Proposal((), 0.0, (), (), (), 0)
    rng = np.random.default_rng([order.seed, seed, 11])
    orders = order.sample(N_ORDERS, seed=seed)
    graphs = _graphs(order, orders, rng)
    worth = _entropy(np.mean([o[a, d] for o in orders], axis=0))
    worth = worth * _trust_in_graphs(order, graphs, a, d)
    chosen = _choose(graphs, len(labels), size, a, d, worth, rng)
    from jigsaw_crl.assembly.districts import chances

    odds = np.asarray(chances(*graphs, chosen, a, d))
    pairs = [(labels[i], labels[j]) for i, j in zip(a, d, strict=True)]
    likely = [n for n in np.argsort(-odds, kind="stable").tolist() if odds[n] > LIKELY]
    return Proposal(
        labels=tuple(labels[i] for i in np.flatnonzero(chosen)),
        expected_gain=float(odds @ worth),
        settles=tuple(pairs[n] for n in likely),
        chances=tuple(float(odds[n]) for n in likely),
        cannot=tuple(pair for pair, chance in zip(pairs, odds, strict=True) if chance < UNLIKELY),
        undetermined=len(pairs),
    )


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


def _choose(
    graphs: Graphs,
    p: int,
    size: int,
    a: IntArray,
    d: IntArray,
    worth: FloatArray,
    rng: np.random.Generator,
) -> BoolArray:
    """The best set found by adding labels one by one, then exchanging labels while that gains."""
    from jigsaw_crl.assembly.districts import swap_gains

    accessed = np.zeros(p, dtype=bool)
    # Start with the most uncertain pair; ties are broken at random.
    pair = int(np.argmax(worth + 1e-9 * rng.random(len(worth))))
    accessed[[a[pair], d[pair]]] = True
    while accessed.sum() < size:
        enter = rng.permutation(np.flatnonzero(~accessed)).astype(np.int64)
        gains = swap_gains(*graphs, accessed, a, d, worth, np.full_like(enter, -1), enter)
        accessed[enter[int(np.argmax(gains))]] = True
    per_set = len(graphs[0]) + (len(graphs[2]) - 1) * len(a)
    rounds = int(np.clip(MOST_WORK / (per_set * size * max(p - size, 1)), 1, 30))
    best = float(swap_gains(*graphs, accessed, a, d, worth, np.array([-1]), np.array([-1]))[0])
    for _ in range(rounds):
        pairs = np.array(
            [(i, j) for i in np.flatnonzero(accessed) for j in np.flatnonzero(~accessed)],
            dtype=np.int64,
        ).reshape(-1, 2)
        if not len(pairs):
            break
        pairs = pairs[rng.permutation(len(pairs))]
        gains = swap_gains(*graphs, accessed, a, d, worth, pairs[:, 0].copy(), pairs[:, 1].copy())
        top = int(np.argmax(gains))
        if gains[top] <= best + 1e-9:
            break
        best = float(gains[top])
        accessed[pairs[top, 0]], accessed[pairs[top, 1]] = False, True
    return accessed
