"""Do early and late control rows follow the same law?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri

from jigsaw_crl.base.findings import Finding
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.spectrum import Spectrum
from jigsaw_crl.diagnostics.contrasts import FALSE_ALARM, contrast, edges
from jigsaw_crl.moments.regime import Moments, inverse_square_root

__all__ = ["check_drift", "wandering"]

FloatArray = npt.NDArray[np.float64]


def check_drift(client: Client, spectrum: Spectrum) -> list[Finding]:
    """Findings about early and late control rows that follow different laws.

    With stretches k of n_k rows, `Σ n_k |W(μ_k − μ)|²` is χ² with (K − 1) r degrees of freedom
    when the mean stands still (W whitens by the control), and the covariances of the first and
    second half differ by no more than chance.
    """
    parts = _long_enough(client.control.parts, 2 * spectrum.rank)
    if len(parts) < 2:
        return []
    findings = []
    base = spectrum.basis.T @ client.control_second_moment() @ spectrum.basis
    moved, degrees = _moved(client.control, parts, inverse_square_root(base) @ spectrum.basis.T)
    edge = float(chdtri(degrees, FALSE_ALARM))
    if moved > edge:
        findings.append(_drift(client, "the mean of the control rows moves", moved, edge))
    first, second = _halves(parts)
    inner = [spectrum.basis.T @ m.covariance @ spectrum.basis for m in (first, second)]
    c = contrast(inner[0], inner[1], edges(spectrum.rank, first, second, FALSE_ALARM))
    if c.seen:
        findings.append(_drift(client, "the spread of the control rows changes", c.strength, 1.0))
    return findings


def wandering(control: Moments, W: FloatArray) -> float:
    """The factor by which the means of stretches of the control vary more than chance, at least 1.

    Rows that follow one another in time carry the information of fewer: this many times fewer, or
    less. `W` whitens by the control.
    """
    parts = _long_enough(control.parts, 2 * len(W))
    if len(parts) < 2:
        return 1.0
    moved, degrees = _moved(control, parts, W)
    return moved / degrees if moved > float(chdtri(degrees, FALSE_ALARM)) else 1.0


def _moved(control: Moments, parts: list[Moments], W: FloatArray) -> tuple[float, int]:
    """`Σ n_k |W(μ_k − μ)|²` of stretches of the control, and its degrees of freedom."""
    shifts = np.array([W @ (part.mean - control.mean) for part in parts])
    sizes = np.array([part.n for part in parts], dtype=np.float64)
    return float(sizes @ np.sum(shifts**2, axis=1)), (len(parts) - 1) * len(W)


def _long_enough(parts: tuple[Moments, ...], rows: int) -> list[Moments]:
    """Stretches of more than `rows` rows; a shorter one is merged into the one before it."""
    joined: list[Moments] = []
    for part in parts:
        if joined and min(part.n or 0, joined[-1].n or 0) <= rows:
            joined[-1] = joined[-1].merge(part)
        else:
            joined.append(part)
    return joined


def _halves(parts: list[Moments]) -> tuple[Moments, Moments]:
    total = sum(p.n or 0 for p in parts)
    first, second, so_far = parts[0], parts[-1], parts[0].n or 0
    for part in parts[1:-1]:
        so_far += part.n or 0
        if so_far <= total / 2:
            first = first.merge(part)
        else:
            second = part.merge(second)
    return first, second


def _drift(client: Client, what: str, value: float, threshold: float) -> Finding:
    return Finding(
        "drifting-control",
        "warning",
        f"{what} from the beginning of the file to its end, by more than chance allows",
        "Compare each intervention with control rows of its own time, or remove the trend.",
        value=value,
        threshold=threshold,
        client=client.name,
        regime=client.control_name,
    )
