"""One client: a control regime and labelled interventional regimes, as moments.

A client never holds rows. Exact population moments (`n_samples=None`) and estimates have the same
type and differ only in `Moments.n`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pkgutil import resolve_name
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.frozen import FrozenMapping
from jigsaw_crl.base.labels import normal_label
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.client.batches import Means, batch_means
from jigsaw_crl.client.checks import (
    Kinds,
    check_features,
    check_latents,
    check_moments,
    check_named,
    check_names,
    numerical_rank,
    validate_client,
)
from jigsaw_crl.client.counting import count_rows
from jigsaw_crl.client.covariates import Covariates, without_covariates
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
from jigsaw_crl.client.noise import LatentCount, NoiseModel, count_latents, noise_model
from jigsaw_crl.client.reduction import Reduction
from jigsaw_crl.client.white import White, whiten
from jigsaw_crl.moments.checks import check_second_moment
from jigsaw_crl.moments.preparing import Missing, RowOptions
from jigsaw_crl.moments.regime import Moments

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

CONTROL = "control"
# Standard deviation of the sensors' noise: of all sensors, or by feature.
NoiseGiven = float | Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Client:
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
        check_names(name, interventions, control_name)
        features = column_names(observational) if features is None else features
        options = RowOptions(trim, missing, grouped=group is not None, batched=batch is not None)
        beside = {"batch": batch, "group": group}
        given = given_matrices(name, observational, interventions, control_name, **beside)
        named, reduction = moments_of_rows(name, given, features, options, n_latent, reduce)
        return cls._built(name, named, n_latent, features, hard, sensor_noise, reduction)

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
        check_names(name, interventions, control_name)
        beside = {"n_samples": n_samples, "means": means}
        given = given_matrices(name, observational, interventions, control_name, **beside)
        named = moments_of_matrices(name, given)
        return cls._built(name, named, n_latent, features, hard, sensor_noise)

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
        check_names(name, interventions, control_name)
        if n_latent is None:
            control = check_second_moment(observational, client=name, regime=control_name)
            rank = max(numerical_rank(control), len(interventions))
        else:
            check_latents(name, n_latent, len(interventions))
            rank = n_latent
        beside = {"n_samples": n_samples, "means": means}
        given = given_matrices(name, observational, interventions, control_name, **beside)
        named = moments_of_matrices(name, given, rank)
        return cls._built(name, named, n_latent, features, hard, sensor_noise)

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
        check_names(name, interventions, control_name)
        named = [(control_name, control)]
        for label, value in interventions.items():
            own = (value,) if isinstance(value, Moments) else tuple(value)
            if not own:
                wrong = "the label has no moments"
                raise InputError(wrong, "Pass at least one.", client=name, regime=label)
            named += [(label, m) for m in own]
        named = [(regime, check_moments(m, client=name, regime=regime)) for regime, m in named]
        return cls._built(
            name, named, n_latent, features, hard, sensor_noise, reduction, covariates
        )

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

    @classmethod
    def _built(
        cls,
        name: str,
        named: Sequence[tuple[str, Moments]],
        n_latent: int | None,
        features: Sequence[str] | None,
        hard: bool | Iterable[str],
        noise: NoiseGiven | None,
        reduction: Reduction | None = None,
        covariates: Sequence[str] = (),
    ) -> Client:
        """The client with these moments and the names of their regimes, the control's first."""
        whole = isinstance(hard, bool)
        if not whole and (isinstance(hard, str | Mapping) or not isinstance(hard, Iterable)):
            remedy = "Pass True, or a list of the labels that are hard."
            raise InputError(f"hard is {hard!r}", remedy, client=name)
        kinds: Kinds = "hard" if hard is True else dict.fromkeys(map(str, hard or ()), "hard")
        of, moments = [normal_label(regime) for regime, _ in named], [m for _, m in named]
        features = features if reduction is None else reduction.features
        names, removed = check_features(name, features, moments[0].n_features), None
        if covariates:
            names, moments, removed = without_covariates(name, names, covariates, moments)
        regimes = _by_label(of, moments)
        counted = None if reduction is None or n_latent is not None else reduction.counted
        least = len(regimes) if counted is None else counted.used
        p = least if n_latent is None else n_latent
        client = cls(normal_label(name), moments[0], regimes, p, names, of[0])
        # Checked with the number of labels first: only moments that fit together can be pooled.
        validate_client(client)
        moments = count_rows(moments, p)
        client = replace(
            client, control=moments[0], interventions=_by_label(of, moments), counted=counted,
            reduction=None if reduction is None else reduction.about(moments[0].mean),
            covariates=None if removed is None else removed.counting(moments),
        )  # fmt: skip
        if n_latent is None and counted is None:
            counted = count_latents(moments[0], moments[1:], len(regimes))
            client = replace(client, n_latent=counted.used, counted=counted)
        return client.with_interventions(kinds, strict=True).with_sensors(noise=noise)

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

    def sensor_of(self, label: str) -> int:
        """Position of the feature that the label should raise; −1 if none is named."""
        return self.features.index(self.up[label]) if label in self.up else -1

    @cached_property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.interventions)

    @cached_property
    def regimes(self) -> tuple[Moments, ...]:
        """Moments of all interventional regimes, label by label."""
        return tuple(m for _, m in self.named_regimes[1:])

    @cached_property
    def named_regimes(self) -> tuple[tuple[str, Moments], ...]:
        """Name and moments of every regime: the control, then those of the labels."""
        named = ((label, m) for label, moments in self.interventions.items() for m in moments)
        return ((self.control_name, self.control), *named)

    @cached_property
    def n_features(self) -> int:
        return self.control.n_features

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that rows of this client have."""
        if self.reduction is not None:
            return self.reduction.columns
        return self.features + (() if self.covariates is None else self.covariates.names)

    @property
    def centre(self) -> FloatArray:
        """Mean of the control rows, column by column."""
        if self.reduction is not None:
            return self.reduction.centre
        if self.covariates is None:
            return self.control.mean
        # The control's mean without covariates is its mean where they are at their own.
        return self.covariates.moments[0].mean

    @property
    def recorded(self) -> tuple[tuple[str, ...], Moments, Mapping[str, tuple[Moments, ...]]]:
        """Columns and moments as they were recorded, with covariates."""
        if self.covariates is None:
            return self.features, self.control, self.interventions
        moments = self.covariates.moments
        return self.columns, moments[0], _by_label([x for x, _ in self.named_regimes], moments)

    @cached_property
    def is_population(self) -> bool:
        """True if the moments are exact."""
        return self.control.n is None

    @property
    def n_samples(self) -> dict[str, int] | None:
        """Rows per regime (summed over the strengths of a label); None for exact moments."""
        if self.control.n is None:
            return None
        own = {x: sum(m.rows or 0 for m in ms) for x, ms in self.interventions.items()}
        return {self.control_name: self.control.rows or 0, **own}

    @cached_property
    def batches(self) -> tuple[str, ...]:
        """Names of the batches of all regimes, sorted; empty where they are unknown."""
        return tuple(sorted({b.name for m in (self.control, *self.regimes) for b in m.batches}))

    @cached_property
    def noise(self) -> NoiseModel:
        """The noise of the sensors and the space of the latents."""
        return noise_model(self)

    @cached_property
    def means(self) -> Means:
        """The shifts of the means, without the offsets of batches."""
        return batch_means(self, self.noise)

    @cached_property
    def white(self) -> White:
        """All regimes, whitened by the control: what checks and recovery read."""
        return whiten(self)

    def control_second_moment(self) -> FloatArray:
        """Observational covariance, unbiased for estimates, shape (n_features, n_features)."""
        n = self.control.n
        scale = 1.0 if n is None else n / (n - 1)
        return scale * self.control.covariance

    def second_moments(self, label: str) -> list[FloatArray]:
        """`E (X − μ)(X − μ)ᵀ` of a label's regimes about the control's mean μ.

        An intervention that shifts the mean changes it, so it is treated like any other.
        """
        shifts = [m.mean - self.control.mean for m in self.interventions[label]]
        own = zip(self.interventions[label], shifts, strict=True)
        return [m.covariance + np.outer(shift, shift) for m, shift in own]

    def __repr__(self) -> str:
        rows = pluralise(self.control.rows or 0, "control row")
        size = "population" if self.is_population else rows
        return (
            f"Client({self.name!r}: {pluralise(len(self.labels), 'label')}, "
            f"{pluralise(self.n_latent, 'latent')}, "
            f"{pluralise(self.n_features, 'feature')}, {size})"
        )


def _by_label(of: Sequence[str], moments: Sequence[Moments]) -> Mapping[str, tuple[Moments, ...]]:
    """The moments by the labels that they are of; the control, which is first, is left out."""
    regimes: dict[str, tuple[Moments, ...]] = {}
    for label, m in zip(of[1:], moments[1:], strict=True):
        regimes[label] = (*regimes.get(label, ()), m)
    return FrozenMapping(regimes)
