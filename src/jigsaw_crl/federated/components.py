"""The components that NVFlare runs: at a site, in a round at the coordinator, and its guard.

NVFlare ends a job for all sites when one site's process fails, when a site's policy refuses the
job, when a site answers with certain return codes, and when a site sends a fatal event. In a round,
a site that fails is missing and the others go on: `Guard` sees to it in the coordinator's main
process, and `guard_job` in the process of a round. NVFlare has no hook for these four, nor for the
certificate of a participant that connects; so they replace a part of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey, SystemComponents
from nvflare.apis.fl_context import FLContext
from nvflare.apis.fl_exception import NotAuthenticated
from nvflare.apis.impl.controller import Controller
from nvflare.apis.job_def import JobMetaKey
from nvflare.apis.job_launcher_spec import JobReturnCode
from nvflare.apis.shareable import ReturnCode, Shareable, make_reply
from nvflare.apis.signal import Signal
from nvflare.fuel.common.exit_codes import ProcessExitCode
from nvflare.fuel.f3.cellnet.defs import CellChannel, CellChannelTopic, IdentityChallengeKey
from nvflare.fuel.f3.cellnet.defs import ReturnCode as CellReturnCode
from nvflare.fuel.f3.cellnet.utils import make_reply as make_cell_reply
from nvflare.fuel.f3.message import Message
from nvflare.private.defs import CellMessageHeaderKeys, JobFailureMsgKey
from nvflare.widgets.fed_event import FED_EVENT_TOPIC

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.answer import make_answer
from jigsaw_crl.federated.kits import certificate_digest
from jigsaw_crl.federated.running import ANSWER, META_AGAIN, META_ROUND, META_STATE, ROUND, TASK
from jigsaw_crl.federated.settings import (
    RoundOptions,
    check_name,
    coordinator_settings,
    site_settings,
)

if TYPE_CHECKING:
    from jigsaw_crl.federated.round import Gathering

_POLL = 0.2
_FAILURES = frozenset(
    {
        ProcessExitCode.CONFIG_ERROR,
        ProcessExitCode.EXCEPTION,
        ProcessExitCode.INFRASTRUCTURE_ERROR,
        ProcessExitCode.UNSAFE_COMPONENT,
        JobReturnCode.ABORTED,
    }
)


def _local(fl_ctx: FLContext) -> Path:
    return Path(fl_ctx.get_workspace().get_site_config_dir())


class SendFragment(Executor):
    """At a site: answer the task with the site's finished fragment.

    The constructor takes no argument, so a job cannot choose the file: the site's own
    `local/jigsaw-site.json` names it. Error messages stay at the site.
    """

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        del abort_signal  # reading one file takes no time
        if task_name != TASK:
            return make_reply(ReturnCode.TASK_UNKNOWN)
        try:
            site = check_name(fl_ctx.get_identity_name(), "site")
            round_name = check_name(shareable.get(ROUND), "round")
            settings = site_settings(_local(fl_ctx))
        except InputError as error:
            self.log_error(fl_ctx, str(error), fire_event=False)
            return make_reply(ReturnCode.EXECUTION_EXCEPTION)
        reply = make_reply(ReturnCode.OK)
        reply[ANSWER] = make_answer(settings, site, round_name)
        return reply


# -- the process of a round -----------------------------------------------------------------------


class GatherFragments(Controller):
    """At the coordinator: ask every site once for its fragment, and assemble what comes.

    Takes the fields of `RoundOptions`. The coordinator's own `local/jigsaw-coordinator.json`, not
    the job, says where results go, which sites take part and whether signatures are needed.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = RoundOptions(**options)
        self.gathering: Gathering | None = None

    def start_controller(self, fl_ctx: FLContext) -> None:
        from jigsaw_crl.federated.round import Gathering  # sites start faster without assembly

        asked = self.options
        try:
            self.gathering = Gathering.open(
                coordinator_settings(_local(fl_ctx)), asked.round_name, again=asked.again
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


def guard_job(engine: Any, lose: Callable[[str], None]) -> None:
    """Keep a site from ending the round that runs in this process.

    `lose` is called with the name of a site whose process has ended, perhaps more than once.
    """
    runner = engine.get_component("_Server_Runner")
    # With these return codes of one site, NVFlare ends the job of all.
    runner.ABORT_RETURN_CODES = []
    # NVFlare ends a job when every site has been dead for a minute, even if they have answered.
    runner.handle_dead_job = lambda site, _: lose(site)
    # Sites have no events to send, and NVFlare would take a fatal one for its own.
    engine.run_manager.aux_runner.topic_table[FED_EVENT_TOPIC] = _ignore


def _ignore(topic: str, request: Shareable, fl_ctx: FLContext) -> Shareable:
    del topic, request, fl_ctx
    return make_reply(ReturnCode.OK)


# -- the coordinator's main process ---------------------------------------------------------------


class Guard(FLComponent):
    """At the coordinator: who is admitted, which job runs where, and what a failed site does to it.

    A component of the coordinator's `resources.json`. Where its settings cannot be read, no site is
    admitted and none is asked. It passes the state of a round to the person who submitted it.
    """

    def __init__(self) -> None:
        super().__init__()
        # Loaded at the start, because requests do not wait; and only here, because sites need none.
        from jigsaw_crl.federated.round import begin_round, end_round

        self.begin_round, self.end_round = begin_round, end_round
        self.watching = False
        # Sites whose process of a job has failed, by job.
        self.lost: dict[str, set[str]] = {}

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        if event_type == EventType.SYSTEM_START:
            engine = fl_ctx.get_engine()
            watch(engine.server.client_manager, _local(fl_ctx))
            self.watching = True
            # In the place of NVFlare's own, which ends the job.
            engine.server.cell.register_request_cb(
                channel=CellChannel.SERVER_MAIN,
                topic=CellChannelTopic.REPORT_JOB_FAILURE,
                cb=self.site_failed,
                engine=engine,
            )
        elif event_type == EventType.CLIENT_REGISTER_RECEIVED:
            if not self.watching:
                # NVFlare refuses the registration when this is raised.
                raise NotAuthenticated("the coordinator is not ready")
        elif event_type == EventType.CLIENT_HEARTBEAT_PROCESSED:
            self.tell_again(fl_ctx.get_engine())
        elif event_type == EventType.SUBMIT_JOB:
            self._submitted(fl_ctx)
        elif event_type == EventType.BEFORE_CHECK_CLIENT_RESOURCES:
            keep_listed(fl_ctx.get_prop(FLContextKey.CLIENT_RESOURCE_SPECS), _local(fl_ctx))
        elif event_type in (EventType.JOB_COMPLETED, EventType.JOB_ABORTED):
            self._ended(fl_ctx)

    def _submitted(self, fl_ctx: FLContext) -> None:
        """Refuse a round that may not be run; write the state of one that may."""
        meta = fl_ctx.get_prop(FLContextKey.JOB_META)
        if META_ROUND not in meta:
            return
        try:
            settings = coordinator_settings(_local(fl_ctx))
            self.begin_round(settings, meta[META_ROUND], again=meta.get(META_AGAIN) is True)
        except InputError as error:
            fl_ctx.set_prop(FLContextKey.JOB_BLOCK_REASON, str(error), private=True, sticky=False)

    def _ended(self, fl_ctx: FLContext) -> None:
        """End a round whose process did not, and put its state where the submitter finds it."""
        job = (fl_ctx.get_prop(FLContextKey.EVENT_DATA) or {}).get(JobMetaKey.JOB_ID.value)
        manager = fl_ctx.get_engine().get_component(SystemComponents.JOB_MANAGER)
        meta = manager.get_job(job, fl_ctx).meta if job else {}
        if META_ROUND not in meta:
            return
        settings = coordinator_settings(_local(fl_ctx))
        record = self.end_round(settings, meta[META_ROUND], str(meta.get("status")))
        manager.update_meta(job, {META_STATE: record.model_dump()}, fl_ctx)

    def site_failed(self, request: Message, engine: Any) -> Message:
        """Take the report that a site's process has ended.

        If it failed, the process of the round hears that the site is lost, and goes on. All other
        reports are for NVFlare.
        """
        payload = request.payload
        if isinstance(payload, dict) and payload.get(JobFailureMsgKey.CODE) in _FAILURES:
            token = request.get_header(CellMessageHeaderKeys.TOKEN)
            client = engine.server.client_manager.clients.get(token)
            job = str(payload.get(JobFailureMsgKey.JOB_ID))
            if client and engine.job_runner.is_client_outcome_pending(job, client.name):
                engine.job_runner.resolve_client_outcome(job, client.name)
                self.lost.setdefault(job, set()).add(client.name)
                self.tell_again(engine)
                return make_cell_reply(CellReturnCode.OK)
        reply: Message = engine.server.process_job_failure(request)
        return reply

    def tell_again(self, engine: Any) -> None:
        """Tell the processes of running rounds which sites have failed.

        The message is lost if the process of the round is not ready yet, so it is repeated at every
        heartbeat of a site; else the round would wait for a site that cannot answer.
        """
        for job in list(self.lost):
            if job not in engine.run_processes:
                del self.lost[job]
                continue
            for site in sorted(self.lost[job]):
                engine.notify_dead_job(job, site, "its process failed")


def watch(manager: Any, local: Path) -> None:
    """Have NVFlare's client manager admit nobody whose certificate is not the one that is listed.

    The coordinator lists the newest certificate of a site, so a stolen kit is of no use after
    `renew`, and none of a site that was revoked. NVFlare then checks that the authority signed the
    certificate, and that the site has its key.
    """
    authenticate = manager.authenticate

    def checked(request: Message, fl_ctx: FLContext) -> Any:
        name = str(request.get_header(CellMessageHeaderKeys.CLIENT_NAME))
        try:
            shown = certificate_digest(request.payload.get(IdentityChallengeKey.CERT))
            listed = coordinator_settings(local).certificates.get(name)
        except Exception as error:  # NVFlare would go on after any other than its own
            raise NotAuthenticated(f"{name[:80]!r} is not admitted: {error}") from error
        if shown != listed:
            why = "is not its newest" if listed else "is not listed: the site was revoked"
            raise NotAuthenticated(f"the certificate of {name[:80]!r} {why}")
        return authenticate(request, fl_ctx)

    manager.authenticate = checked


def keep_listed(wanted: dict[str, Any], local: Path) -> None:
    """Take sites that are not on the coordinator's list out of the sites to deploy to."""
    listed: tuple[str, ...] = ()
    with suppress(InputError):
        listed = coordinator_settings(local).sites
    for site in set(wanted) - set(listed):
        del wanted[site]
