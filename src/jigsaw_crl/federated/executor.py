"""The NVFlare component that runs at a site and sends its fragment."""

from __future__ import annotations

from pathlib import Path

from nvflare.apis.executor import Executor
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import ReturnCode, Shareable, make_reply
from nvflare.apis.signal import Signal

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.answer import make_answer
from jigsaw_crl.federated.job import ANSWER, ROUND, TASK
from jigsaw_crl.federated.settings import check_name, site_settings

__all__ = ["SendFragment"]


class SendFragment(Executor):
    """Answer the task with the site's finished fragment.

    The constructor takes no argument, so a job cannot choose the file: the site's own
    `local/jigsaw-site.json` names it. Error messages stay at the site.
    """

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        del abort_signal  # reading one file takes no time
        if task_name != TASK:
            return make_reply(ReturnCode.TASK_UNKNOWN)
        local, site = Path(fl_ctx.get_workspace().get_site_config_dir()), fl_ctx.get_identity_name()
        try:
            round_name = check_name(shareable.get(ROUND), "round")
            settings = site_settings(local, check_name(site, "site"))
        except InputError as error:
            self.log_error(fl_ctx, str(error), fire_event=False)
            return make_reply(ReturnCode.EXECUTION_EXCEPTION)
        reply = make_reply(ReturnCode.OK)
        reply[ANSWER] = make_answer(settings, site, round_name)
        return reply
