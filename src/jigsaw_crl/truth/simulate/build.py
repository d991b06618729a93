"""Build a world: one of the paper's settings, a random one, or one with a given graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

import numpy as np

from jigsaw_crl.base.arrays import ArrayLike, FloatArray
from jigsaw_crl.base.errors import InputError, choose
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.truth.simulate.graphs import FAMILIES, SETTINGS
from jigsaw_crl.truth.simulate.interventions import Intervention
from jigsaw_crl.truth.simulate.sem import SEM
from jigsaw_crl.truth.simulate.systems import SYSTEMS
from jigsaw_crl.truth.simulate.views import View
from jigsaw_crl.truth.simulate.world import World, check_seed


def setting(
    name: str,
    seed: int = 0,
    *,
    intervention: Intervention | str = "paper",
    system: str = "linear",
    shuffle: bool = True,
) -> World:
    """Setting A, B or C of the paper; mixings and interventions are drawn from the seed.

    Examples
    --------
    >>> from jigsaw_crl.truth.simulate import setting
    >>> setting("B", seed=3)
    World(8 latents, 4 clients, seed 3)
    """
    data = choose(name, SETTINGS, "setting")
    return world_from_graph(
        data.matrix(),
        [[node - 1 for node in nodes] for nodes in data.node_sets],
        data.feature_counts,
        seed,
        intervention=intervention,
        system=system,
        shuffle=shuffle,
    )


def random_world(
    n_latent: int,
    n_clients: int,
    coverage: float,
    seed: int = 0,
    *,
    graph: str = "er",
    strength: float = 1.0,
    features: float = 1.5,
    intervention: Intervention | str = "paper",
    system: str = "linear",
    shuffle: bool = True,
) -> World:
    """A random world; by default one of the paper's sensitivity study.

    Edges have weights from Unif[−1, 1]. Each node belongs to O_k with probability `coverage`, given
    that the client has at least two; a client with p_k latents has ⌈1.5 p_k⌉ features.

    Parameters
    ----------
    n_latent, n_clients : int
        p (at least 2) and K.
    coverage : float
        q, in (0, 1].
    seed : int
    graph : {"er", "sparse", "dense", "chain", "tree", "mid-hub", "root-hub", "layered", "star", \
            "two-stars", "bipartite", "scale-free"}
        Family of the graph. "er" is the paper's: each admissible edge is present with probability
        min(1, 3/p); "sparse" has half and "dense" twice as many edges. "chain" is one path; in a
        "tree" every node has one parent; "mid-hub" has half of the nodes before and half behind
        one node; in "root-hub" one root causes all others; "layered" has edges between
        neighbouring layers of √p nodes only. "star" and "two-stars" have one or two causes of all
        others, "bipartite" causes and effects, and in "scale-free" few nodes have most edges.
    strength : float
        Every edge weight is multiplied by it.
    features : float
        Features per latent of a client, at least 1.
    intervention : Intervention or str
        See `Intervention` and `INTERVENTIONS`.
    system : str
        How causes act: a key of `SYSTEMS`.
    shuffle : bool
        Name the labels, and list them, in an order that is unrelated to the graph.

    Examples
    --------
    >>> from jigsaw_crl.truth.simulate import Intervention, random_world
    >>> random_world(10, 15, 0.6, seed=1)
    World(10 latents, 15 clients, seed 1)
    >>> chain = random_world(5, 1, 1.0, graph="chain", intervention=Intervention("hard", shift=2))
    >>> len(chain.order.pairs())
    10
    """
    for name, value, fits, remedy in (
        ("n_latent", n_latent, n_latent >= 2, "A world needs at least two latents."),
        ("n_clients", n_clients, n_clients >= 1, "A world needs at least one client."),
        ("coverage", coverage, 0 < coverage <= 1, "Pass a probability above 0, at most 1."),
        ("strength", strength, 0 < strength < np.inf, "Pass a finite number above 0."),
        ("features", features, 1 <= features < np.inf, "Pass a number per latent, at least 1."),
    ):
        if not fits:
            raise InputError(f"{name} is {value}", remedy)
    graph_rng, view_rng = _streams(seed, "graph", 2)
    present = choose(graph, FAMILIES, "graph family")(n_latent, graph_rng)
    A = np.where(present, strength * graph_rng.uniform(-1, 1, present.shape), 0.0)
    node_sets = [_random_nodes(n_latent, coverage, view_rng) for _ in range(n_clients)]
    counts = [ceil(features * len(nodes)) for nodes in node_sets]
    return world_from_graph(
        A, node_sets, counts, seed, intervention=intervention, system=system, shuffle=shuffle
    )


def _random_nodes(n_latent: int, coverage: float, rng: np.random.Generator) -> list[int]:
    """Each node with probability `coverage`, given that there are at least two."""
    # Rejection sampling takes too long at a tiny coverage, so the number of nodes is drawn first.
    sizes = np.arange(2, n_latent + 1)
    from scipy.stats import binom  # here because it takes half a second to import

    weight = binom.logpmf(sizes, n_latent, coverage)
    chance = np.exp(weight - weight.max())
    size = int(rng.choice(sizes, p=chance / chance.sum()))
    return sorted(rng.choice(n_latent, size=size, replace=False).tolist())


def world_from_graph(
    adjacency: ArrayLike,
    node_sets: Sequence[Iterable[int | str]],
    feature_counts: Sequence[int] | None,
    seed: int = 0,
    *,
    intervention: Intervention | str = "paper",
    names: Sequence[str] | None = None,
    client_names: Sequence[str] | None = None,
    variances: ArrayLike | None = None,
    system: str = "linear",
    shuffle: bool = True,
) -> World:
    """A world with a given graph.

    Parameters
    ----------
    adjacency : array, shape (p, p)
        The weights A, `A[i, j]` the direct effect of j on i; an array of bool marks edges whose
        weights are then drawn from Unif[−1, 1].
    node_sets : sequence of iterable of int or str
        Per client, the nodes it accesses, by number or by name.
    feature_counts : sequence of int, or None
        n_k; by default ⌈1.5 p_k⌉.
    names : sequence of str, optional
        One label per node; by default z1, z2, … assigned at random.
    client_names : sequence of str, optional
    variances : array, shape (p,), optional
        Noise variances; by default 1.
    seed, intervention, system, shuffle
        As for `random_world`; labels that are named are only listed in another order.

    Examples
    --------
    >>> from jigsaw_crl.truth.simulate import world_from_graph
    >>> A = [[0, 0, 0], [0.8, 0, 0], [0, -0.7, 0]]
    >>> world = world_from_graph(A, [["pump", "tank"]], None, names=["pump", "valve", "tank"])
    >>> sorted(world.order.pairs())
    [('pump', 'tank'), ('pump', 'valve'), ('valve', 'tank')]
    >>> world.truth(0).parents
    frozenset({('pump', 'tank')})
    """
    name_rng, mixing_rng, weight_rng, order_rng = _streams(seed, "clients", 4)
    A = _weights(adjacency, weight_rng)
    p = len(A)
    deal = name_rng.permutation(p) if shuffle else np.arange(p)
    if names is None:
        width = len(str(p))
        names = [f"z{deal[node] + 1:0{width}d}" for node in range(p)]
    labels = tuple(str(names[node]) for node in np.argsort(deal)) if len(names) == p else ()
    PartialOrder.from_matrix(names, (A != 0).T)  # raises on cycles, repeated and missing names
    sets = [_nodes(nodes, names) for nodes in node_sets]
    counts = [ceil(1.5 * len(s)) for s in sets] if feature_counts is None else list(feature_counts)
    callers = client_names or [f"client-{k + 1:0{len(str(len(sets)))}d}" for k in range(len(sets))]
    if not sets or not len(sets) == len(counts) == len(callers) == len(set(callers)):
        raise InputError(
            f"{len(sets)} node sets, {len(counts)} feature counts, {len(set(callers))} names",
            "Give every client one of each.",
        )
    views = []
    for name, nodes, count in zip(callers, sets, counts, strict=True):
        if count < len(nodes):
            raise InputError(
                f"{count} features cannot determine {len(nodes)} latents",
                "Give the client at least as many features as latents.",
                client=name,
            )
        own = order_rng.permutation(nodes) if shuffle else np.array(nodes, dtype=np.intp)
        views.append(View(name, own, _mixing(count, len(nodes), mixing_rng)))
    sigma = np.ones(p) if variances is None else np.asarray(variances, dtype=np.float64)
    if sigma.shape != (p,) or not (sigma > 0).all():
        raise InputError("the noise variances do not fit", f"Pass {p} positive numbers.")
    choose(system, SYSTEMS, "system")
    return World(
        SEM(A, sigma, np.zeros(p)),
        tuple(map(str, names)),
        labels,
        tuple(views),
        Intervention.named(intervention),
        int(seed),
        system,
    )


def _streams(seed: int, purpose: str, count: int) -> list[np.random.Generator]:
    root = np.random.SeedSequence([check_seed(seed), {"graph": 1, "clients": 2}[purpose]])
    return [np.random.default_rng(s) for s in root.spawn(count)]


def _weights(adjacency: ArrayLike, rng: np.random.Generator) -> FloatArray:
    given = np.asarray(adjacency)
    if given.ndim != 2 or given.shape[0] != given.shape[1] or len(given) < 2:
        raise InputError(
            f"the adjacency has shape {given.shape}",
            "Pass a square matrix with one row per latent, at least two.",
        )
    if given.dtype == bool:
        return np.where(given, rng.uniform(-1, 1, given.shape), 0.0)
    A = np.asarray(given, dtype=np.float64)
    if not np.isfinite(A).all():
        raise InputError("a weight is not finite", "Pass finite weights.")
    return A


def _nodes(nodes: Iterable[int | str], names: Sequence[str]) -> list[int]:
    position = {name: i for i, name in enumerate(names)}
    found = sorted({position.get(x, -1) if isinstance(x, str) else int(x) for x in nodes})
    if not found or found[0] < 0 or found[-1] >= len(names):
        raise InputError(
            "a client's node set is empty or names a node that does not exist",
            f"Use names of the world or numbers from 0 to {len(names) - 1}.",
        )
    return found


def _mixing(n_features: int, n_latent: int, rng: np.random.Generator) -> FloatArray:
    """G with entries from Unif[−1, 1] and full column rank."""
    while True:
        G = rng.uniform(-1, 1, (n_features, n_latent))
        if np.linalg.matrix_rank(G) == n_latent:
            return G
