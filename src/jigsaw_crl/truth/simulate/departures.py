"""How rows depart from independent Gaussian draws of one linear system: names, sizes, and where.

A departure has a name, a size and the clients that it concerns. This module says what a departure
does to the system of a client; `rows` draws the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jigsaw_crl.base.errors import InputError, choose
from jigsaw_crl.base.text import few
from jigsaw_crl.truth.simulate.sem import SEM

if TYPE_CHECKING:
    from jigsaw_crl.truth.simulate.world import World


@dataclass(frozen=True)
class DepartureKind:
    """What one kind of departure does (its size in capitals), and which sizes it can have.

    `second` is its second number unless another is given, 0 if it has none.
    """

    what: str
    fits: Callable[[float], bool]
    sizes: str
    second: float = 0.0


_SHARE = (lambda x: 0 <= x <= 1, "from 0 to 1")
_BELOW_ONE = (lambda x: 0 <= x < 1, "from 0, below 1")
_POSITIVE = (lambda x: 0 < x < np.inf, "above 0")
_AT_LEAST_ZERO = (lambda x: 0 <= x < np.inf, "at least 0")

DEPARTURES: dict[str, DepartureKind] = {
    "autocorrelation": DepartureKind(
        "the noise of a row has correlation R with that of the row before", *_BELOW_ONE
    ),
    "subjects": DepartureKind(
        "rows of the same subject have noise with correlation R; ROWS rows each (20)",
        *_BELOW_ONE,
        second=20.0,
    ),
    "t-noise": DepartureKind(
        "noise from Student's t with DF degrees of freedom",
        lambda x: 2 < x < np.inf,
        "above 2, where the variance is finite",
    ),
    "lognormal-noise": DepartureKind("noise exp(S z), z Gaussian, centred", *_POSITIVE),
    "outliers": DepartureKind("a SHARE of the rows is multiplied by FACTOR (10)", *_SHARE, 10.0),
    "batch-offsets": DepartureKind(
        "each regime has its own offset in every feature, of SD standard deviations",
        *_AT_LEAST_ZERO,
    ),
    "gain-drift": DepartureKind(
        "in each regime every sensor has its own gain, 1 with standard deviation SD",
        *_AT_LEAST_ZERO,
    ),
    "sensor-noise": DepartureKind(
        "noise in every feature, with a SHARE of the features' mean variance", *_AT_LEAST_ZERO
    ),
    "uneven-sensors": DepartureKind(
        "sensor noise whose variances differ by a factor of up to RATIO; their mean is a SHARE "
        "(0.01) of the features' mean variance",
        lambda x: 1 <= x < np.inf,
        "at least 1",
        second=0.01,
    ),
    "off-target": DepartureKind(
        "a SHARE of the interventions act on a second latent, with STRENGTH (1) of an intervention",
        *_SHARE,
        second=1.0,
    ),
    "penetrance": DepartureKind(
        "interventions act in a SHARE of their rows",
        lambda x: 0 < x <= 1,
        "above 0, at most 1",
    ),
    "missing": DepartureKind("a SHARE of the cells is missing, at random", *_BELOW_ONE),
    "nonlinear-system": DepartureKind("a latent z acts on others as tanh(B z) / B", *_POSITIVE),
    "nonlinear-sensors": DepartureKind(
        "a feature x, in standard deviations, is read as tanh(B x) / B", *_POSITIVE
    ),
    "other-label": DepartureKind(
        "COUNT labels of one site are exchanged among each other",
        lambda x: x >= 2 and x == int(x),
        "a whole number, at least 2",
    ),
    "lacks-edge": DepartureKind(
        "one site lacks COUNT edges between its latents",
        lambda x: x >= 1 and x == int(x),
        "a whole number, at least 1",
    ),
}


@dataclass(frozen=True)
class Departure:
    """One departure of the rows from the model.

    Parameters
    ----------
    name : str
        A key of `DEPARTURES`, which says what each does.
    size : float
    second : float
        The second number of the kinds that have two; 0 for the usual one.
    clients : tuple of str
        Names of the clients concerned; by default all, or one chosen at random where the kind
        concerns one site.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> print(jc.simulate.Departure("outliers", 0.01, clients=("client-2",)))
    outliers=0.01x10@client-2
    >>> world = jc.simulate.setting("A", 0)
    >>> client = world.client(0, 500, departures=["autocorrelation=0.8", "t-noise=3"])
    """

    name: str
    size: float
    second: float = 0.0
    clients: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        kind = choose(self.name, DEPARTURES, "departure")
        if not kind.fits(self.size):
            raise InputError(
                f"{self.name} cannot have the size {self.size:g}", f"Pass a number {kind.sizes}."
            )
        object.__setattr__(self, "clients", tuple(self.clients))
        if self.second == 0:
            object.__setattr__(self, "second", kind.second)
        elif kind.second == 0 or not 0 < self.second < np.inf:
            raise InputError(
                f"{self.name} cannot have the second number {self.second:g}",
                "Pass its size alone." if kind.second == 0 else "Pass a number above 0.",
            )

    @classmethod
    def parse(cls, text: Departure | str) -> Departure:
        """A departure from `NAME=SIZE`, `NAME=SIZExSECOND` or either with `@CLIENT,CLIENT`.

        A `Departure` in place of the text is taken as it is.
        """
        if isinstance(text, Departure):
            return text
        what, at, where = text.partition("@")
        name, _, numbers = what.partition("=")
        choose(name, DEPARTURES, "departure")
        try:
            size, *second = (float(number) for number in numbers.split("x"))
        except ValueError:
            size, second = np.nan, []
        clients = tuple(filter(None, where.split(",")))
        if np.isnan(size) or len(second) > 1 or (at and not clients):
            raise InputError(
                f"the departure {text!r} cannot be read",
                f"Write {name}=SIZE, and @CLIENT behind it for one client.",
            )
        return cls(name, size, second[0] if second else 0.0, clients)

    def __str__(self) -> str:
        numbers = f"{self.size:g}" + (f"x{self.second:g}" if self.second else "")
        return f"{self.name}={numbers}" + (f"@{','.join(self.clients)}" if self.clients else "")


@dataclass(frozen=True)
class Site:
    """What departs at one client: departures by name, labels that mean another latent here and the
    label of that latent, and edges (cause, effect) of the global system that it lacks.
    """

    departures: Mapping[str, Departure]
    means: Mapping[str, str]
    lacks: tuple[tuple[str, str], ...]

    def size(self, name: str) -> float | None:
        """The size of a departure; None if it does not concern this client."""
        return self.departures[name].size if name in self.departures else None

    def world(self, world: World) -> World:
        """The world as this client meets it: its edges and how its interventions act."""
        protocol = world.intervention
        if "off-target" in self.departures:
            second = self.departures["off-target"]
            protocol = replace(protocol, off_target=second.size, off_target_strength=second.second)
        if "penetrance" in self.departures:
            protocol = replace(protocol, penetrance=self.departures["penetrance"].size)
        A = world.sem.A.copy()
        for cause, effect in self.lacks:
            A[world.node(effect), world.node(cause)] = 0.0
        return replace(
            world,
            sem=SEM(A, world.sem.variances, world.sem.means),
            intervention=protocol,
        )


def site(world: World, k: int, departures: Iterable[Departure | str]) -> Site:
    """What departs at client k; raises an `InputError` if the departures do not fit the world."""
    name, own = world.view(k).name, dict[str, Departure]()
    known = [view.name for view in world.views]
    for departure in map(Departure.parse, departures):
        unknown = [client for client in departure.clients if client not in known]
        if unknown:
            raise InputError(
                f"{departure.name}: there is no client {unknown[0]!r}",
                f"The clients are {few(known)}.",
            )
        if name in (departure.clients or _place(world, departure)):
            if departure.name in own:
                raise InputError(f"{departure.name} is given twice", "Keep one.", client=name)
            own[departure.name] = departure
    if "nonlinear-system" in own and world.system != "linear":
        raise InputError(f"the system is {world.system} already", "Keep one.", client=name)
    if {"t-noise", "lognormal-noise"} <= own.keys():
        raise InputError("noise cannot be both t and lognormal", "Keep one.", client=name)
    labels, edges = (_chosen(world, k, own.get(kind), kind) for kind in _PARTS)
    # The interventions of exchanged labels go round in a circle.
    return Site(own, dict(zip(labels, labels[1:] + labels[:1], strict=True)), tuple(edges))


def _labels(world: World, k: int) -> list[Any]:
    return [world.names[node] for node in world.view(k).nodes]


def _edges(world: World, k: int) -> list[Any]:
    """Edges (cause, effect) between the latents of a client."""
    own = set(world.view(k).nodes.tolist())
    found = np.argwhere(world.sem.A).tolist()
    return [(world.names[j], world.names[i]) for i, j in found if i in own and j in own]


# What of a client the departures of one site concern, what it is called, and the number behind the
# seed of the choice.
_PARTS: dict[str, tuple[Callable[[World, int], list[Any]], str, int]] = {
    "other-label": (_labels, "labels", 109),
    "lacks-edge": (_edges, "edges", 110),
}
# The same of the site.
_PLACE = 108


def _place(world: World, departure: Departure) -> list[str]:
    """The clients that a departure without named clients concerns."""
    names = [view.name for view in world.views]
    if departure.name not in _PARTS:
        return names
    possible, *_ = _PARTS[departure.name]
    able = [k for k in range(world.n_clients) if len(possible(world, k)) >= departure.size]
    if not able:
        raise InputError(
            f"{departure} is possible at no client", "Choose a smaller number or another world."
        )
    return [names[int(np.random.default_rng([world.seed, _PLACE]).choice(able))]]


def _chosen(world: World, k: int, departure: Departure | None, kind: str) -> list[Any]:
    """As many labels or edges of a client, at random, as a departure asks for."""
    if departure is None:
        return []
    every, what, stream = _PARTS[kind]
    possible, count = every(world, k), int(departure.size)
    if count > len(possible):
        raise InputError(
            f"{count} {what} are asked for, and it has {len(possible)}",
            "Choose a smaller number.",
            client=world.view(k).name,
        )
    rng = np.random.default_rng([world.seed, stream, k])
    return [possible[i] for i in rng.choice(len(possible), size=count, replace=False)]
