"""The paper's own method.

To read it beside the paper, open `literal`: Algorithms 1 to 4 in the paper's lines and symbols. Of
these, `recover_fragment` runs Algorithm 2-FS on smaller matrices with the search of the module
`search`; for exact moments τ is their rounding error. Both are tested against the printed lines.

==========  ===========================================================================
`literal`   Algorithms 1 to 4 and the finite-sample versions, line by line
`search`    the label set of largest ratio (lines 3 to 17 of Algorithm 2-FS)
`recovery`  fragments of clients, and one order from their blocks (Algorithm 3)
==========  ===========================================================================
"""

from __future__ import annotations

from jigsaw_crl.baseline.recovery import DEFAULT_TAU, TAU_GRID, assemble_pairs, recover_fragment
from jigsaw_crl.baseline.search import DEFAULT_BUDGET

__all__ = ["DEFAULT_BUDGET", "DEFAULT_TAU", "TAU_GRID", "assemble_pairs", "recover_fragment"]
