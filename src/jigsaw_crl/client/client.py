"""One client: a control regime and labelled interventional regimes, as moments.

A client never holds rows. Exact population moments (`n_samples=None`) and estimates have the same
type and differ only in `Moments.n`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pkgutil import resolve_name
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.frozen import FrozenMapping, ReadOnlyArrays
from jigsaw_crl.base.labels import normal_label
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.client.checks import (
    Kinds,
    check_features,
    check_moments,
    check_named,
    check_names,
    check_together,
)
from jigsaw_crl.client.counting import count_rows
from jigsaw_crl.client.covariates import Covariates, counted_as, without_covariates
from jigsaw_crl.client.given import (
    LabelData,
    MeansGiven,
    RowNames,
    SampleSizes,
    column_names,
    given_matrices,
    moments_of_matrices,
    moments_of_rows,
)
from jigsaw_crl.client.noise import LatentCount
from jigsaw_crl.client.reduction import Reduction
from jigsaw_crl.client.relations import linear_sensors
from jigsaw_crl.client.white import whiten
from jigsaw_crl.moments.preparing import Missing, RowOptions
from jigsaw_crl.moments.regime import Moments

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

CONTROL = "control"
# Standard deviation of the sensors' noise: of all sensors, or by feature.
NoiseGiven = float | Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Client(ReadOnlyArrays):
    """Second moments of one client, regime by regime.

    Use a constructor: `from_samples`, `from_covariances`, `from_precisions`, `from_moments` or
    `from_table`. In the first four, `hard` says which interventions are hard: True for all, or a
    list of labels; see `with_interventions`. `sensor_noise` is the standard deviation of the
    sensors' noise, if it is known: one number, or a mapping from features; see `with_sensors`.

    Parameters
    ----------
    name : str
        The client's name, which its fragment carries.
    control : Moments
        The observational regime.
    interventions : mapping of str to tuple of Moments
        One entry per label; several moments if the label was applied at several strengths.
    n_latent : int
        Number of latent variables this client accesses (p_k). The constructors estimate it if it
        is not given: see `jigsaw_crl.client.noise`.
    features : tuple of str
        Names of the observed columns.
    control_name : str
        What the observational regime is called in the client's own files.
    counted : LatentCount or None
        How `n_latent` was estimated; None if it was given.
    hard : frozenset of str
        Labels whose intervention is hard: see `with_interventions`.
    reduction : Reduction or None
        The directions that replace the columns of a wide table; `features` are then these.
    covariates : Covariates or None
        Columns whose linear part was taken off the moments; they are no features.
    up, units : mapping of str to str
        The sensor that each label should raise, and units of sensors: see `with_sensors`.
    sensor_noise : mapping of str to float
        Standard deviation of the noise of sensors, where it is known: see `with_sensors`.
    bent : mapping of str to float
        Sensors that do not respond linearly, and how clearly (0: they say nothing of their own):
        see `jigsaw_crl.client.relations`.

    Examples
    --------
    >>> import numpy as np
    >>> import jigsaw_crl as jc
    >>> rng = np.random.default_rng(0)
    >>> x0, x1 = rng.normal(size=(50, 3)), 2 * rng.normal(size=(40, 3))
    >>> client = jc.Client.from_samples("lab-1", observational=x0, interventions={"pump": x1})
    >>> client.labels, client.n_latent, client.n_samples
    (('pump',), 1, {'control': 50, 'pump': 40})
    """

    name: str
    control: Moments
    interventions: Mapping[str, tuple[Moments, ...]]
    n_latent: int
    features: tuple[str, ...]
    control_name: str = CONTROL
    counted: LatentCount | None = None
    hard: frozenset[str] = frozenset()
    reduction: Reduction | None = None
    covariates: Covariates | None = None
    up: Mapping[str, str] = field(default_factory=lambda: FrozenMapping({}))
    units: Mapping[str, str] = field(default_factory=lambda: FrozenMapping({}))
    sensor_noise: Mapping[str, float] = field(default_factory=lambda: FrozenMapping({}))
    bent: Mapping[str, float] = field(default_factory=lambda: FrozenMapping({}))
    # Derived from these: name and moments of every regime, the control first; moments of all
    # interventional regimes, label by label; whether moments are exact; rows per regime (summed
    # over the strengths of a label), None if they are; and the sorted names of the batches.
    labels: tuple[str, ...] = field(init=False)
    named_regimes: tuple[tuple[str, Moments], ...] = field(init=False)
    regimes: tuple[Moments, ...] = field(init=False)
    n_features: int = field(init=False)
    is_population: bool = field(init=False)
    n_samples: Mapping[str, int] | None = field(init=False)
    batches: tuple[str, ...] = field(init=False)
    # Observational covariance, unbiased for estimates, shape (n_features, n_features).
    control_second_moment: FloatArray = field(init=False)
    # Names of the columns that rows of this client have, and the mean of each in the control rows.
    columns: tuple[str, ...] = field(init=False)
    centre: FloatArray = field(init=False)

    # All regimes, whitened by the control: what checks and recovery read.
    white = cached_property(whiten)

    def __post_init__(self) -> None:
        own = [(label, m) for label, moments in self.interventions.items() for m in moments]
        named = ((self.control_name, self.control), *own)
        n, beside = self.control.n, self.covariates
        sizes = dict.fromkeys((self.control_name, *self.interventions), 0)
        for regime, m in named:
            sizes[regime] += m.rows or 0
        columns, centre = self.features, self.control.mean
        if self.reduction is not None:
            columns, centre = self.reduction.columns, self.reduction.centre
        elif beside is not None:
            # The control's mean without covariates is its mean where they are at their own.
            columns, centre = columns + beside.names, beside.moments[0].mean
        self.__dict__.update(
            labels=tuple(self.interventions),
            named_regimes=named,
            regimes=tuple(m for _, m in own),
            n_features=len(self.control.mean),
            is_population=n is None,
            n_samples=None if n is None else FrozenMapping(sizes),
            batches=tuple(sorted({b.name for _, m in named for b in m.batches})),
            control_second_moment=(1.0 if n is None else n / (n - 1)) * self.control.covariance,
            columns=columns,
            centre=centre,
        )
        self.control_second_moment.flags.writeable = False

    @classmethod
    def from_samples(
        cls,
        name: str,
        *,
        observational: npt.ArrayLike,
        interventions: Mapping[str, LabelData],
        n_latent: int | None = None,
        features: Sequence[str] | None = None,
        control_name: str = CONTROL,
        batch: Mapping[str, RowNames] | None = None,
        group: Mapping[str, RowNames] | None = None,
        trim: float = 0.0,
        missing: Missing = "refuse",
        hard: bool | Iterable[str] = False,
        sensor_noise: NoiseGiven | None = None,
        reduce: bool | None = None,
    ) -> Client:
        """A client from rows: matrices of shape (n_rows, n_features), one per regime.

        `batch` maps each regime (the control under its own name) to the batch of each of its rows,
        or to one batch for all of them; a label with several matrices has a list of these. `group`
        gives the groups of rows that are alike in the same way. `trim` and `missing` are as for
        `read_client`; NaN stands for a missing value. `reduce` says whether directions that hold
        the latents replace the columns (see `jigsaw_crl.client.reduction`); wide tables by default.
        """
        features = column_names(observational) if features is None else features
        options = RowOptions(trim, missing, grouped=group is not None, batched=batch is not None)
        beside = {"batch": batch, "group": group}
        given = given_matrices(name, observational, interventions, control_name, **beside)
        control, regimes, reduction = moments_of_rows(
            name, given, features, options, n_latent, reduce
        )
        return cls.from_moments(
            name, control=control, interventions=regimes, n_latent=n_latent,
            features=features, control_name=control_name, hard=hard, sensor_noise=sensor_noise,
            reduction=reduction,
        )  # fmt: skip

    @classmethod
    def from_covariances(
        cls,
        name: str,
        *,
        observational: npt.ArrayLike,
        interventions: Mapping[str, LabelData],
        n_samples: SampleSizes,
        means: MeansGiven | None = None,
        n_latent: int | None = None,
        features: Sequence[str] | None = None,
        control_name: str = CONTROL,
        hard: bool | Iterable[str] = False,
        sensor_noise: NoiseGiven | None = None,
    ) -> Client:
        """A client from covariances (shape (n_features, n_features)), each about its own mean.

        `n_samples` is None for exact population moments, an int, or a mapping from regime
        (the control under its own name) to int. `means` maps regimes to their means, shape
        (n_features,); a regime that it leaves out has the control's. An intervention that moves
        the mean shows its target best there, so give the means if you have them. A label with
        several matrices has lists of sizes and means.
        """
        beside = {"n_samples": n_samples, "means": means}
        given = given_matrices(name, observational, interventions, control_name, **beside)
        control, regimes = moments_of_matrices(name, given)
        return cls.from_moments(
            name, control=control, interventions=regimes, n_latent=n_latent,
            features=features, control_name=control_name, hard=hard, sensor_noise=sensor_noise,
        )  # fmt: skip

    @classmethod
    def from_precisions(
        cls,
        name: str,
        *,
        observational: npt.ArrayLike,
        interventions: Mapping[str, LabelData],
        n_samples: SampleSizes,
        means: MeansGiven | None = None,
        n_latent: int | None = None,
        features: Sequence[str] | None = None,
        control_name: str = CONTROL,
        hard: bool | Iterable[str] = False,
        sensor_noise: NoiseGiven | None = None,
    ) -> Client:
        """A client from the pseudo-inverses Θ of its covariances (rank `n_latent`).

        `n_samples` and `means` are as for `from_covariances`. Without `n_latent`, the rank is that
        of the control's Θ up to rounding.
        """
        check_names(name, interventions, control_name, n_latent)
        beside = {"n_samples": n_samples, "means": means}
        given = given_matrices(name, observational, interventions, control_name, **beside)
        control, regimes = moments_of_matrices(name, given, inverse=True, rank=n_latent)
        return cls.from_moments(
            name, control=control, interventions=regimes, n_latent=n_latent,
            features=features, control_name=control_name, hard=hard, sensor_noise=sensor_noise,
        )  # fmt: skip

    @classmethod
    def from_moments(
        cls,
        name: str,
        *,
        control: Moments,
        interventions: Mapping[str, Moments | Sequence[Moments]],
        n_latent: int | None = None,
        features: Sequence[str] | None = None,
        control_name: str = CONTROL,
        hard: bool | Iterable[str] = False,
        sensor_noise: NoiseGiven | None = None,
        reduction: Reduction | None = None,
        covariates: Sequence[str] = (),
    ) -> Client:
        """A client from moments, for instance of a stream; along the directions of `reduction`.

        `covariates` names the features whose linear part is taken off the others.
        """
        check_names(name, interventions, control_name, n_latent)
        if not isinstance(hard, bool) and (
            isinstance(hard, str | Mapping) or not isinstance(hard, Iterable)
        ):
            remedy = "Pass True, or a list of the labels that are hard."
            raise InputError(f"hard is {hard!r}", remedy, client=name)
        kinds: Kinds = "hard" if hard is True else dict.fromkeys(map(str, hard or ()), "hard")
        named, regimes = [(control_name, control)], dict[str, tuple[Moments, ...]]()
        for label, given in interventions.items():
            regimes[label] = (given,) if isinstance(given, Moments) else tuple(given)
            if not regimes[label]:
                wrong = "the label has no moments"
                raise InputError(wrong, "Pass at least one.", client=name, regime=label)
            named += [(label, m) for m in regimes[label]]
        moments = [check_moments(m, client=name, regime=regime) for regime, m in named]
        features = features if reduction is None else reduction.features
        names, removed = check_features(name, features, len(moments[0].mean)), None
        if covariates:
            names, moments, removed = without_covariates(name, names, covariates, moments)
        counted = None if reduction is None or n_latent is not None else reduction.counted
        least = len(regimes) if counted is None else counted.used
        p = least if n_latent is None else n_latent
        # Only moments that fit together can be pooled.
        check_together(normal_label(name), [normal_label(x) for x, _ in named], moments, names, p)
        given, moments = moments, count_rows(moments, p)
        bent = dict[int, float]()
        if reduction is None:
            counted, bent = linear_sensors(moments[0], moments[1:], len(regimes), n_latent)
            p = p if counted is None else counted.used
        if bent:
            # What its rows count for is that of the sensors that are read.
            own = np.delete(np.arange(len(names)), list(bent))
            moments = list(map(counted_as, given, count_rows([m.select(own) for m in given], p)))
        if removed is not None:
            removed = replace(removed, moments=tuple(map(counted_as, removed.moments, moments)))
        rest = iter(moments[1:])
        by_label = {normal_label(x): tuple(islice(rest, len(m))) for x, m in regimes.items()}
        client = cls(
            normal_label(name),
            moments[0],
            FrozenMapping(by_label),
            p,
            names,
            normal_label(control_name),
            counted=counted,
            reduction=None if reduction is None else reduction.about(moments[0].mean),
            covariates=removed,
            bent=FrozenMapping({names[i]: value for i, value in bent.items()}),
        )
        client = client.with_interventions(kinds, strict=True) if kinds else client
        return client if sensor_noise is None else client.with_sensors(noise=sensor_noise)

    @classmethod
    def from_table(
        cls,
        frame: IntoFrame,
        *,
        regime: str = "regime",
        control: str = CONTROL,
        name: str,
        n_latent: int | None = None,
        ignore: Sequence[str] = (),
        batch: str | None = None,
        group: str | None = None,
        trim: float = 0.0,
        missing: Missing = "refuse",
        na: Sequence[str] = (),
        covariates: Sequence[str] = (),
        interventions: Kinds | None = None,
        sensor_noise: NoiseGiven | None = None,
    ) -> Client:
        """A client from a pandas, polars or pyarrow table with one row per sample.

        Parameters
        ----------
        frame : table
            A column `regime` says which regime a row belongs to; every other numeric column is a
            feature. A warning names the columns that are not used.
        regime, control, name, n_latent, ignore, batch, group, trim, missing, na, covariates, \
