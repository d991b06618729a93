"""Submit any job from an admin's kit and print how it ended, as a hostile coordinator would.

python submit_any.py KIT JOB SECONDS
"""

import json
import sys
import time

from nvflare.fuel.flare_api.flare_api import new_secure_session


def main(kit, job, seconds):
    with open(f"{kit}/startup/fed_admin.json", encoding="utf-8") as file:
        user = json.load(file)["admin"]["username"]
    session = new_secure_session(user, kit, timeout=seconds, command_timeout=60)
    end = time.monotonic() + seconds
    try:
        identifier = session.submit_job(job)
        while time.monotonic() < end:
            meta = session.get_job_meta(identifier)
            # The server writes the status first, and what each site said a moment later.
            if str(meta["status"]).startswith("FINISHED") and "job_deploy_detail" in meta:
                break
            time.sleep(0.5)
        else:
            session.abort_job(identifier)
        print("META " + json.dumps(meta))
    except Exception as error:
        print(f"ERROR {type(error).__name__}: {error}")
    finally:
        session.close()


main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
