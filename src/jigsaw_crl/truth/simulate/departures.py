"""How rows depart from independent Gaussian draws of one linear system: names, sizes, and where.

A departure is a text: `NAME=SIZE`, or `NAME=SIZExSECOND` for a kind with two numbers, and
`@CLIENT,CLIENT` behind it if it concerns some clients only. This module says what a departure does
to the system of a client; `rows` draws the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jigsaw_crl.base.errors import InputError, choose
from jigsaw_crl.truth.simulate.sem import SEM

if TYPE_CHECKING:
    from jigsaw_crl.truth.simulate.world import World


class DepartureKind(NamedTuple):
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
        "COUNT labels of one client are exchanged among each other",
        lambda x: x >= 2 and x == int(x),
        "a whole number, at least 2",
    ),
    "lacks-edge": DepartureKind(
        "one client lacks COUNT edges between its latents",
        lambda x: x >= 1 and x == int(x),
        "a whole number, at least 1",
    ),
}

Departures = Mapping[str, tuple[float, float]]
"""The size and the second number of each departure, by its name."""


def parsed(texts: Iterable[str]) -> Departures:
    """Read departures; raises an `InputError` unless each can be, and together with the others.

    Examples
    --------
    >>> from jigsaw_crl.truth.simulate.departures import parsed
    >>> parsed(["autocorrelation=0.8", "outliers=0.01x7"])
    {'autocorrelation': (0.8, 0.0), 'outliers': (0.01, 7.0)}
    """
    found: dict[str, tuple[float, float]] = {}
    for text in texts:
        name, _, numbers = text.partition("=")
        kind = choose(name, DEPARTURES, "departure")
        try:
            size, *second = (float(number) for number in numbers.split("x"))
        except ValueError:
            size, second = np.nan, []
        if not kind.fits(size):
            raise InputError(
                f"the departure {text!r} cannot be read",
                f"Write {name}=SIZE with a number {kind.sizes}.",
            )
        if second and not (len(second) == 1 and kind.second and 0 < second[0] < np.inf):
            one = "one second number above 0" if kind.second else "its size alone"
            raise InputError(f"the departure {text!r} has a wrong second number", f"Pass {one}.")
        if name in found:
            raise InputError(f"{name} is given twice", "Keep one.")
        found[name] = (size, second[0] if second else kind.second)
    if {"t-noise", "lognormal-noise"} <= found.keys():
        raise InputError("noise cannot be both t and lognormal", "Keep one.")
    return found


@dataclass(frozen=True)
class Site:
    """What departs at one client: departures by name, labels that mean another latent here and the
    label of that latent, and edges (cause, effect) of the global system that it lacks.
    """

    departures: Departures
    means: Mapping[str, str]
    lacks: tuple[tuple[str, str], ...]

    def size(self, name: str) -> float | None:
        """The size of a departure; None if it does not concern this client."""
        return self.departures[name][0] if name in self.departures else None

    def world(self, world: World) -> World:
        """The world as this client meets it: its edges and how its interventions act."""
        protocol = world.intervention
        if "off-target" in self.departures:
            share, strength = self.departures["off-target"]
            protocol = replace(protocol, off_target=share, off_target_strength=strength)
        if "penetrance" in self.departures:
            protocol = replace(protocol, penetrance=self.departures["penetrance"][0])
        A = world.sem.A.copy()
        for cause, effect in self.lacks:
            A[world.node(effect), world.node(cause)] = 0.0
        return replace(
            world, sem=SEM(A, world.sem.variances, world.sem.means), intervention=protocol
        )


def site(world: World, k: int, texts: Iterable[str]) -> Site:
    """What departs at client k; raises an `InputError` if the departures do not fit the world."""
    name, here, own = world.view(k).name, list[str](), set[str]()
    for text in texts:
        what, at, where = text.partition("@")
        clients = where.split(",") if at else [name]
        for client in set(clients) - {view.name for view in world.views}:
            raise InputError(
                f"the departure {text!r} names {client!r}, which is no client",
                f"Write {what}@CLIENT with names of clients.",
            )
        if name in clients:
            here.append(what)
            own |= {what.partition("=")[0]} if at else set()
    given = parsed(here)
    if "nonlinear-system" in given and world.system != "linear":
        raise InputError(f"the system is {world.system} already", "Leave out nonlinear-system.")
    labels, edges = (
        _chosen(world, k, name, int(given[name][0]), name in own) if name in given else []
        for name in ("other-label", "lacks-edge")
    )
    # The interventions of exchanged labels go round in a circle.
    return Site(given, dict(zip(labels, labels[1:] + labels[:1], strict=True)), tuple(edges))


# Numbers behind the seed: for the site that a departure concerns, and for what it chooses there.
_PLACE, _CHOICE = 108, {"other-label": 109, "lacks-edge": 110}


def _possible(world: World, k: int, name: str) -> list[Any]:
    """What a departure of one site chooses from: labels, or edges (cause, effect) between them."""
    own = world.view(k).nodes.tolist()
    if name == "other-label":
        return [world.names[node] for node in own]
    found = np.argwhere(world.sem.A).tolist()
    return [(world.names[j], world.names[i]) for i, j in found if i in own and j in own]


def _chosen(world: World, k: int, name: str, count: int, named: bool) -> list[Any]:
    """The labels or edges of client k that a departure of one site chooses at random.

    None unless this client is that site: the one that was named, or one at random.
    """
    asked = [k] if named else range(world.n_clients)
    able = [i for i in asked if len(_possible(world, i, name)) >= count]
    if not able:
        raise InputError(
            f"{name}={count} is possible at no client",
            "Choose a smaller number or another world.",
        )
    if k != int(np.random.default_rng([world.seed, _PLACE]).choice(able)):
        return []
    every = _possible(world, k, name)
    rng = np.random.default_rng([world.seed, _CHOICE[name], k])
    return [every[i] for i in rng.choice(len(every), size=count, replace=False)]
