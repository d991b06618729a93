"""The null-cone method: what a client really reveals, and how to read it from data.

==============  =============================================================================
`whitening`     the control covariance that all regimes support, and coordinates whitened by it
`spikes`        which directions an intervention moved, against the noise
`lines`         the two lines that may carry a target's own noise
`pairs`         how the lines of two targets meet, with the joint covariance of their products
`evidence`      unrelated, ancestor, descendant, same district: four hypotheses compared
`signs`         which of its two lines is a target's own
`reading`       all of these in order: moments in, log Bayes factors out
`structure`     districts, ancestry, blocks
`statements`    what exact moments make certain
`basis`         the functionals Q̂ that read the latents
`recovery`      a client in, a fragment out
==============  =============================================================================
"""

from __future__ import annotations

from jigsaw_crl.nullcone.recovery import Recovery, recover_fragment

__all__ = ["Recovery", "recover_fragment"]
