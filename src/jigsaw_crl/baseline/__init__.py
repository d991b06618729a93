"""The paper's own method.

To read it beside the paper, open `literal`: Algorithms 1 to 4 in the paper's lines and symbols. The
other modules compute the same more accurately and faster, and are tested against it.

=====================  ======================================================================
`literal`              Algorithms 1 to 4 and the finite-sample versions, line by line
`block_ancestor`       Algorithms 1 and 1-FS: which earlier blocks are ancestors of a new one
`block_causal_order`   Algorithms 2 and 2-FS: blocks, their order and the latent basis Q̂
`global_causal_order`  Algorithm 3: one order from the blocks of all clients
`planes`               exact moments: the row spaces of Θ⁽ʲ⁾ − Θ⁽⁰⁾ and their dimensions
`differences`          estimates: the matrices Θ̂⁽ʲ⁾ − Θ̂⁽⁰⁾ and the singular-value ratio
`exact_search`         the smallest label set of matching dimension (lines 6 to 11 of Algorithm 2)
`ratio_search`         the label set of largest ratio (lines 6 to 13 of Algorithm 2-FS); both
                       modules hold the published enumeration and a faster search
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
