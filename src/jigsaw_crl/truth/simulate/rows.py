"""Rows of one client, with the departures that were asked for.

The steps follow the data: noise, latents, features, sensors, table. Every step has random numbers
of its own, so that one departure does not change what another one draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jigsaw_crl.base.arrays import AnyArray, FloatArray
from jigsaw_crl.base.errors import InputError, choose
from jigsaw_crl.client.client import CONTROL, Client
from jigsaw_crl.truth.simulate.departures import Site, site
from jigsaw_crl.truth.simulate.sampling import Noise, rows_from_noise, standard_noise
from jigsaw_crl.truth.simulate.systems import bent, saturated

if TYPE_CHECKING:
    from jigsaw_crl.truth.simulate.world import World

# Numbers behind the seed: one for the rows, and one for each departure at the sensors.
_ROWS = 103
_SENSORS = {
    "sensor-noise": 104,
    "batches": 106,
    "gain-drift": 111,
    "uneven-sensors": 112,
    "outliers": 113,
    "missing": 114,
    "subjects": 115,
    "batch-offsets": 116,
}


LAYOUTS = {name: name for name in ("own", "apart", "crossed")}


@dataclass(frozen=True)
class Batches:
    """Batches of rows, each with an offset of its own in every feature.

    Parameters
    ----------
    offset : float
        Standard deviation of the offsets, in standard deviations of the feature in the control.
    layout : {"own", "apart", "crossed"}
        - "own": every regime has a batch of its own, with an equal share of the control rows;
        - "apart": every regime has a batch of its own without control rows, and the control rows
          are spread over `count` other batches;
        - "crossed": each of `count` batches has an equal share of every regime.
    count : int
    told : bool
        False if the learner does not know which row is in which batch.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> batches = jc.simulate.Batches(0.3, "crossed", count=4)
    >>> world = jc.simulate.setting("A", 0)
    >>> world.client(0, 1_000, batches=batches).batches
    ('b1', 'b2', 'b3', 'b4')
    """

    offset: float
    layout: str = "own"
    count: int = 12
    told: bool = True

    def __post_init__(self) -> None:
        choose(self.layout, LAYOUTS, "layout of batches")
        if not 0 <= self.offset < np.inf:
            raise InputError(f"an offset cannot be {self.offset}", "Pass a size of at least 0.")
        if self.count < 1:
            raise InputError(f"there cannot be {self.count} batches", "Pass at least 1.")

    def moved(
        self, tables: list[FloatArray], rng: np.random.Generator
    ) -> tuple[list[FloatArray], list[AnyArray]]:
        """Rows of all regimes, the control first, with the offsets of their batches; and these."""
        regimes, count = len(tables) - 1, self.count
        members = [range(i, i + 1) for i in range(-1, regimes)]
        members[0] = range(regimes) if self.layout == "own" else range(regimes, regimes + count)
        if self.layout == "crossed":
            members = [range(count)] * len(tables)
        spread = tables[0].std(axis=0)
        total = 1 + max(own[-1] for own in members)
        offsets = self.offset * spread * rng.standard_normal((total, len(spread)))
        # The rows of a regime are spread evenly over its batches.
        codes = [
            np.repeat(own, [len(part) for part in np.array_split(x, len(own))])
            for x, own in zip(tables, members, strict=True)
        ]
        moved = [x + offsets[c] for x, c in zip(tables, codes, strict=True)]
        return moved, [np.array([f"b{batch + 1}" for batch in c]) for c in codes]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one client, regime by regime.

    Parameters
    ----------
    client : str
    n_latent : int
    cases : tuple of (str, int)
        Regime (the control is "control") and dose of each table, the control first.
    tables : tuple of array, shape (n, n_features)
        Missing cells are nan.
    batch, subject : tuple of array of str, or None
        The batch and the subject of each row, if the learner is told.
    """

    client: str
    n_latent: int
    cases: tuple[tuple[str, int], ...]
    tables: tuple[FloatArray, ...]
    batch: tuple[AnyArray, ...] | None = None
    subject: tuple[AnyArray, ...] | None = None

    @property
    def regimes(self) -> dict[str, FloatArray]:
        """The rows of each regime, all doses together."""
        return {r: np.vstack(x) for r, x in self._by_regime(self.tables, alone=False).items()}

    def arguments(self) -> dict[str, Any]:
        """The arguments of `Client.from_samples`: rows and batches."""
        tables = self._by_regime(self.tables)
        found = {"observational": tables.pop(CONTROL), "interventions": tables}
        if self.batch is not None:
            found["batch"] = self._by_regime(self.batch)
        return found

    def to_client(self) -> Client:
        """The client, as the learner gets it; subjects are not passed on."""
        return Client.from_samples(self.client, n_latent=self.n_latent, **self.arguments())

    def _by_regime(self, values: tuple[AnyArray, ...], *, alone: bool = True) -> dict[str, Any]:
        """The values of each regime's doses; with `alone` the value itself if there is one."""
        found: dict[str, Any] = {}
        for (regime, _), value in zip(self.cases, values, strict=True):
            found.setdefault(regime, []).append(value)
        return {r: x[0] if alone and len(x) == 1 else x for r, x in found.items()}


