"""The null-cone method: from a client's moments to its fragment.

================ ===========================================================================
`pooling`        the control covariance that all regimes support
`spikes`         directions that an intervention moved, told from noise
`spread`         do regimes differ in all directions, by more than their rows allow?
`second_targets` regimes that act on a second target as well
`arrows`         estimated moments: a target's line, its c and its mean shift, in several readings
`arrow_search`   the search for the candidate lines
`delta`          first-order errors of functions of two readings
`arrow_pairs`    inner products of the arrows of two targets, with their covariance
`lines`          exact moments: the two lines that may carry a target's own noise
`pairs`          inner products of the lines of two targets, with their covariance
`targets`        the readings of all regimes, from arrows or from lines
`choice`         the readings that fit all pairs best, and how sure they are
`reading`        these steps in order: moments in, log Bayes factors out
`hard`           hard interventions: are they, and what do they reveal?
`metric_free`    ancestry from means and differences of covariances alone
`effects`        total effects and the latents themselves, with their errors
`structure`      districts, ancestry, blocks
`statements`     what exact moments make certain
`district`       the same inside a district
`district_lines` which lines the targets of a district may have, with bounds on rounding
`nonlinear`      systems that are not linear, read by hard interventions that shift the mean
`peeling`        their labels, from the last effects up
`peeling_errors` the errors of what is read so
`basis`          the functionals Q̂ that read the latents
`recovery`       a client in, a fragment out
================ ===========================================================================
"""

from __future__ import annotations

from jigsaw_crl.nullcone.recovery import Recovery, recover_fragment

__all__ = ["Recovery", "recover_fragment"]
