"""How interventions are drawn: what they do to their target, and in which rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError, choose
from jigsaw_crl.truth.simulate.sem import SEM, Change

# Every kind, with the range that its numbers are drawn from unless another is given.
_USUAL = "additive shrink hard-keep hard-replace noise-only mean-only mean-noise"
_RANGES = {
    **dict.fromkeys(_USUAL.split(), (2.0, 3.0)),
    "hard": (0.5, 2.0),
    "mild": (0.3, 0.7),
    "knock-down": (0.5, 0.5),
    "set": (0.7, 0.7),
}


@dataclass(frozen=True)
class Intervention:
    """How interventions are drawn.

    Parameters
    ----------
    kind : str
        - ``"additive"`` (the paper's): Δa ~ Unif[low, high] on every parent of the target, Δσ ~
          Unif[low, high];
        - ``"hard"``: the parents' weights are cut, and the standard deviation of the noise is
          multiplied by Unif[low, high];
        - ``"mild"``: each parent's weight is multiplied by Unif[low, high], the noise stays;
        - ``"shrink"``: weights halved and noise variance quartered (again for each further dose);
        - ``"knock-down"``: the variance of the target is multiplied by v ~ Unif[low, high]
          (weights by √v, noise variance by v), and its mean falls by √(1 − v) of its standard
          deviation, so that its second moment about the control's mean stays the same;
        - ``"set"``: the parents' weights are cut, and the standard deviation of the target becomes
          Unif[low, high] of what it was; the shift counts in it as well;
        - ``"hard-keep"``: the parents' weights are cut, the noise stays;
        - ``"hard-replace"``: the weights are cut, the noise variance becomes 1 + Unif[low, high];
        - ``"noise-only"``: Δσ alone; ``"mean-only"``: a shift of the mean by Unif[low, high]
          alone; ``"mean-noise"``: both of these.
    low, high : float, optional
        The range of the draws; by default [0.5, 2] for hard, [0.3, 0.7] for mild, 0.5 for
        knock-down, 0.7 for set, and [2, 3] otherwise.
    shift : float or (float, float)
        Size of the mean shift added to the target, in standard deviations of its noise in the
        control, or the range that it is drawn from. Its sign is random, and the same at all
        clients of a world, unless the intervention `raises` its target.
    raises : bool
        All shifts are upwards.
    penetrance : float
        Share of the regime's rows in which the intervention acts, in (0, 1]; the other rows
        follow the control.
    off_target : float
        Probability that an intervention also acts on a second latent, chosen at random among all
        latents of the world.
    off_target_strength : float
        Size of the change of the second latent, as a share of what an intervention on it does.

    Examples
    --------
    >>> from jigsaw_crl.truth.simulate import Intervention
    >>> Intervention("hard", shift=1.0).range
    (0.5, 2.0)
    >>> Intervention.named("weak", penetrance=0.8).range
    (0.5, 1.0)
    """

    kind: str = "additive"
    low: float | None = None
    high: float | None = None
    shift: float | tuple[float, float] = 0.0
    raises: bool = False
    penetrance: float = 1.0
    off_target: float = 0.0
    off_target_strength: float = 1.0

    def __post_init__(self) -> None:
        (low, high), (least, most) = self.range, self.shifts
        most_drawn = 1.0 if self.kind == "knock-down" else np.inf
        share, second = "Pass a share above 0, at most 1.", self.off_target_strength
        drawn, shifted = f"cannot be drawn from [{low}, {high}]", f"[{least}, {most}]"
        size = "Pass its size in standard deviations, at least 0; its sign is random."
        usual = "Pass 0 < low <= high, at most 1 for a knock-down."
        for fits, what, remedy in (
            (0 < low <= high <= most_drawn and high < np.inf, f"an intervention {drawn}", usual),
            (0 <= least <= most < np.inf, f"a shift cannot be drawn from {shifted}", size),
            (0 < self.penetrance <= 1, f"penetrance is {self.penetrance}", share),
            (0 <= self.off_target <= 1, f"off_target is {self.off_target}", "Pass a probability."),
            (0 < second <= 1, f"off_target_strength is {second}", share),
        ):
            if not fits:
                raise InputError(what, remedy)

    @property
    def range(self) -> tuple[float, float]:
        """Where the draws come from: low and high, or the kind's own range."""
        low, high = choose(self.kind, _RANGES, "intervention of kind")
        return low if self.low is None else self.low, high if self.high is None else self.high

    @property
    def shifts(self) -> tuple[float, float]:
        """Smallest and largest size of the mean shift."""
        low, high = self.shift if isinstance(self.shift, tuple) else (self.shift, self.shift)
        return float(low), float(high)

    @classmethod
    def named(cls, name: Intervention | str, **changes: Any) -> Intervention:
        """A protocol by name (a key of `INTERVENTIONS`), with the given fields replaced.

        An `Intervention` in place of the name is taken as it is.
        """
        if isinstance(name, str):
            name = choose(name, INTERVENTIONS, "intervention protocol")
        return replace(name, **changes)

    def draw(
        self,
        sem: SEM,
        target: int,
        rng: np.random.Generator,
        dose: int = 0,
        sign: float | None = None,
    ) -> Change:
        """One change of the target's equation; the shift has a random sign unless one is given."""
        # Always the same draws, so that protocols can be compared on the same numbers.
        drawn = rng.uniform(*self.range, sem.n_latent)
        variance, mean = (float(x) for x in rng.uniform(*self.range, 2))
        drawn_sign = float(rng.choice([-1.0, 1.0]))
        sign = drawn_sign if sign is None else sign
        unit = sem.covariance()[target, target] if self.kind == "set" else sem.variances[target]
        shift = sign * float(rng.uniform(*self.shifts)) * float(np.sqrt(unit))
        weights, variance, mean = self._change(sem, target, drawn, variance, mean, dose)
        return Change(target, weights, variance, mean + shift)

    def _change(
        self, sem: SEM, target: int, drawn: FloatArray, variance: float, mean: float, dose: int
    ) -> tuple[FloatArray, float, float]:
        """Change of weights, noise variance and mean, before the shift."""
        a, old = sem.A[target], float(sem.variances[target])
        none = np.zeros_like(a)
        match self.kind:
            case "additive":
                return np.where(a != 0, drawn, 0.0), variance, 0.0
            case "hard":
                return -a, (variance**2 - 1) * old, 0.0
            case "mild":
                return (drawn - 1) * a, 0.0, 0.0
            case "shrink":
                kept = 0.5 ** (1 + dose)
                return (kept - 1) * a, (kept**2 - 1) * old, 0.0
            case "knock-down":
                fall = np.sqrt((1 - variance) * sem.covariance()[target, target])
                return (np.sqrt(variance) - 1) * a, (variance - 1) * old, -float(fall)
            case "set":
                return -a, variance**2 * float(sem.covariance()[target, target]) - old, 0.0
            case "hard-keep":
                return -a, 0.0, 0.0
            case "hard-replace":
                return -a, 1.0 + variance - old, 0.0
            case "noise-only":
                return none, variance, 0.0
            case "mean-only":
                return none, 0.0, mean
            case _:
                return none, variance, mean


INTERVENTIONS = {
    "paper": Intervention(),
    "weak": Intervention(low=0.5, high=1.0),
    "strong": Intervention(low=4.0, high=6.0),
    **{kind: Intervention(kind) for kind in _RANGES if kind != "additive"},
}
