"""Rows of Q̂: the functional of the features that reads each latent.

In whitened coordinates the functional of target i is `u_i`, so on features it is `u_iᵀ W`. Lines of
different districts are orthogonal (T2). Given that a line errs by 1/α_i in each direction off
itself, α_i its precision, the lines are replaced by their conditional mean given that these
products `T_ij = u_i·u_j` vanish: to first order `û_i = u_i − (1/α_i) Σ_j Y_ij u_j`, where Y is
symmetric, zero inside districts, and solves

    (A Y G + G Y A)_ij = T_ij ,      A = diag(1/α) ,  G = U Uᵀ ,

by conjugate gradients. Row i of Q̂ is then the functional of target i minus its projection, in
feature space, on the rows of its ancestor blocks, scaled to unit length (block RQ of the paper).
That `u_i` is orthogonal to the c's of labels of which i is no ancestor (T3), and that the whitening
errs too, would change E2 by less than .003 (60 worlds of 10 to 40 latents and settings A to C, 10³
and 10⁴ rows): this is left out.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.nullcone.reading import Reading
from jigsaw_crl.nullcone.structure import Structure

__all__ = ["constrained_functionals", "orthogonal_rows"]

# Root mean square of the products, in standard errors, at which the solver stops: a hundredth
# of the sampling error does not change a functional visibly. If it takes more steps, lines are
# dependent, and nothing is conditioned on.
RESIDUAL, MOST_STEPS = 0.05, 200
# Length of a unit row off the others from which it is rounding.
DEPENDENT = 1e-7


def constrained_functionals(reading: Reading, structure: Structure) -> FloatArray:
    """Functionals on features, one per regime, shape (r, n_features).

    Exact moments have no error to condition on.
    """
    t, choice = reading.targets, reading.choice.reading
    at, white = (np.arange(len(choice)), choice), t.white
    u, labels = t.u[at], np.ix_(white.owner, white.owner)
    if white.exact:
        return np.asarray(u @ white.W)
    variance, G = 1.0 / t.precision[at][:, None], u @ u.T
    must = ~structure.same_district[labels] & t.usable[:, None] & t.usable
    # In standard errors of the products.
    scale = np.where(must, 1.0 / np.sqrt(variance + variance.T), 0.0)

    def image(y: FloatArray) -> FloatArray:
        moved = variance * (scale * y.reshape(G.shape)) @ G
        return np.asarray((scale * (moved + moved.T)).ravel())

    system = LinearOperator((G.size, G.size), matvec=image, dtype=np.float64)
    enough = RESIDUAL * np.sqrt(np.count_nonzero(must))
    y, unsolved = cg(system, (scale * G).ravel(), rtol=0.0, atol=enough, maxiter=MOST_STEPS)
    Y = np.zeros_like(G) if unsolved else scale * y.reshape(G.shape)
    return np.asarray((u - variance * (Y @ u)) @ white.W)


def orthogonal_rows(functionals: FloatArray, structure: Structure) -> FloatArray:
    """Rows of Q̂: each functional minus its projection on its ancestor blocks' rows.

    The span of the ancestors' rows is the span of their functionals, whatever their own order.

    Parameters
    ----------
    functionals : array, shape (p_labels, n_features)
        One per label.
    """
    above = structure.reach & ~structure.reach.T
    scale = np.linalg.norm(functionals, axis=1, keepdims=True)
    unit = functionals / np.where(scale > 0, scale, 1.0)
    rows = unit.copy()
    for block in structure.blocks:
        Q, R = np.linalg.qr(unit[above[:, block[0]]].T)
        # A row that depends on those before it adds no direction.
        Q = Q[:, np.abs(np.diagonal(R)) > DEPENDENT]
        for _ in range(2):  # the second pass removes what rounding left
            rows[block] -= (rows[block] @ Q) @ Q.T
    norm = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norm > 0, norm, 1.0))
