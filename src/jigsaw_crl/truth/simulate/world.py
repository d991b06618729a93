"""A simulated world: one global system, several clients, and the truth about each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError, choose
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.base.text import few
from jigsaw_crl.client.client import CONTROL, Client
from jigsaw_crl.moments.regime import Moments
from jigsaw_crl.truth.simulate.graphs import induced_graph
from jigsaw_crl.truth.simulate.interventions import Intervention
from jigsaw_crl.truth.simulate.rows import Batches, Rows, draw_rows
from jigsaw_crl.truth.simulate.sampling import (
    NOISES,
    Regime,
    population,
    sample_moments,
)
from jigsaw_crl.truth.simulate.sem import SEM, Change
from jigsaw_crl.truth.simulate.systems import System, system
from jigsaw_crl.truth.simulate.views import TrueEffects, Truth, View, true_view

SampleSizes = int | Mapping[str, int] | None

# Independent streams of random numbers, told apart by a number behind the seed.
_CHANGES, _SAMPLES, _OFF_TARGET, _SIGNS = 101, 102, 105, 107


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
    system : str
        How causes act: a key of `SYSTEMS`.

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
    system: str = "linear"

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
    def nonlinear(self) -> System | None:
        """The equations of a system that is not linear; None for a linear one."""
        return None if self.system == "linear" else system(self.sem, self.system, self.seed)

    def node(self, label: str) -> int:
        """The node that a label names."""
        if label not in self.names:
            raise InputError(
                f"this world has no label {label!r}", f"Its labels are {few(self.labels)}."
            )
        return self.names.index(label)

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
        drawn = float(np.random.default_rng([self.seed, _SIGNS, node]).choice([-1.0, 1.0]))
        sign = 1.0 if self.intervention.raises else drawn
        return self.intervention.draw(self.sem, node, rng, dose, sign)

    def off_target(self, k: int, label: str, dose: int = 0) -> Change | None:
        """The change that the intervention makes to a second latent; None if it has one target."""
        node = self.node(label)
        rng = np.random.default_rng([self.seed, _OFF_TARGET, k, node, dose])
        if rng.random() >= self.intervention.off_target:
            return None
        other = int(rng.choice(np.delete(np.arange(self.n_latent), node)))
        change = self.intervention.draw(self.sem, other, rng, dose)
        return change.scaled(self.intervention.off_target_strength)

    def regime(
        self, k: int, label: str | None = None, dose: int = 0, *, system: System | None = None
    ) -> Regime:
        """The law of client k's rows under the intervention on `label`; None for the control.

        The system is linear unless one is given.
        """
        view = self.view(k)
        control = Regime.of(self.sem, view.nodes, view.mixing, system)
        if label is None:
            return control
        sem = self.sem.changed(self.change(k, label, dose))
        second = self.off_target(k, label, dose)
        if second is not None:
            sem = sem.changed(second)
        acting = Regime.of(sem, view.nodes, view.mixing, system)
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
        departures: Iterable[str] = (),
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
            Batches of rows whose means are offset; not for exact moments. Rows are then drawn and
            summed.
        departures : iterable of str, optional
            Departures from the model, `NAME=SIZE` or `NAME=SIZExSECOND`, such as
            "autocorrelation=0.8" (`DEPARTURES` says what each does); likewise.
        """
        departures = tuple(departures)
        if departures or batches or self.system != "linear":
            given: dict[str, Any] = {"labels": labels, "doses": doses, "batches": batches}
            rows = self.sample(k, n_samples, noise, seed, departures=departures, **given)
            return rows.to_client()
        view, family = self.view(k), choose(noise, NOISES, "noise family")
        sizes = self._sizes(k, n_samples, labels, doses)
        root = np.random.SeedSequence([check_seed(seed), self.seed, _SAMPLES, k])
        streams = iter(root.spawn(1 + (len(sizes) - 1) * doses))

        def moments(label: str | None, n: int | None, dose: int = 0) -> Moments:
            regime, rng = self.regime(k, label, dose), np.random.default_rng(next(streams))
            return population(regime) if n is None else sample_moments(regime, n, family, rng)

        control, own = moments(None, sizes.pop(CONTROL)), len(view.nodes)
        regimes = {x: [moments(x, n, dose) for dose in range(doses)] for x, n in sizes.items()}
        return Client.from_moments(view.name, control=control, interventions=regimes, n_latent=own)

    def clients(
        self, n_samples: SampleSizes = None, noise: str = "gaussian", seed: int = 0, **options: Any
    ) -> list[Client]:
        """The data of every client; parameters as for `client`."""
        return [self.client(k, n_samples, noise, seed, **options) for k in range(self.n_clients)]

    def sample(
        self,
        k: int,
        n_samples: SampleSizes,
        noise: str = "gaussian",
        seed: int = 0,
        *,
        labels: Iterable[str] | None = None,
        doses: int = 1,
        batches: Batches | None = None,
        departures: Iterable[str] = (),
    ) -> Rows:
        """The rows of client k, with their batches and subjects; parameters as for `client`."""
        family = choose(noise, NOISES, "noise family")
        sizes = self._sizes(k, n_samples, labels, doses)
        known = {regime: n for regime, n in sizes.items() if n is not None}
        if len(known) < len(sizes):
            what = "exact moments have no rows"
            if self.system != "linear":
                what = "a system that is not linear has no exact moments here"
            raise InputError(what, "Pass n_samples, a number of rows.")
        more: dict[str, Any] = {"batches": batches, "departures": departures}
        return draw_rows(self, k, known, family, check_seed(seed), doses=doses, **more)

    def rows(
        self, k: int, n: int, noise: str = "gaussian", seed: int = 0
    ) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Rows of client k: the control's, and one matrix per label, each (n, n_features)."""
        regimes = self.sample(k, n, noise, seed).regimes
        return regimes.pop(CONTROL), regimes

    def _sizes(
        self, k: int, n_samples: SampleSizes, labels: Iterable[str] | None, doses: int
    ) -> dict[str, int | None]:
        """The number of rows of the control and of each label that is intervened on."""
        view = self.view(k)
        own = [self.names[node] for node in view.nodes]
        asked = set(own if labels is None else labels)
        if not asked or not asked <= set(own):
            raise InputError(
                f"{', '.join(sorted(asked - set(own))) or 'no label'} cannot be intervened on",
                f"This client accesses {', '.join(sorted(own))}.",
                client=view.name,
            )
        if doses < 1:
            raise InputError(f"doses is {doses}", "Apply every label at least once.")
        sizes = dict[str, int | None]()
        for regime in (CONTROL, *(label for label in own if label in asked)):
            n = n_samples.get(regime, 0) if isinstance(n_samples, Mapping) else n_samples
            least = len(own) + 1 if regime == CONTROL else 2
            if n is not None and n < least:
                raise InputError(
                    f"{n} rows are too few",
                    f"Give it at least {least} rows: the control needs one more than the client "
                    "has latents, every other regime two.",
                    client=view.name,
                    regime=regime,
                )
            sizes[regime] = n
        return sizes

    def truth(self, k: int) -> Truth:
        """The truth about client k: its graph, blocks, districts and latent basis."""
        return true_view(self.sem, self.names, self.view(k))

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
        if self.system != "linear":
            raise InputError(
                "effects in a system that is not linear depend on the dose",
                "Compare the means of rows that are drawn with `sample`.",
            )
        chosen = self.labels if labels is None else tuple(labels)
        nodes = np.array([self.node(label) for label in chosen], dtype=np.intp)
        sign = np.array([-1.0 if self.change(0, label).mean < 0 else 1.0 for label in chosen])
        deviation = np.sqrt(np.diag(self.sem.covariance()))[nodes] * sign
        graph = induced_graph(self.sem.A != 0, nodes)
        path = graph.ancestors() | np.eye(len(nodes), dtype=bool)
        # Rows the cause: the effect of j on i, in s_i per s_j.
        scale = deviation[:, None] / deviation
        total = self.sem.total_effects()[np.ix_(nodes, nodes)].T * scale
        direct = np.where(graph.directed, self.sem.marginal(nodes).A, 0.0).T * scale
        return TrueEffects(chosen, np.where(path, total, 0.0), direct)

    def __repr__(self) -> str:
        return f"World({self.n_latent} latents, {self.n_clients} clients, seed {self.seed})"


def check_seed(seed: int) -> int:
    """The seed as an int; raises an `InputError` unless it is a whole number, at least 0."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"the seed is {seed!r}", "Pass a non-negative whole number.")
    return int(seed)
