"""From fragments to one global order, with a verdict and a certificate for every pair.

==============  ====================================================================
`panel`         all fragments in the coordinator's numbering
`missed`        how often a second direction is missed, estimated from the study
`combine`       `assemble`: exact if every client is certain, by evidence otherwise
`exact/`        what follows with certainty, and its proof
`posterior/`    probabilities of orders, and trust in each client
`parts`         labels that share no client, where there are too many to sample orders of
`verdict`       the possible answers, their codes in arrays, and their thresholds
`order`         `GlobalOrder`: the result
`explanation`   why a pair has its verdict
`certificate`   `Certificate`: the steps that lead to a verdict
`checking`      is a certificate right?
`design`        which labels the next client should access
`site_search`   how they are found
`futures`       what further data would settle: futures drawn from the posterior
`more_rows`     how many more rows at a site would settle a pair
`effect_design` what would narrow an effect
`plan`          `Design`: all of these together
`districts`     the districts a client would see, compiled
==============  ====================================================================
"""

from __future__ import annotations

from jigsaw_crl.assembly.certificate import Certificate
from jigsaw_crl.assembly.checking import CertificateChecker, check_certificate
from jigsaw_crl.assembly.combine import assemble
from jigsaw_crl.assembly.design import Proposal, next_client
from jigsaw_crl.assembly.order import GlobalOrder
from jigsaw_crl.assembly.plan import Design
from jigsaw_crl.assembly.verdict import Verdict

__all__ = [
    "Certificate",
    "CertificateChecker",
    "Design",
    "GlobalOrder",
    "Proposal",
    "Verdict",
    "assemble",
    "check_certificate",
    "next_client",
]