interventions, sensor_noise
            As for `read_client`.
        """
        client: Client = resolve_name("jigsaw_crl.study.reading:client_from_table")(
            frame, regime=regime, control=control, name=name, n_latent=n_latent, ignore=ignore,
            batch=batch, group=group, trim=trim, missing=missing, na=na, covariates=covariates,
            interventions=interventions, sensor_noise=sensor_noise,
        )  # fmt: skip
        return client

    def relabelled(self, names: Mapping[str, str]) -> Client:
        """The client with other names for some of its labels."""
        return replace(
            self,
            interventions={names.get(x, x): own for x, own in self.interventions.items()},
            hard=frozenset(names.get(x, x) for x in self.hard),
            up=FrozenMapping({names.get(x, x): sensor for x, sensor in self.up.items()}),
        )

    def without(self, spoilt: Collection[str]) -> Client | None:
        """The client without these regimes; None if no label is left, or no control.

        It keeps its `n_latent`, because the latents are still there.
        """
        left = {label: m for label, m in self.interventions.items() if label not in spoilt}
        if self.control_name in spoilt or not left:
            return None
        if len(left) == len(self.labels):
            return self
        hard, beside = self.hard & left.keys(), self.covariates
        if beside is not None:
            kept = zip(self.named_regimes, beside.moments, strict=True)
            beside = replace(beside, moments=tuple(m for (x, _), m in kept if x not in spoilt))
        return replace(
            self, interventions=FrozenMapping(left), hard=hard, counted=None, covariates=beside
        )

    def with_interventions(self, kinds: Kinds, *, strict: bool = False) -> Client:
        """The same client, with the user's word on which interventions are hard.

        An intervention is *hard* if its target no longer listens to its causes while it lasts: a
        setpoint that is held, a knock-out, a randomised dose. It is *soft* if the causes still
        count, even if less: a knock-down, an inhibitor, a changed gain.

        Parameters
        ----------
        kinds : {"soft", "hard"} or mapping of label to one of these
            For all labels, or by label; labels that are not named keep their kind. Names of labels
            that this client does not have are ignored, so that one mapping serves a whole study.
        strict : bool
            Refuse such names instead.
        """
        who = "the client does not have" if strict else None
        given = check_named(kinds, self.labels, who, client=self.name)
        hard = {x for x in self.labels if given.get(x) == "hard"}
        return replace(self, hard=frozenset(self.hard - given.keys() | hard))

    def with_sensors(
        self,
        up: Mapping[str, str] | None = None,
        units: Mapping[str, str] | None = None,
        noise: NoiseGiven | None = None,
        *,
        strict: bool = True,
    ) -> Client:
        """The same client, with sensors that labels should raise, units and noise of sensors.

        Parameters
        ----------
        up : mapping of label to feature, optional
            Of a latent only the size is known, not which way is up. "Up" is the direction in which
            this sensor rises when the label is raised.
        units : mapping of feature to str, optional
            Effects between labels that both have a sensor with a unit are given in units too.
        noise : float or mapping of feature to float, optional
            Standard deviation of what a sensor adds, before its readings are rounded; a number is
            that of all sensors. Where it is given for all, it is not estimated: three sensors more
            than latents are needed for that. Wide tables do not need it.
        strict : bool
            Refuse names that this client does not have; otherwise they are ignored, so that one
            mapping serves a whole study.
        """
        ups = {normal_label(str(x)): str(sensor) for x, sensor in (up or {}).items()}
        own = {str(x): str(unit) for x, unit in (units or {}).items()}
        noise = {} if noise is None else noise
        sd = noise if isinstance(noise, Mapping) else dict.fromkeys(self.features, noise)
        for x, value in sd.items():
            if isinstance(value, bool | str) or not 0 <= float(value) < np.inf:
                wrong = f"sensor_noise of {x} is {value!r}"
                raise InputError(wrong, "Give a standard deviation.", client=self.name)
        named = [("label", x, self.labels) for x in ups]
        named += [("feature", x, self.features) for x in (*ups.values(), *own, *sd)]
        for what, name, known in named if strict else ():
            if name not in known:
                near = did_you_mean(name, known) or f"It has {few(known)}."
                wrong = f"the client has no {what} {name!r} to say up, units or noise of"
                raise InputError(wrong, near, client=self.name)
        ups = {x: s for x, s in ups.items() if x in self.labels and s in self.features}
        own = {x: unit for x, unit in own.items() if x in self.features}
        sd = {x: float(value) for x, value in sd.items() if x in self.features}
        return replace(
            self,
            up=FrozenMapping({**self.up, **ups}),
            units=FrozenMapping({**self.units, **own}),
            sensor_noise=FrozenMapping({**self.sensor_noise, **sd}),
        )

    @cached_property
    def linear(self) -> Client:
        """The client without the sensors that bend: what it is read from."""
        if not self.bent:
            return self
        own = [i for i, x in enumerate(self.features) if x not in self.bent]
        kept = np.array(own, dtype=np.intp)
        return replace(
            self,
            control=self.control.select(kept),
            interventions={
                x: tuple(m.select(kept) for m in regimes)
                for x, regimes in self.interventions.items()
            },
            features=tuple(self.features[i] for i in own),
            covariates=None,
            bent=FrozenMapping({}),
        )

    @property
    def recorded(self) -> tuple[tuple[str, ...], Moments, Mapping[str, tuple[Moments, ...]]]:
        """Columns and moments as they were recorded, with covariates."""
        if self.covariates is None:
            return self.features, self.control, self.interventions
        control, *others = self.covariates.moments
        rest = iter(others)
        regimes = {x: tuple(islice(rest, len(own))) for x, own in self.interventions.items()}
        return self.columns, control, regimes

    def second_moments(self, label: str) -> list[FloatArray]:
        """`E (X − μ)(X − μ)ᵀ` of a label's regimes about the control's mean μ.

        An intervention that shifts the mean changes it, so it is treated like any other.
        """
        own = [(m.covariance, m.mean - self.control.mean) for m in self.interventions[label]]
        return [covariance + np.outer(shift, shift) for covariance, shift in own]

    def __repr__(self) -> str:
        counts = (
            (len(self.labels), "label"),
            (self.n_latent, "latent"),
            (self.n_features, "feature"),
        )
        rows = pluralise(self.control.rows or 0, "control row")
        sizes = [pluralise(*count) for count in counts]
        sizes.append("population" if self.is_population else rows)
        return f"Client({self.name!r}: {', '.join(sizes)})"
