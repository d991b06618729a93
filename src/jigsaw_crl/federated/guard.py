"""The guard at the coordinator: no single site can end a round.

NVFlare ends a job for all sites when one site's process fails, when a site's policy refuses the
job, when a site answers with certain return codes, and when a site sends a fatal event. In a round,
a site that fails is missing and the others go on. `Guard` runs in the coordinator's main process,
and `guard_job` is called in the process of a round.

The guard also deploys a job to the listed sites only, and passes the state of the round to the
person who submitted it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey, SystemComponents
from nvflare.apis.fl_context import FLContext
from nvflare.apis.fl_exception import NotAuthenticated
from nvflare.apis.job_def import JobMetaKey
from nvflare.apis.job_launcher_spec import JobReturnCode
from nvflare.apis.shareable import ReturnCode as JobReply
from nvflare.apis.shareable import Shareable
from nvflare.apis.shareable import make_reply as make_job_reply
from nvflare.fuel.common.exit_codes import ProcessExitCode
from nvflare.fuel.f3.cellnet.defs import (
    CellChannel,
    CellChannelTopic,
    IdentityChallengeKey,
    ReturnCode,
)
from nvflare.fuel.f3.cellnet.utils import make_reply
from nvflare.fuel.f3.message import Message
from nvflare.private.defs import CellMessageHeaderKeys, JobFailureMsgKey
from nvflare.widgets.fed_event import FED_EVENT_TOPIC

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.job import META_AGAIN, META_ROUND, META_STATE
from jigsaw_crl.federated.kits import certificate_digest
from jigsaw_crl.federated.round import RoundRecord, Standing, check_open, now
from jigsaw_crl.federated.seen import Seen
from jigsaw_crl.federated.settings import CoordinatorSettings, check_name, coordinator_settings

__all__ = ["Guard", "guard_job"]

_FAILURES = frozenset(
    {
        ProcessExitCode.CONFIG_ERROR,
        ProcessExitCode.EXCEPTION,
        ProcessExitCode.INFRASTRUCTURE_ERROR,
        ProcessExitCode.UNSAFE_COMPONENT,
        JobReturnCode.ABORTED,
    }
)


class Guard(FLComponent):
    """The guard of the coordinator's main process, a component of its `resources.json`.

    Where its settings cannot be read, no site is admitted and none is asked.
    """

    watching = False

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        if event_type == EventType.SYSTEM_START:
            engine = fl_ctx.get_engine()
            watch(engine.server.client_manager, _local(fl_ctx))
            self.watching = True
            # In the place of NVFlare's own, which ends the job.
            engine.server.cell.register_request_cb(
                channel=CellChannel.SERVER_MAIN,
                topic=CellChannelTopic.REPORT_JOB_FAILURE,
                cb=site_failed,
                engine=engine,
            )
        elif event_type == EventType.CLIENT_REGISTER_RECEIVED:
            if not self.watching:
                # NVFlare refuses the registration when this is raised.
                raise NotAuthenticated("the coordinator is not ready")
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
            begin_round(settings, meta[META_ROUND], again=meta.get(META_AGAIN) is True)
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
        record = end_round(settings, meta[META_ROUND], str(meta.get("status")))
        manager.update_meta(job, {META_STATE: record.to_document()}, fl_ctx)


def _local(fl_ctx: FLContext) -> Path:
    return Path(fl_ctx.get_workspace().get_site_config_dir())


def watch(manager: Any, local: Path) -> None:
    """Have NVFlare's client manager admit a site or an admin only after `admit` has.

    NVFlare then checks that the authority signed the certificate, and that the site has its key.
    """
    authenticate = manager.authenticate

    def checked(request: Message, fl_ctx: FLContext) -> Any:
        name = request.get_header(CellMessageHeaderKeys.CLIENT_NAME)
        try:
            certificate = request.payload.get(IdentityChallengeKey.CERT)
            admit(name, certificate, coordinator_settings(local))
        except NotAuthenticated:
            raise
        except Exception as error:  # NVFlare would go on after any other
            raise NotAuthenticated(f"{str(name)[:80]!r} is not admitted: {error}") from error
        return authenticate(request, fl_ctx)

    manager.authenticate = checked


def admit(site: object, certificate: bytes, settings: CoordinatorSettings) -> None:
    """Raise NVFlare's `NotAuthenticated` for a site that was revoked, or has an old certificate.

    The list names the newest certificate of a site, so a stolen kit is of no use after `renew`.
    """
    if site in settings.revoked:
        raise NotAuthenticated(f"the site {site!r} was revoked")
    if certificate_digest(certificate) != settings.certificates.get(str(site)):
        raise NotAuthenticated(f"the certificate of {str(site)[:80]!r} is not its newest")


def begin_round(settings: CoordinatorSettings, round_name: object, *, again: bool = False) -> None:
    """Check that a round may be run, and write `round.json` before it begins."""
    name = check_name(round_name, "round")
    check_open(settings.results, name, again=again)
    folder = settings.results / name
    if RoundRecord.read(folder) is None:
        folder.mkdir(parents=True, exist_ok=True)
        missing = {site: Standing("missing") for site in settings.sites}
        RoundRecord(name, now(), sites=missing).save(folder)


def end_round(settings: CoordinatorSettings, round_name: object, status: str) -> RoundRecord:
    """The record of a round after its process has ended; one that was left open is closed."""
    name = check_name(round_name, "round")
    folder = settings.results / name
    record = RoundRecord.read(folder)
    if record is None:
        missing = {site: Standing("missing") for site in settings.sites}
        record = RoundRecord(name, now(), sites=missing)
    if record.ended_at is None:
        # Killed between the two, a process leaves a result that is not in round.json.
        done = Seen.at(settings.seen).rounds.get(name)
        why = f"the coordinator's process for the round ended before the round did ({status})"
        record = RoundRecord(
            name, record.started_at, done or now(), None if done else why, record.sites
        )
        record.save(folder)
    return record


def keep_listed(wanted: dict[str, Any], local: Path) -> None:
    """Take sites that are not on the coordinator's list out of the sites to deploy to."""
    listed: tuple[str, ...] = ()
    with suppress(InputError):
        listed = coordinator_settings(local).sites
    for site in set(wanted) - set(listed):
        del wanted[site]


def site_failed(request: Message, engine: Any) -> Message:
    """Take the report that a site's process has ended.

    If it failed, the process of the round hears that the site is lost, and goes on. All other
    reports are for NVFlare.
    """
    payload = request.payload
    if isinstance(payload, dict) and payload.get(JobFailureMsgKey.CODE) in _FAILURES:
        token = request.get_header(CellMessageHeaderKeys.TOKEN)
        client = engine.server.client_manager.clients.get(token)
        job = payload.get(JobFailureMsgKey.JOB_ID)
        if client and engine.job_runner.is_client_outcome_pending(job, client.name):
            engine.job_runner.resolve_client_outcome(job, client.name)
            engine.notify_dead_job(job, client.name, "its process failed")
            return make_reply(ReturnCode.OK)
    reply: Message = engine.server.process_job_failure(request)
    return reply


def guard_job(engine: Any, lose: Callable[[str], None]) -> None:
    """Keep a site from ending the round that runs in this process.

    Parameters
    ----------
    engine : nvflare.private.fed.server.server_engine.ServerEngine
    lose : callable
        Called with the name of a site whose process has ended.
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
    return make_job_reply(JobReply.OK)
