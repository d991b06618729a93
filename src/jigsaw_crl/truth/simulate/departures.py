"""How rows depart from independent Gaussian draws of one linear system: names and sizes.

`rows` draws the rows. Interventions that act on a second latent, or in a share of the rows, are in
`Intervention`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.errors import InputError, choose


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
    "missing": DepartureKind("a SHARE of the cells is missing, at random", *_BELOW_ONE),
    "nonlinear-system": DepartureKind("a latent z acts on others as tanh(B z) / B", *_POSITIVE),
    "nonlinear-sensors": DepartureKind(
        "a feature x, in standard deviations, is read as tanh(B x) / B", *_POSITIVE
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

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> print(jc.simulate.Departure("outliers", 0.01))
    outliers=0.01x10
    >>> world = jc.simulate.setting("A", 0)
    >>> client = world.client(0, 500, departures=["autocorrelation=0.8", "t-noise=3"])
    """

    name: str
    size: float
    second: float = 0.0

    def __post_init__(self) -> None:
        kind = choose(self.name, DEPARTURES, "departure")
        if not kind.fits(self.size):
            raise InputError(
                f"{self.name} cannot have the size {self.size:g}", f"Pass a number {kind.sizes}."
            )
        if self.second == 0:
            object.__setattr__(self, "second", kind.second)
        elif kind.second == 0 or not 0 < self.second < np.inf:
            raise InputError(
                f"{self.name} cannot have the second number {self.second:g}",
                "Pass its size alone." if kind.second == 0 else "Pass a number above 0.",
            )

    @classmethod
    def parse(cls, text: Departure | str) -> Departure:
        """A departure from `NAME=SIZE` or `NAME=SIZExSECOND`; a `Departure` is taken as it is."""
        if isinstance(text, Departure):
            return text
        name, _, numbers = text.partition("=")
        choose(name, DEPARTURES, "departure")
        try:
            size, *second = (float(number) for number in numbers.split("x"))
        except ValueError:
            size, second = np.nan, []
        if np.isnan(size) or len(second) > 1:
            raise InputError(f"the departure {text!r} cannot be read", f"Write {name}=SIZE.")
        return cls(name, size, second[0] if second else 0.0)

    def __str__(self) -> str:
        return f"{self.name}={self.size:g}" + (f"x{self.second:g}" if self.second else "")


def by_name(given: Iterable[Departure | str]) -> dict[str, Departure]:
    """Departures by name; raises an `InputError` if they do not go together."""
    found: dict[str, Departure] = {}
    for departure in map(Departure.parse, given):
        if departure.name in found:
            raise InputError(f"{departure.name} is given twice", "Keep one.")
        found[departure.name] = departure
    if {"t-noise", "lognormal-noise"} <= found.keys():
        raise InputError("noise cannot be both t and lognormal", "Keep one.")
    return found
