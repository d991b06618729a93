"""Hard interventions at a client: is the claim true, and what does it reveal?

The user says that an intervention is hard: its target no longer listens to its causes. Then one of
the two effects between any pair of such targets must vanish (T8), because causes do not run in
circles. Where both clearly differ from zero, an intervention was not hard, and the labels of such
pairs count as soft.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.client.nulls import FALSE_ALARM
from jigsaw_crl.evidence.effects import Effects, Sizes
from jigsaw_crl.evidence.hypotheses import Hypotheses
from jigsaw_crl.nullcone.effects import effects_of
from jigsaw_crl.nullcone.reading import Reading, Sight, read

__all__ = ["Contradicted", "effect_tables", "functionals", "read_claimed", "representatives"]

# Log evidence by which the chosen line of a target must lead for its effects to be given.
LEAD = 4.0
# A shift of the mean in standard errors from which it says in which direction the target moved.
SHIFTED = 5.0


@dataclass(frozen=True)
class Contradicted:
    """A label whose intervention cannot have been hard.

    Parameters
    ----------
    label : str
    other : str
        The label of the pair that shows it most clearly.
    value, threshold : float
        The smaller of the pair's two effects in standard errors, and what chance allows.
    """

    label: str
    other: str
    value: float
    threshold: float


def read_claimed(
    sight: Sight, labels: tuple[str, ...], hypotheses: Hypotheses, hard: BoolArray
) -> tuple[Reading, tuple[Contradicted, ...]]:
    """Read a client whose interventions on some labels are said to be hard.

    Labels for which the data contradict this are read as soft.
    """
    reading = read(sight, len(labels), hypotheses=hypotheses, hard=hard)
    found = _contradictions(labels, reading) if hard.any() else ()
    if not found:
        return reading, ()
    wrong = {c.label for c in found}
    rest = hard & ~np.array([label in wrong for label in labels])
    return read(sight, len(labels), hypotheses=hypotheses, hard=rest), found


def _contradictions(labels: tuple[str, ...], reading: Reading) -> tuple[Contradicted, ...]:
    regime, known = representatives(reading, len(labels))
    known = known & reading.hard
    own = np.flatnonzero(known)
    if len(own) < 2:
        return ()
    i, j = (own[x] for x in np.triu_indices(len(own), 1))
    z = []
    for a, b in ((i, j), (j, i)):
        value, error = effects_of(reading.arrow, regime[a], regime[b])
        # Exact moments carry rounding errors only.
        floor = 1e-6 if reading.exact else 0.0
        z.append(np.abs(value) / np.maximum(error, floor))
    least: FloatArray = np.minimum(z[0], z[1])
    threshold = max(float(norm.isf(FALSE_ALARM / (2 * len(least)))), 4.0)
    out: dict[int, Contradicted] = {}
    open_ = least > threshold
    while open_.any():
        # The label in most contradictions; if two are in equally many, both are doubted.
        count = np.bincount(i[open_], minlength=len(known))
        count = count + np.bincount(j[open_], minlength=len(known))
        for label in np.flatnonzero(count == count.max()).tolist():
            here = open_ & ((i == label) | (j == label))
            if not here.any():
                continue
            worst = int(np.where(here, least, -1.0).argmax())
            other = int(j[worst] if i[worst] == label else i[worst])
            names = labels[label], labels[other]
            clear = f"{min(least[worst].item(), 1e6):.2f}"
            out[label] = Contradicted(*names, float(clear), round(threshold, 2))
        open_ &= ~np.isin(i, list(out)) & ~np.isin(j, list(out))
    return tuple(out[label] for label in sorted(out))


def representatives(reading: Reading, p: int) -> tuple[IntArray, BoolArray]:
    """The regime that stands for each label, and whether its line is known for sure."""
    regime, best = np.zeros(p, dtype=np.intp), np.full(p, -np.inf)
    sure = reading.usable & (reading.exact | (reading.margin > LEAD))
    for r, label in enumerate(reading.owner.tolist()):
        score = float(reading.strength[r]) if sure[r] else -np.inf
        if score > best[label]:
            regime[label], best[label] = r, score
    return regime, np.isfinite(best)


def effect_tables(reading: Reading, p: int) -> Effects:
    """Effects on every label with a hard intervention, of every label that can be seen.

    Parameters
    ----------
    reading : Reading
    p : int
        Number of labels.
    """
    regime, known = representatives(reading, p)
    effect, cause = np.nonzero(~np.eye(p, dtype=bool) & (reading.hard & known)[:, None] & known)
    total, applied = np.full((2, p, p), np.nan), np.full((2, p, p), np.nan)
    shifted = _shifted(reading, regime, known)
    # The cause's unit is its standard deviation, which a hard intervention on it reveals.
    of_hard = reading.hard[cause]
    pairs = effect[of_hard], cause[of_hard]
    total[:, pairs[1], pairs[0]] = effects_of(reading.arrow, regime[pairs[0]], regime[pairs[1]])
    moved = shifted[cause]
    pairs = effect[moved], cause[moved]
    applied[:, pairs[1], pairs[0]] = effects_of(
        reading.arrow, regime[pairs[0]], regime[pairs[1]], applied=True
    )
    return Effects(
        hard=tuple(reading.hard.tolist()),
        moved=tuple(shifted.astype(int).tolist()),
        total=Sizes(*total),
        applied=Sizes(*applied),
    )


def _shifted(reading: Reading, regime: IntArray, known: BoolArray) -> BoolArray:
    """Labels whose mean moved clearly, shape (p,)."""
    arrow = reading.arrow
    m = np.einsum("rp,rp->r", arrow.u, arrow.d)[regime]
    if arrow.arrows is None:
        return np.asarray(known & (m > 1e-6))
    return np.asarray(known & (m * np.sqrt(arrow.arrows.w_mean[regime]) > SHIFTED))


def functionals(reading: Reading, p: int) -> tuple[FloatArray, BoolArray]:
    """Functionals in whitened space that read the latents with hard interventions, unit variance.

    Returns
    -------
    h : array, shape (p, d)
    known : array of bool, shape (p,)
    """
    regime, known = representatives(reading, p)
    arrow = reading.arrow
    h = (arrow.u - arrow.c)[regime]
    return h / np.linalg.norm(h, axis=1, keepdims=True), known & reading.hard
