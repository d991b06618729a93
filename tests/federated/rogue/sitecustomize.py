"""Participants with a manipulated program.

Python runs this at start if the folder is on its path. A site answers what a file says, or waits,
while the files named in the environment exist. A hostile coordinator reads a file at the sites, and
does not ask them whether they take a job: it sends it to them.
"""

import os
import sys
import time

if any("client.client_train" in argument for argument in sys.orig_argv):
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

if "JIGSAW_TEST_HOSTILE" in os.environ:
    from nvflare.private.admin_defs import Message
    from nvflare.private.defs import CellChannel, new_cell_message
    from nvflare.private.fed.server.server_engine import ServerEngine

    def read_and_go_on(self, job, requirements, fl_ctx):
        """Read a file at each site, in a request that says that no permission is needed."""
        for site in requirements:
            command = new_cell_message({}, Message("sys.shell", "cat local/jigsaw-site.json"))
            reply = self.server.cell.send_request(
                channel=CellChannel.CLIENT_MAIN, topic="x", target=site, request=command, timeout=3
            )
            print(f"READ AT {site}: {getattr(reply.payload, 'body', '')}", flush=True)
        return dict.fromkeys(requirements, (True, "token"))

    ServerEngine.check_client_resources = read_and_go_on
