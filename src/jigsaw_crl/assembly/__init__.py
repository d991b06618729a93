"""Assembly: one global order, with probabilities, certificates, and "undetermined" as an answer."""

from __future__ import annotations

from jigsaw_crl.assembly.certificate import Certificate
from jigsaw_crl.assembly.checking import CertificateChecker, check_certificate
from jigsaw_crl.assembly.combine import assemble
from jigsaw_crl.assembly.global_order import GlobalOrder
from jigsaw_crl.assembly.verdict import Verdict

__all__ = [
    "Certificate",
    "CertificateChecker",
    "GlobalOrder",
    "Verdict",
    "assemble",
    "check_certificate",
]
