"""Do two clients hold the same rows, or nearly the same?

Two independent samples differ: with S and S' the covariances of one regime from n and n' rows of
the same law, whitened by their mean in r directions,

    T = ½ n n'/(n + n') ‖S − S'‖²

is about χ² with r(r + 1)/2 degrees of freedom. Samples of different laws are further apart, and so
are samples with heavier tails than Gaussian rows. So regimes that are much *closer* than that, all
of them, share rows: a copy with a row more, or with some noise on top, or most of a copy.

Lighter tails bring samples nearer: rows that take two values leave the r variances no error at all,
and features that each site scales to unit variance do the same. Hence r(r − 1)/2 degrees count, and
the rows must be closer by a further factor. Controls do not count, because sites that whiten their
features make them all alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import gammaincinv

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.client.client import Client
from jigsaw_crl.diagnostics.findings import finding
from jigsaw_crl.diagnostics.regimes import SAME_ROWS
from jigsaw_crl.moments.regime import Moments

__all__ = ["check_copies"]


# Chance that independent samples are called near copies, if their tails were as light as the
# margin allows.
BY_CHANCE = 1e-9
MARGIN = 4.0
# A covariance that is a multiple of the identity to this precision was made so.
WHITE = 1e-6


def check_copies(clients: Sequence[Client]) -> list[Finding]:
    """Findings about clients whose rows are those of an earlier one, or nearly so."""
    findings: list[Finding] = []
    for i, j in _alike(clients):
        if any(f.client == clients[i].name for f in findings):
            continue
        found = _copy(clients[i], clients[j]) or _near_copy(clients[i], clients[j])
        if found is not None:
            findings.append(found)
    return findings


def _alike(clients: Sequence[Client]) -> Iterator[tuple[int, int]]:
    """Pairs of clients whose control variances differ less than those of independent samples."""
    tiny = np.finfo(np.float64).tiny
    seen: dict[int, tuple[list[int], list[FloatArray], list[float]]] = {}
    for i, client in enumerate(clients):
        n = client.control.n
        if n is None:
            continue
        spread = np.log(np.maximum(np.diagonal(client.control.covariance), tiny))
        numbers, spreads, sizes = seen.setdefault(client.n_features, ([], [], []))
        if numbers:
            # 2/n + 2/n' on average for Gaussian rows: copies are far below, most others far above.
            apart = np.mean((np.array(spreads) - spread) ** 2, axis=1)
            close = apart <= 1 / n + 1 / np.array(sizes)
            yield from ((i, numbers[k]) for k in np.flatnonzero(close))
        numbers.append(i)
        spreads.append(spread)
        sizes.append(float(n))


def _copy(client: Client, other: Client) -> Finding | None:
    """The same control rows to the last digit."""
    if not _same(client.control, other.control):
        return None
    if _is_white(client.control.covariance) and not any(
        _same(a, b) for a, b in _common(client, other)
    ):
        return None
    return finding("duplicated-client", 0.0, SAME_ROWS, client=client.name, other=other.name)


def _near_copy(client: Client, other: Client) -> Finding | None:
    """Regimes of common labels that are closer than independent samples can be."""
    r = min(client.n_latent, other.n_latent)
    pairs = list(_common(client, other))
    if r < 2 or not pairs:
        return None
    both = client.control.covariance + other.control.covariance
    basis = np.linalg.eigh(both)[1][:, -r:]
    distance = sum(_distance(a, b, basis) for a, b in pairs)
    degrees = len(pairs) * r * (r - 1) / 2
    # Lower quantile of χ², by which T divided by its degrees of freedom is judged.
    edge = 2 * float(gammaincinv(degrees / 2, BY_CHANCE)) / degrees / MARGIN
    if distance / degrees >= edge:
        return None
    return finding("near-copy", distance / degrees, edge, client=client.name, other=other.name)


def _common(client: Client, other: Client) -> Iterator[tuple[Moments, Moments]]:
    """The regimes of the labels that both have, strength by strength."""
    for label, moments in client.interventions.items():
        twins = other.interventions.get(label, ())
        if len(twins) == len(moments):
            yield from zip(moments, twins, strict=True)


def _distance(a: Moments, b: Moments, basis: FloatArray) -> float:
    """T of two samples, in the directions of `basis`."""
    assert a.n is not None
    assert b.n is not None
    if a.n + b.n - 2 < basis.shape[1]:
        return np.inf  # too few rows to whiten by
    first, second = (basis.T @ m.covariance @ basis for m in (a, b))
    values, vectors = np.linalg.eigh((first + second) / 2)
    if values[0] <= 0:
        return np.inf
    white = vectors / np.sqrt(values)
    difference = white.T @ (first - second) @ white
    return float(0.5 * a.n * b.n / (a.n + b.n) * np.sum(difference**2))


def _same(a: Moments, b: Moments) -> bool:
    if a.n != b.n:
        return False
    size = float(np.abs(a.covariance).max())
    return bool(np.allclose(a.covariance, b.covariance, rtol=0, atol=SAME_ROWS * size))


def _is_white(covariance: FloatArray) -> bool:
    """True for a multiple of the identity, which whitening at the site gives."""
    size = float(np.trace(covariance)) / len(covariance)
    plain = size * np.eye(len(covariance))
    return bool(np.allclose(covariance, plain, rtol=0, atol=WHITE * size))
