"""What runs at the coordinator: ask every site once, wait no longer than agreed, assemble."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import ReturnCode, Shareable
from nvflare.apis.signal import Signal

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.gathering import Gathering
from jigsaw_crl.federated.settings import coordinator_settings
from jigsaw_crl.federated.tasks import ANSWER, ROUND, TASK

__all__ = ["GatherFragments"]


class GatherFragments(Controller):
    """One round: broadcast one task, gather, assemble, write the result.

    Where results go, which sites take part and whose signatures count is in the coordinator's own
    `local/jigsaw-coordinator.json`, not in the job.

    Parameters
    ----------
    round_name : str
        Names the result folder; the same name again takes up the same round.
    min_sites : int
        With fewer fragments there is no result.
    timeout : int
        Seconds that sites have to answer.
    max_age : float, optional
        Seconds; older fragments are stale.
    method, seed, closed_world
        Of `assemble`.
    """

    def __init__(
        self,
        round_name: str,
        min_sites: int = 1,
        timeout: int = 300,
        max_age: float | None = None,
        method: str = "null-cone",
        seed: int = 0,
        closed_world: bool = False,
    ) -> None:
        super().__init__()
        self.round_name = round_name
        self.min_sites = min_sites
        self.timeout = timeout
        self.max_age = max_age
        self.options: dict[str, Any] = {"method": method}
        if method == "null-cone":
            self.options |= {"seed": seed, "closed_world": closed_world}
        self.gathering: Gathering | None = None

    def start_controller(self, fl_ctx: FLContext) -> None:
        local = Path(fl_ctx.get_workspace().get_site_config_dir())
        try:
            self.gathering = Gathering.open(
                coordinator_settings(local), self.round_name, max_age=self.max_age
            )
        except InputError as error:
            self.system_panic(str(error), fl_ctx)

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        gathering = self.gathering
        if gathering is None:
            return
        there = {client.name for client in fl_ctx.get_engine().get_clients()}
        targets = [site for site in gathering.settings.sites if site in there]
        if targets:
            task = Task(
                name=TASK,
                data=Shareable({ROUND: self.round_name}),
                timeout=self.timeout,
                result_received_cb=self._received,
            )
            self.broadcast_and_wait(
                task=task,
                fl_ctx=fl_ctx,
                targets=targets,
                min_responses=len(targets),
                abort_signal=abort_signal,
            )
        if abort_signal.triggered:
            return
        try:
            gathering.finish(self.min_sites, **self.options)
        except InputError as error:
            self.system_panic(str(error), fl_ctx)
            return
        self.log_info(fl_ctx, f"the result is in {gathering.folder}", fire_event=False)

    def _received(self, client_task: ClientTask, fl_ctx: FLContext) -> None:
        assert self.gathering is not None  # the task was sent
        site, result = client_task.client.name, client_task.result
        if not isinstance(result, Shareable):
            standing = self.gathering.refuse(site, "its answer is garbage")
        elif result.get_return_code() != ReturnCode.OK:
            code = str(result.get_return_code())[:40]
            standing = self.gathering.refuse(site, f"it could not carry out the task ({code})")
        else:
            standing = self.gathering.receive(site, result.get(ANSWER))
        # Large or hostile: the framework need not keep it.
        client_task.result = None
        self.log_info(fl_ctx, f"{site}: {standing.state} {standing.why}", fire_event=False)

    def stop_controller(self, fl_ctx: FLContext) -> None:
        self.cancel_all_tasks(fl_ctx=fl_ctx)
