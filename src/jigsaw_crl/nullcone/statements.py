"""What follows with certainty from exact moments?

Across districts ancestry is settled either way (T3). Inside a district it is left open here.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jigsaw_crl.fragment import CANNOT_SAY, NO, YES, Statements
from jigsaw_crl.nullcone.reading import Reading
from jigsaw_crl.nullcone.structure import Structure

__all__ = ["certain_statements"]

BoolArray = npt.NDArray[np.bool_]


def certain_statements(
    reading: Reading,
    structure: Structure,
    labels: tuple[str, ...],
    silent: BoolArray,
    open_columns: BoolArray,
    n_latent: int,
) -> Statements:
    """Statements about every ordered pair of labels.

    Parameters
    ----------
    silent : array of bool, shape (p,)
        Labels about which nothing is said.
    open_columns : array of bool, shape (p,)
        Labels about whose ancestors nothing is said.
    """
    ancestor = np.where(structure.ancestor, YES, NO).astype(np.int8)
    ancestor[structure.same_district] = CANNOT_SAY
    ancestor[silent] = CANNOT_SAY
    ancestor[:, open_columns] = CANNOT_SAY
    np.fill_diagonal(ancestor, NO)
    return Statements(ancestor)
