"""What runs at a site: it hands over the finished fragment, and can do nothing else."""

from __future__ import annotations

from pathlib import Path

from nvflare.apis.executor import Executor
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import ReturnCode, Shareable, make_reply
from nvflare.apis.signal import Signal

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated import answer as answering
from jigsaw_crl.federated.settings import check_name, site_settings
from jigsaw_crl.federated.tasks import ANSWER, ROUND, TASK

__all__ = ["SendFragment"]


class SendFragment(Executor):
    """Answer the one task there is with the site's finished fragment.

    The constructor has no argument, so a job cannot point it at another file: which file it reads
    is written in the site's own `local/jigsaw-site.json`. No error's text leaves the site.
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
        reply[ANSWER] = answering.answer(settings, site, round_name)
        return reply
