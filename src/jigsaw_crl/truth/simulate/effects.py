"""The true effects between the latents of a world."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.base.frozen import ReadOnlyArrays
from jigsaw_crl.truth.simulate.graph import induced_graph
from jigsaw_crl.truth.simulate.sem import SEM

__all__ = ["TrueEffects", "true_effects"]


@dataclass(frozen=True, eq=False)
class TrueEffects(ReadOnlyArrays):
    """True effects in standard deviations of the control, rows the cause, columns the effect.

    Parameters
    ----------
    labels : tuple of str
    total : array, shape (p, p)
        Total effects, 1 on the diagonal; exactly 0 where the row is no ancestor of the column.
    direct : array, shape (p, p)
        Direct effects of the system of these labels, all other latents marginalised out; exactly 0
        where there is no edge.
    """

    labels: tuple[str, ...]
    total: FloatArray
    direct: FloatArray

    def __post_init__(self) -> None:
        self._copy_read_only("total", "direct")


def true_effects(
    sem: SEM, nodes: IntArray, labels: tuple[str, ...], sign: FloatArray
) -> TrueEffects:
    """Effects between some nodes of a system.

    With s the standard deviations, the total effect of j on i is `(I − A)⁻¹[i, j] s_j / s_i`, and
    the direct one that of the marginal system, `A_k[i, j] s_j / s_i`.

    Parameters
    ----------
    sem : SEM
    nodes : array of int, shape (p,)
    labels : tuple of str
        Their names.
    sign : array, shape (p,)
        Direction in which each latent counts as growing.
    """
    deviation = np.sqrt(np.diag(sem.covariance()))[nodes] * sign
    graph = induced_graph(sem.A != 0, nodes)

    def scaled(matrix: FloatArray) -> FloatArray:
        return np.asarray((matrix * deviation / deviation[:, None]).T)

    total = scaled(sem.total_effects()[np.ix_(nodes, nodes)])
    path = graph.ancestors() | np.eye(len(nodes), dtype=bool)
    direct = scaled(np.where(graph.directed, sem.marginal(nodes).A, 0.0))
    return TrueEffects(labels, np.where(path, total, 0.0), direct)
