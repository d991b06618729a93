"""A simulated world: one global system, several clients, and the truth about each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.base.errors import InputError, choose
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.base.text import few
from jigsaw_crl.client.client import CONTROL, Client
from jigsaw_crl.moments.regime import Moments
from jigsaw_crl.truth.simulate.batches import Batches
from jigsaw_crl.truth.simulate.block_rq import block_rq
from jigsaw_crl.truth.simulate.effects import TrueEffects, true_effects
from jigsaw_crl.truth.simulate.graph import blocks_of, induced_graph
from jigsaw_crl.truth.simulate.interventions import Intervention
from jigsaw_crl.truth.simulate.sampling import (
    NOISES,
    Regime,
    population,
    sample_moments,
    sample_rows,
)
from jigsaw_crl.truth.simulate.sem import SEM, Change, Marginal

__all__ = ["Truth", "View", "World", "check_seed"]

SampleSizes = int | Mapping[str, int] | None

# Independent streams of random numbers, told apart by a number behind the seed.
_CHANGES, _SAMPLES, _ROWS, _OFF_TARGET, _OFFSETS, _SIGNS = 101, 102, 103, 105, 106, 107


@dataclass(frozen=True, eq=False)
class View:
    """What one client accesses: its name, its nodes (in its own order) and its mixing G_k."""

    name: str
    nodes: IntArray
    mixing: FloatArray


@dataclass(frozen=True, eq=False)
class Truth:
    """The truth about one client; every array follows the order of `labels`.

    Parameters
    ----------
    client : str
    labels : tuple of str
        Labels of the client's nodes, in the client's own order.
    order : PartialOrder over labels
        Ancestry between the client's nodes: the restriction of the global order.
    blocks : tuple of frozenset of str
    block_order : PartialOrder over blocks
        The transitive closure of the block-level relation.
    districts : tuple of frozenset of str
        Connected components of the bidirected edges.
    spouses : frozenset of frozenset of str
        The bidirected edges.
    parents : frozenset of (str, str)
        Directed edges (parent, child) of the induced mixed graph.
    mixing : array, shape (n_features, p_k)
        G_k.
    H : array, shape (p_k, n_features)
        The pseudo-inverse of G_k.
    R, Q : array, shapes (p_k, p_k) and (p_k, n_features)
        `H = R Q` by Algorithm 4.
    marginal : Marginal
        A_k and Σ_k.
    """

    client: str
    labels: tuple[str, ...]
    order: PartialOrder[str]
    blocks: tuple[frozenset[str], ...]
    block_order: PartialOrder[frozenset[str]]
    districts: tuple[frozenset[str], ...]
    spouses: frozenset[frozenset[str]]
    parents: frozenset[tuple[str, str]]
    mixing: FloatArray
    H: FloatArray
    R: FloatArray
    Q: FloatArray
    marginal: Marginal

    def block_of(self, label: str) -> frozenset[str]:
        """The block that holds `label`."""
        return next(b for b in self.blocks if label in b)


@dataclass(frozen=True, eq=False)
class World:
    """A global system and its clients. Build one with `random_world`, `setting` or
    `world_from_graph`.

    Parameters
    ----------
    sem : SEM
        The global system.
    names : tuple of str
        The label of each node.
    labels : tuple of str
        All labels, in an order that is unrelated to the graph.
    views : tuple of View
        One per client.
    intervention : Intervention
        How interventions are drawn.
    seed : int

    Examples
    --------
    >>> from jigsaw_crl.truth.simulate import setting
    >>> world = setting("A", seed=0)
    >>> world.labels, world.n_clients
    (('z1', 'z2', 'z3', 'z4', 'z5'), 5)
    >>> client = world.client(0, n_samples=1000, noise="gaussian", seed=1)
    >>> sorted(client.labels) == sorted(world.truth(0).labels)
    True
    """

    sem: SEM
    names: tuple[str, ...]
    labels: tuple[str, ...]
    views: tuple[View, ...]
    intervention: Intervention
    seed: int

    @property
    def n_latent(self) -> int:
        return self.sem.n_latent

    @property
    def n_clients(self) -> int:
        return len(self.views)

    @cached_property
    def order(self) -> PartialOrder[str]:
        """The global order on the labels."""
        return PartialOrder.from_matrix(self.names, (self.sem.A != 0).T).restrict(self.labels)

    @cached_property
    def _node(self) -> dict[str, int]:
        return {label: node for node, label in enumerate(self.names)}

    def node(self, label: str) -> int:
        """The node that a label names."""
        try:
            return self._node[label]
        except KeyError:
            raise InputError(
                f"this world has no label {label!r}", f"Its labels are {few(self.labels)}."
            ) from None

    def view(self, k: int) -> View:
        """Client k's access to the system, k counted from 0."""
        if isinstance(k, bool) or not 0 <= k < self.n_clients:
            raise InputError(
                f"there is no client {k!r}", f"This world has clients 0 to {self.n_clients - 1}."
            )
        return self.views[k]

    def change(self, k: int, label: str, dose: int = 0) -> Change:
        """The change that client k's intervention on `label` makes to its target's equation.

        It does not depend on the sample size.
        """
        node = self.node(label)
        rng = np.random.default_rng([self.seed, _CHANGES, k, node, dose])
        # Sites move a label the same way.
        sign = float(np.random.default_rng([self.seed, _SIGNS, node]).choice([-1.0, 1.0]))
        return self.intervention.draw(self.sem, node, rng, dose, sign)

    def off_target(self, k: int, label: str, dose: int = 0) -> Change | None:
        """The change that the intervention makes to a second latent; None if it has one target."""
        node = self.node(label)
        rng = np.random.default_rng([self.seed, _OFF_TARGET, k, node, dose])
        if rng.random() >= self.intervention.off_target:
            return None
        other = int(rng.choice(np.delete(np.arange(self.n_latent), node)))
        return self.intervention.draw(self.sem, other, rng, dose)

    def regime(self, k: int, label: str | None = None, dose: int = 0) -> Regime:
        """The law of client k's rows under the intervention on `label`; None for the control."""
        view = self.view(k)
        control = Regime.of(self.sem, view.nodes, view.mixing)
        if label is None:
            return control
        sem = self.sem.changed(self.change(k, label, dose))
        second = self.off_target(k, label, dose)
        if second is not None:
            sem = sem.changed(second)
        acting = Regime.of(sem, view.nodes, view.mixing)
        if self.intervention.penetrance == 1:
            return acting
        return replace(acting, otherwise=control, penetrance=self.intervention.penetrance)

    def client(
        self,
        k: int,
        n_samples: SampleSizes = None,
        noise: str = "gaussian",
        seed: int = 0,
        *,
        labels: Iterable[str] | None = None,
        doses: int = 1,
        batches: Batches | None = None,
    ) -> Client:
        """The data of client k, as the learner gets them.

        Parameters
        ----------
        k : int
            Counted from 0.
        n_samples : None, int or mapping of regime to int
            Rows per regime (the control under "control"); None for exact moments.
        noise : {"gaussian", "laplace"}
        seed : int
            Seed of the sample; the world and its interventions do not depend on it.
        labels : iterable of str, optional
            Labels that the client intervenes on, by default all; it accesses all its latents
            either way.
        doses : int
            Regimes per label, each with its own draw of the intervention.
        batches : Batches, optional
            Batches of rows whose means are offset; not for exact moments.
        """
        view, family = self.view(k), choose(noise, NOISES, "noise family")
        chosen = self._chosen(k, labels)
        if doses < 1:
            raise InputError(f"doses is {doses}", "Apply every label at least once.")
        sizes = self._sizes(k, n_samples, chosen)
        streams = iter(
            np.random.SeedSequence([check_seed(seed), self.seed, _SAMPLES, k]).spawn(
                1 + len(chosen) * doses
            )
        )

        count, offsets = len(chosen) * doses, np.zeros((0, 0))
        if batches is not None:
            rng = np.random.default_rng([seed, self.seed, _OFFSETS, k])
            spread = np.sqrt(np.diagonal(population(self.regime(k)).covariance))
            offsets = batches.offsets(count, spread, rng)

        def moments(label: str | None, dose: int = 0) -> Moments:
            regime, n = self.regime(k, label, dose), sizes[label or CONTROL]
            rng = np.random.default_rng(next(streams))
            if n is None:
                return population(regime)
            if batches is None:
                return sample_moments(regime, n, family, rng)
            position = -1 if label is None else chosen.index(label) * doses + dose
            return batches.moments(
                lambda size: sample_moments(regime, size, family, rng),
                n,
                batches.members(position, count),
                offsets,
            )

        return Client.from_moments(
            view.name,
            control=moments(None),
            interventions={
                label: [moments(label, dose) for dose in range(doses)] for label in chosen
            },
            n_latent=len(view.nodes),
        )

    def clients(
        self,
        n_samples: SampleSizes = None,
        noise: str = "gaussian",
        seed: int = 0,
        *,
        batches: Batches | None = None,
    ) -> list[Client]:
        """The data of every client; parameters as for `client`."""
        return [
            self.client(k, n_samples, noise, seed, batches=batches) for k in range(self.n_clients)
        ]

    def rows(
        self, k: int, n: int, noise: str = "gaussian", seed: int = 0
    ) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Rows of client k: the control's, and one matrix per label, each (n, n_features)."""
        family, labels = choose(noise, NOISES, "noise family"), self._chosen(k, None)
        self._sizes(k, n, labels)
        streams = np.random.SeedSequence([check_seed(seed), self.seed, _ROWS, k]).spawn(
            1 + len(labels)
        )
        drawn = [
            sample_rows(self.regime(k, label), n, family, np.random.default_rng(stream))
            for label, stream in zip([None, *labels], streams, strict=True)
        ]
        return drawn[0], dict(zip(labels, drawn[1:], strict=True))

    def _chosen(self, k: int, labels: Iterable[str] | None) -> list[str]:
        own = [self.names[node] for node in self.view(k).nodes]
        if labels is None:
            return own
        asked = set(labels)
        if not asked or not asked <= set(own):
            raise InputError(
                f"{', '.join(sorted(asked - set(own))) or 'no label'} cannot be intervened on",
                f"This client accesses {', '.join(sorted(own))}.",
                client=self.view(k).name,
            )
        return [label for label in own if label in asked]

    def _sizes(self, k: int, n_samples: SampleSizes, labels: list[str]) -> dict[str, int | None]:
        view, sizes = self.view(k), dict[str, int | None]()
        for regime in (CONTROL, *labels):
            n = n_samples.get(regime, -1) if isinstance(n_samples, Mapping) else n_samples
            least = len(view.nodes) + 1 if regime == CONTROL else 2
            if n is not None and n < least:
                what = "the sample size is missing" if n == -1 else f"{n} rows are too few"
                raise InputError(
                    what,
                    f"Give it at least {least} rows: the control needs one more than the client "
                    "has latents, every other regime two.",
                    client=view.name,
                    regime=regime,
                )
            sizes[regime] = n
        return sizes

    def truth(self, k: int) -> Truth:
        """The truth about client k: its graph, blocks, districts and latent basis."""
        view = self.view(k)
        labels = tuple(self.names[node] for node in view.nodes)
        graph = induced_graph(self.sem.A != 0, view.nodes)
        blocks, order = blocks_of(graph)

        def named(groups: list[list[int]]) -> tuple[frozenset[str], ...]:
            return tuple(frozenset(labels[i] for i in group) for group in groups)

        H = np.asarray(np.linalg.pinv(view.mixing), dtype=np.float64)
        R, Q = block_rq(H, blocks, order)
        return Truth(
            client=view.name,
            labels=labels,
            order=PartialOrder.from_matrix(labels, graph.ancestors()),
            blocks=named(blocks),
            block_order=PartialOrder.from_matrix(named(blocks), order),
            districts=named(graph.districts()),
            spouses=frozenset(
                frozenset((labels[i], labels[j]))
                for i, j in zip(*np.nonzero(graph.bidirected), strict=True)
            ),
            parents=frozenset(
                (labels[j], labels[i]) for i, j in zip(*np.nonzero(graph.directed), strict=True)
            ),
            mixing=view.mixing.copy(),
            H=H,
            R=R,
            Q=Q,
            marginal=self.sem.marginal(view.nodes),
        )

    def effects(self, labels: Iterable[str] | None = None) -> TrueEffects:
        """The true total and direct effects, in standard deviations of the control.

        A latent counts as growing in the direction in which the interventions on it move it;
        without a shift, in its own.

        Parameters
        ----------
        labels : iterable of str, optional
            In this order, by default all. Latents that are not among them are marginalised out:
            an effect that goes through them alone is direct.

        Examples
        --------
        >>> from jigsaw_crl.truth.simulate import random_world
        >>> chain = random_world(3, 1, 1.0, graph="chain", intervention="hard")
        >>> effects = chain.effects()
        >>> int((effects.total != 0).sum()) - 3, int((effects.direct != 0).sum())
        (3, 2)
        """
        chosen = self.labels if labels is None else tuple(labels)
        nodes = np.array([self.node(label) for label in chosen], dtype=np.intp)
        sign = np.array([-1.0 if self.change(0, label).mean < 0 else 1.0 for label in chosen])
        return true_effects(self.sem, nodes, chosen, sign)

    def __repr__(self) -> str:
        return f"World({self.n_latent} latents, {self.n_clients} clients, seed {self.seed})"


def check_seed(seed: int) -> int:
    """The seed as an int; raises an `InputError` unless it is a whole number, at least 0."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"the seed is {seed!r}", "Pass a non-negative whole number.")
    return int(seed)
