"""The fragment: what a client says, and all that leaves it.

==============  ====================================================================
`fragment`      `Fragment` and its parts
`file`          the JSON document
`packed`        the binary file, a tenth of it
`reading`       fragment files, as a coordinator receives them
`keys`          the sites' keys
`signing`       signed fragments
`latents`       rows to latents
`private`       a site's own file, with the basis
==============  ====================================================================
"""

from __future__ import annotations

from jigsaw_crl.fragment.fragment import BayesFactors, Fragment, Outcome, Statements

__all__ = ["BayesFactors", "Fragment", "Outcome", "Statements"]
