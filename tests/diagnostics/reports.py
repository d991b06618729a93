"""What the checks say of a client."""

import numpy as np

import jigsaw_crl as jc
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.diagnostics import check_client

Rows = dict[str, np.ndarray]


def client(control, regimes, **asked):
    return jc.Client.from_samples("lab", observational=control, interventions=regimes, **asked)


def checks(one):
    """The findings of the checks by name."""
    by_check: dict[str, list[Finding]] = {}
    for finding in check_client(one).findings:
        by_check.setdefault(finding.check, []).append(finding)
    return by_check
