"""The null-cone method: from a client's moments to its fragment.

================ ===========================================================================
`judge`          the control that all regimes support, and how each regime differs from it
`second_targets` regimes that act on a second target as well
`readings`       a target's line, its c and its mean shift, in several readings
`search`         the search for the candidate lines
`exact`          exact moments: readings with a bound on rounding
`district`       what exact readings make certain, also inside a district
`delta`          first-order errors of functions of two readings; inner products with theirs
`choice`         the readings that fit all pairs best, and how sure they are
`reading`        these steps in order: moments in, log Bayes factors out
`effects`        hard interventions: are they? Total effects and the latents themselves
`metric_free`    ancestry from means and differences of covariances alone
`structure`      districts, ancestry, blocks, and the functionals Q̂ that read the latents
`nonlinear`      systems that are not linear, read by hard interventions that shift the mean
`changes`        what their regimes changed, with copies that show its errors
`peeling`        their labels, from the last effects up
`recovery`       a client in, a fragment out
================ ===========================================================================
"""

from __future__ import annotations

from jigsaw_crl.nullcone.recovery import Recovery

__all__ = ["Recovery"]
