"""The NVFlare component that runs at the coordinator and carries out a round."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import ReturnCode, Shareable
from nvflare.apis.signal import Signal

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.gathering import Gathering
from jigsaw_crl.federated.guard import guard_job
from jigsaw_crl.federated.job import ANSWER, ROUND, TASK, RoundOptions
from jigsaw_crl.federated.settings import coordinator_settings

__all__ = ["GatherFragments"]

_POLL = 0.2


class GatherFragments(Controller):
    """Ask every site once for its fragment, assemble what comes and write the result.

    The coordinator's own `local/jigsaw-coordinator.json`, not the job, says where results go, which
    sites take part and whether signatures are needed.

    Parameters
    ----------
    options
        Of `RoundOptions`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = RoundOptions(**options)
        self.gathering: Gathering | None = None

    def start_controller(self, fl_ctx: FLContext) -> None:
        local = Path(fl_ctx.get_workspace().get_site_config_dir())
        try:
            self.gathering = Gathering.open(
                coordinator_settings(local),
                self.options.round_name,
                max_age=self.options.max_age,
                again=self.options.again,
            )
        except InputError as error:
            self.system_panic(str(error), fl_ctx)
            return
        guard_job(fl_ctx.get_engine(), self._lost)

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        gathering = self.gathering
        if gathering is None:
            return
        connected = {client.name for client in fl_ctx.get_engine().get_clients()}
        targets = [site for site in gathering.settings.sites if site in connected]
        if targets:
            self._ask(gathering, targets, abort_signal, fl_ctx)
        if abort_signal.triggered:
            gathering.fail("the round was stopped before it was assembled")
            return
        try:
            gathering.finish(self.options.min_sites, method=self.options.method)
        except InputError as error:
            self.system_panic(str(error), fl_ctx)
            return
        self.log_info(fl_ctx, f"the result is in {gathering.folder}", fire_event=False)

    def _ask(
        self, gathering: Gathering, targets: list[str], abort_signal: Signal, fl_ctx: FLContext
    ) -> None:
        """Ask the sites for their fragments, and wait until none is left that can answer."""
        task = Task(
            name=TASK,
            data=Shareable({ROUND: self.options.round_name}),
            timeout=self.options.timeout,
            result_received_cb=self._received,
        )
        self.broadcast(task=task, fl_ctx=fl_ctx, targets=targets, min_responses=len(targets))
        while task.completion_status is None and not abort_signal.triggered:
            if not gathering.waits_for(targets):
                self.cancel_task(task, fl_ctx=fl_ctx)
                break
            time.sleep(_POLL)

    def _lost(self, site: str) -> None:
        assert self.gathering is not None  # the guard is set up after it
        self.gathering.lose(site, "its process ended before it answered")

    def _received(self, client_task: ClientTask, fl_ctx: FLContext) -> None:
        assert self.gathering is not None  # the task was sent
        site, result = client_task.client.name, client_task.result
        if not isinstance(result, Shareable):
            standing = self.gathering.refuse(site, "its answer is garbage")
        elif result.get_return_code() != ReturnCode.OK:
            code = str(result.get_return_code())[:40]
            standing = self.gathering.refuse(site, f"it could not carry out the task ({code!r})")
        else:
            standing = self.gathering.receive(site, result.get(ANSWER))
        # The answer may be huge or hostile: NVFlare must not keep it.
        client_task.result = None
        self.log_info(fl_ctx, f"{site}: {standing.state} {standing.why}", fire_event=False)

    def stop_controller(self, fl_ctx: FLContext) -> None:
        self.cancel_all_tasks(fl_ctx=fl_ctx)
