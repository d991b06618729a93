"""The paper's own method.

To read it beside the paper, open `literal`: Algorithms 1 to 4 in the paper's lines and symbols.
From estimates, `recover_fragment` runs it on smaller matrices, with the search of `ratio_search`;
from exact moments `exact_blocks` computes the same more accurately. Both are tested against it.

=====================  ======================================================================
`literal`              Algorithms 1 to 4 and the finite-sample versions, line by line
`ratio_search`         the label set of largest ratio (lines 3 to 17 of Algorithm 2-FS)
`exact_blocks`         Algorithms 1 and 2 on exact moments
`planes`               exact moments: the row spaces of Θ⁽ʲ⁾ − Θ⁽⁰⁾ and their dimensions
`exact_search`         the smallest label set of matching dimension (lines 3 to 12 of Algorithm 2)
`global_causal_order`  Algorithm 3: one order from the blocks of all clients
`calibration`          the choice of τ
`budget`               the number of label sets a search may examine
`recovery`             `recover_fragment`: the fragment of a client
=====================  ======================================================================
"""

from __future__ import annotations

from jigsaw_crl.baseline.budget import DEFAULT_BUDGET
from jigsaw_crl.baseline.calibration import DEFAULT_TAU, TAU_GRID, calibrate_tau
from jigsaw_crl.baseline.global_causal_order import PaperOrder, assemble_pairs
from jigsaw_crl.baseline.recovery import recover_fragment

__all__ = [
    "DEFAULT_BUDGET",
    "DEFAULT_TAU",
    "TAU_GRID",
    "PaperOrder",
    "assemble_pairs",
    "calibrate_tau",
    "recover_fragment",
]
