"""Make a site answer what a file says, or wait, as a site with a manipulated program would.

Python runs this at start if the folder is on its path. It changes only the process of a job, and
only while the files named in the environment exist.
"""

import os
import sys
import time

if any("client.worker_process" in argument for argument in sys.orig_argv):
    # Before the site's component is loaded, which then imports the changed function.
    from jigsaw_crl.federated import answer

    honest = answer.make_answer

    def tampered(settings, site, round_name):
        hold = os.environ.get("JIGSAW_TEST_HOLD", "")
        if os.path.exists(hold):
            with open(hold, "w", encoding="utf-8") as file:
                file.write("holding")
            while os.path.exists(hold):
                time.sleep(0.1)
        try:
            with open(os.environ["JIGSAW_TEST_ROGUE"], encoding="utf-8") as file:
                return file.read()
        except (KeyError, FileNotFoundError):
            return honest(settings, site, round_name)

    answer.make_answer = tampered