def draw_rows(
    world: World,
    k: int,
    sizes: Mapping[str, int],
    noise: Noise,
    seed: int,
    *,
    doses: int = 1,
    departures: Iterable[str] = (),
    batches: Batches | None = None,
) -> Rows:
    """Rows of client k; `sizes` has the number of rows of the control and of each label."""
    here = site(world, k, departures)
    view, local = world.view(k), here.world(world)
    bend = here.size("nonlinear-system")
    system = local.nonlinear if bend is None else bent(world.n_latent, bend)
    cases = [
        (regime, dose) for regime in sizes for dose in range(1 if regime == CONTROL else doses)
    ]
    streams = np.random.SeedSequence([seed, world.seed, _ROWS, k]).spawn(len(cases))

    def stream(name: str, *more: int) -> np.random.Generator:
        return np.random.default_rng([seed, world.seed, _SENSORS[name], k, *more])

    tables, subjects = [], list[AnyArray]()
    for (regime, dose), own in zip(cases, streams, strict=True):
        rng = np.random.default_rng(own)
        label = None if regime == CONTROL else here.means.get(regime, regime)
        law = local.regime(k, label, dose, system=system)
        E = _noise(here, sizes[regime], world.n_latent, noise, rng)
        if "subjects" in here.departures:
            rng_subjects = stream("subjects", len(subjects))
            E, codes = _with_subjects(E, *here.departures["subjects"], rng_subjects)
            subjects.append(np.array([f"{regime}-{dose + 1}-{code + 1}" for code in codes]))
        tables.append(rows_from_noise(law, E, rng))
    rngs = {name: stream(name) for name in _SENSORS}
    tables = _sensed(here, tables, rngs)
    batch = None
    offsets = here.size("batch-offsets")
    if offsets is not None:
        own_offsets = Batches(offsets, "apart", count=1)
        tables, _ = own_offsets.moved(tables, rngs["batch-offsets"])
    if batches is not None:
        tables, names = batches.moved(tables, rngs["batches"])
        batch = tuple(names) if batches.told else None
    tables = _recorded(here, tables, rngs)
    subject = tuple(subjects) or None
    return Rows(view.name, len(view.nodes), tuple(cases), tuple(tables), batch, subject)


def _noise(here: Site, n: int, p: int, noise: Noise, rng: np.random.Generator) -> FloatArray:
    """Noise of variance 1, shape (n, p), with the tails and the autocorrelation of the site."""
    E: FloatArray
    df, s = here.size("t-noise"), here.size("lognormal-noise")
    if df is not None:
        E = np.sqrt((df - 2) / df) * rng.standard_t(df, (n, p))
    elif s is not None:
        # The variance of exp(s z) is exp(s²) (exp(s²) − 1), its mean exp(s² / 2).
        E = np.exp(s * rng.standard_normal((n, p)) - s**2 / 2) - 1
        E /= np.sqrt(np.expm1(s**2))
    else:
        E = standard_noise(n, p, noise, rng)
    r = here.size("autocorrelation")
    if not r:
        return E
    # Here because scipy.signal takes half a second to import.
    from scipy.signal import lfilter

    # e_t = r e_{t−1} + √(1 − r²) η_t, with e_1 = η_1.
    E[1:] *= np.sqrt(1 - r**2)
    return np.asarray(lfilter([1.0], [1.0, -r], E, axis=0), dtype=np.float64)


def _with_subjects(
    E: FloatArray, r: float, size: float, rng: np.random.Generator
) -> tuple[FloatArray, AnyArray]:
    """`√r u + √(1 − r) e`, u the same in all rows of a subject; and the subject of each row.

    A subject has `size` rows, scattered over the table.
    """
    codes = rng.permutation(np.arange(len(E)) // max(round(size), 1))
    u = rng.standard_normal((int(codes.max()) + 1, E.shape[1]))
    return np.sqrt(r) * u[codes] + np.sqrt(1 - r) * E, codes


def _sensed(
    here: Site, tables: list[FloatArray], rngs: Mapping[str, np.random.Generator]
) -> list[FloatArray]:
    """What the sensors make of the features: saturation, gains, noise."""
    bend, drift = here.size("nonlinear-sensors"), here.size("gain-drift")
    if bend is not None:
        spread = tables[0].std(axis=0)
        tables = [spread * saturated(x / spread, bend) for x in tables]
    if drift is not None:
        rng = rngs["gain-drift"]
        tables = [x * (1 + drift * rng.standard_normal(x.shape[1])) for x in tables]
    clean, m = float(np.mean(np.var(tables[0], axis=0))), tables[0].shape[1]
    for name in ("sensor-noise", "uneven-sensors"):
        if name in here.departures:
            rng, (size, mean) = rngs[name], here.departures[name]
            # The noise variance of each sensor, as a share of the features' mean variance.
            shares = np.full(m, size)
            if name == "uneven-sensors":
                uneven = size ** rng.permutation(np.linspace(0, 1, m))
                shares = mean * uneven / uneven.mean()
            tables = [x + np.sqrt(clean * shares) * rng.standard_normal(x.shape) for x in tables]
    return tables


def _recorded(
    here: Site, tables: list[FloatArray], rngs: Mapping[str, np.random.Generator]
) -> list[FloatArray]:
    """Rows as they stand in the table: outliers, missing cells."""
    missing = here.size("missing")
    if "outliers" in here.departures:
        (share, factor), rng = here.departures["outliers"], rngs["outliers"]
        tables = [np.where(rng.random((len(x), 1)) < share, factor * x, x) for x in tables]
    if missing is not None:
        rng = rngs["missing"]
        tables = [np.where(rng.random(x.shape) < missing, np.nan, x) for x in tables]
    return tables
