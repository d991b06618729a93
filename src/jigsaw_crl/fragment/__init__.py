"""The fragment: what a client says, and all that leaves it.

==============  ====================================================================
`fragment`      `Fragment` and its parts
`file`          the JSON document
`reading`       fragment files, as a coordinator receives them
`latents`       rows to latents
`private`       a site's own file, with the basis
==============  ====================================================================
"""

from __future__ import annotations

from jigsaw_crl.fragment.fragment import BayesFactors, Fragment, Outcome, Statements

__all__ = ["BayesFactors", "Fragment", "Outcome", "Statements"]
