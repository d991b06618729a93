"""Systems that need not be linear, by name.

Let s_j be the standard deviation of latent j in the linear system with the weights A, and
`z_j = Z_j / s_j`. A system with the response φ has the equations

    Z_i = g_i C_i − m_i + ψ_i E_i ,       C_i = Σ_j A_ij s_j φ(z_j) .

The constants g_i and m_i give C_i the mean 0 and the variance that the causes have in the linear
system, in the control. So every latent has the mean 0 and the standard deviation s_i in every
system, and the same interventions have the same doses. They come from `REFERENCE` rows of the
control. A latent whose causes are cut has `Z_i = E_i`. "products" adds the products of all pairs of
causes to C_i; in "noise" the scale ψ_i of the noise depends on the causes and C_i is linear.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from graphlib import TopologicalSorter
from itertools import combinations

import numpy as np

from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.base.errors import choose
from jigsaw_crl.truth.simulate.sem import SEM

Response = Callable[[FloatArray], FloatArray]

# Rows that give mean and variance of the causes: to about a hundredth, which is exact enough for
# doses, at a few milliseconds a world.
REFERENCE = 20_000
# Number behind the seed for the choice of responses in a mixed system.
_RESPONSES = 117


def saturated(x: FloatArray, bend: float) -> FloatArray:
    """`tanh(bend · x) / bend`: slope 1 at zero, never beyond 1 / bend."""
    return np.asarray(np.tanh(bend * x) / bend, dtype=np.float64)


_RESPONSE: dict[str, Response] = {
    "linear": lambda z: z,
    "tanh": lambda z: np.tanh(1.5 * z),
    "saturating": lambda z: z / (1.0 + np.abs(z)),
    "relu": lambda z: np.maximum(z, 0.0),
    "sine": lambda z: np.sin(1.5 * z),
    # Squares of squares have no fourth moments that rows could show, so they end at 3.
    "squares": lambda z: (x := np.clip(z, -3.0, 3.0)) + x**2 / 2,
}
_MIXED = ("linear", "tanh", "relu", "sine")
SYSTEMS = {
    "linear": "every effect is proportional to its cause",
    "tanh": "effects saturate: tanh(1.5 z)",
    "saturating": "effects saturate slowly: z / (1 + |z|)",
    "relu": "effects of causes above their mean only: max(z, 0)",
    "sine": "effects rise and fall: sin(1.5 z)",
    "squares": "effects that grow faster than their cause: z + z² / 2 up to 3 standard deviations",
    "products": "causes act alone and in pairs: z_j + z_k + z_j z_k",
    "mixed": "each effect is linear, tanh, relu or sine, at random",
    "noise": "the scale of the noise depends on the causes as well",
}


@dataclass(frozen=True, eq=False)
class System:
    """The equations of all latents: s, g, m, and the responses that occur.

    `which` has the place of each edge's response among them; ψ is divided by `scale`, so that its
    mean square is 1.
    """

    spread: FloatArray
    gain: FloatArray
    centre: FloatArray
    response: tuple[Response, ...]
    which: IntArray
    products: bool
    noise: bool
    scale: FloatArray

    def latents(self, A: FloatArray, E: FloatArray) -> FloatArray:
        """Z from the noises of all latents, with the weights A; shape (n, p)."""
        Z = E.copy()
        for i in _effects(A):
            Z[:, i] *= self._noise(A[i], Z) / self.scale[i]
            Z[:, i] += self.gain[i] * self._causes(i, A[i], Z) - self.centre[i]
        return Z

    def _causes(self, i: int, weights: FloatArray, Z: FloatArray) -> FloatArray:
        parents = np.flatnonzero(weights)
        size, z = weights * self.spread, Z / self.spread
        out = sum(size[j] * self.response[self.which[i, j]](z[:, j]) for j in parents)
        if self.products:
            for j, k in combinations(parents, 2):
                out = out + np.sqrt(np.abs(size[j] * size[k])) * z[:, j] * z[:, k]
        return np.asarray(out)

    def _noise(self, weights: FloatArray, Z: FloatArray) -> FloatArray:
        if not self.noise:
            return np.ones(len(Z))
        size = weights * self.spread
        return np.asarray(np.exp(np.tanh(Z / self.spread @ size / np.linalg.norm(size))))


def system(sem: SEM, name: str, seed: int) -> System:
    """The system of this name with the weights and the variances of a linear one."""
    choose(name, SYSTEMS, "system")
    p, mixed = sem.n_latent, name == "mixed"
    names = _MIXED if mixed else (name if name in _RESPONSE else "linear",)
    which = np.random.default_rng([seed, _RESPONSES]).integers(len(names), size=(p, p))
    spread = np.sqrt(np.diagonal(sem.covariance()))
    found = System(
        spread,
        np.ones(p),
        np.zeros(p),
        tuple(_RESPONSE[n] for n in names),
        which,
        name == "products",
        name == "noise",
        np.ones(p),
    )
    Z = np.random.default_rng([seed, _RESPONSES, 1]).standard_normal((REFERENCE, p))
    Z *= np.sqrt(sem.variances)
    for i in _effects(sem.A):
        causes, noise = found._causes(i, sem.A[i], Z), found._noise(sem.A[i], Z)
        found.gain[i] = np.sqrt(spread[i] ** 2 - sem.variances[i]) / causes.std()
        found.centre[i] = found.gain[i] * causes.mean()
        found.scale[i] = np.sqrt(np.mean(noise**2))
        Z[:, i] *= noise / found.scale[i]
        Z[:, i] += found.gain[i] * causes - found.centre[i]
    return found


def _effects(A: FloatArray) -> list[int]:
    """The latents that have causes, each behind its causes."""
    causes = {i: np.flatnonzero(row).tolist() for i, row in enumerate(A)}
    return [i for i in TopologicalSorter(causes).static_order() if causes[i]]


def bent(p: int, bend: float) -> System:
    """The system `Z_i = Σ_j A_ij tanh(bend · Z_j) / bend + E_i`, without any scaling."""
    one = np.ones(p)
    which = np.zeros((p, p), dtype=np.intp)
    response = (partial(saturated, bend=bend),)
    return System(one, one, np.zeros(p), response, which, False, False, one)
