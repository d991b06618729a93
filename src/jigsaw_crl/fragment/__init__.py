"""The fragment: what a client says, and all that leaves it.

==============  ====================================================================
`fragment`      `Fragment` and its parts
`file`          the JSON documents
`reading`       fragment files, written at a site and read by a coordinator
`disclosure`    what of it leaves a site, and how far numbers are rounded
`latents`       rows to latents, and which sensors carry which latent
==============  ====================================================================
"""

from __future__ import annotations

from jigsaw_crl.fragment.fragment import BayesFactors, Fragment, Outcome, Statements

__all__ = ["BayesFactors", "Fragment", "Outcome", "Statements"]
