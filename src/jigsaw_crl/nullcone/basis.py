"""Rows of Q̂: the functional of the features that reads each latent.

In whitened coordinates the functional of target i is `u_i`, so on features it is `u_iᵀ W`. Lines of
different districts are orthogonal (T2). Given that a line errs by 1/α_i in each direction off
itself, α_i its precision, the lines are moved until these products vanish: each of two takes the
share of their product that its own error has,

    û_i = u_i − Σ_j α_j/(α_i + α_j) (u_i·u_j) u_j ,      j not in the district of i ,

a few times. Row i of Q̂ is then the functional of target i minus its projection, in feature space,
on the rows of its ancestor blocks, scaled to unit length (block RQ of the paper). That `u_i` is
orthogonal to the c's of labels of which i is no ancestor (T3), and that the whitening errs too,
would change E2 by less than .003 (60 worlds of 10 to 40 latents and settings A to C, 10³ and 10⁴
rows): this is left out.
"""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.nullcone.reading import Reading
from jigsaw_crl.nullcone.structure import Structure

# Each turn leaves about the square of the products.
PASSES = 5


def constrained_functionals(reading: Reading, structure: Structure) -> FloatArray:
    """Functionals on features, one per regime, shape (r, n_features).

    Exact moments have no error to condition on.
    """
    t, choice = reading.targets, reading.choice.reading
    at, white = (np.arange(len(choice)), choice), t.white
    u = t.u[at]
    if not white.exact:
        apart = ~structure.same_district[np.ix_(white.owner, white.owner)]
        variance = 1.0 / t.precision[at][:, None]
        share = variance / (variance + variance.T) * (apart & t.usable[:, None] & t.usable)
        for _ in range(PASSES):
            u = u - (share * (u @ u.T)) @ u
            u /= np.linalg.norm(u, axis=1, keepdims=True)
    return np.asarray(u @ white.W)
