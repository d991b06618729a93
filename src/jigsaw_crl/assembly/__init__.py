"""From fragments to one global order, with probabilities, certificates and "undetermined".

==============  ====================================================================
`panel`         all fragments in the coordinator's numbering
`combine`       `assemble`: exact where every client is certain, by evidence otherwise
`exact/`        what follows with certainty, and its proof
`posterior/`    probabilities of orders, trust in each client
`order`         `GlobalOrder`
`explanation`   why a pair has its verdict
`certificate`   the answer to that question
`checking`      certificates checked against the fragments
`design`        which client to add next
==============  ====================================================================
"""

from __future__ import annotations

from jigsaw_crl.assembly.certificate import Certificate
from jigsaw_crl.assembly.checking import CertificateChecker, check_certificate
from jigsaw_crl.assembly.combine import assemble
from jigsaw_crl.assembly.design import Proposal, next_client
from jigsaw_crl.assembly.order import GlobalOrder
from jigsaw_crl.assembly.verdict import Verdict

__all__ = [
    "Certificate",
    "CertificateChecker",
    "GlobalOrder",
    "Proposal",
    "Verdict",
    "assemble",
    "check_certificate",
    "next_client",
]
