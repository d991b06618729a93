"""Checks of the data: are the method's assumptions visible in them?

==========  ======================================================================
`checks`    all checks of a client, of a study, and of several clients together
`findings`  the table of all findings: severity, message, remedy
`regimes`   does each regime look like an intervention on one latent?
`rows`      rows that depend on one another or drift, tails, clipped sensors, codes, groups
`sensors`   number of latents, noise, gains
==========  ======================================================================
"""

from jigsaw_crl.diagnostics.checks import ClientReport, StudyReport, check_client, check_study

__all__ = ["ClientReport", "StudyReport", "check_client", "check_study"]
