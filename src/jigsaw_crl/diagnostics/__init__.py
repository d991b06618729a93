"""Checks of the data: are the method's assumptions visible in them?

==========  ======================================================================
`checks`    all checks of a client or a study, and what they exclude
`findings`  the table of all findings: severity, message, remedy
`regimes`   does each regime look like an intervention on one node?
`rows`      rows that depend on one another, tails, clipped sensors, codes, groups
`drift`     do control rows of different times and batches follow the same law?
`sensors`   number of latents, noise, units, gains
`coverage`  several clients: rows in common, labels in common
`labels`    the findings in agreement with what recovery read
==========  ======================================================================

>>> import jigsaw_crl as jc
>>> from jigsaw_crl.diagnostics import check_client, is_fit
>>> client = jc.simulate.setting("A", 0).client(0, n_samples=20_000)
>>> is_fit(check_client(client).findings)
True
"""

from jigsaw_crl.diagnostics.checks import (
    ClientReport,
    StudyReport,
    check_client,
    check_study,
    is_fit,
    usable,
)
from jigsaw_crl.diagnostics.coverage import check_coverage, check_districts, unseen_pairs

__all__ = [
    "ClientReport",
    "StudyReport",
    "check_client",
    "check_coverage",
    "check_districts",
    "check_study",
    "is_fit",
    "unseen_pairs",
    "usable",
]
