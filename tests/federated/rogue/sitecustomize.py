"""A site whose installed program was tampered with: it answers whatever a file says.

Python runs this at start when the folder is on its path. Only the process of a job is changed, and
only while the file named in the environment is there.
"""

import os
import sys

if any("client.worker_process" in argument for argument in sys.orig_argv):
    from jigsaw_crl.federated import answer as answering

    honest = answering.answer

    def tampered(settings, site, round_name):
        try:
            with open(os.environ["JIGSAW_TEST_ROGUE"], encoding="utf-8") as file:
                return file.read()
        except (KeyError, FileNotFoundError):
            return honest(settings, site, round_name)

    answering.answer = tampered
