"""The fragment: what a client says, and all that leaves it.

==============  ====================================================================
`fragment`      `Fragment` and its parts
`file`          the JSON documents
`reading`       fragment files, written at a site and read by a coordinator
`latents`       rows to latents, and which sensors carry which latent
==============  ====================================================================
"""

from __future__ import annotations

from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.fragment.fragment import Fragment, Outcome, Statements

__all__ = ["BayesFactors", "Fragment", "Outcome", "Statements"]
