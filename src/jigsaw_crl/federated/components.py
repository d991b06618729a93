"""What NVFlare runs: a component at each site, and one at the coordinator.

NVFlare makes the certificates and the connections. No NVFlare job runs anywhere: in a round the
coordinator sends each site one request, and gives the answers to a process of its own (`round`). So
whatever a site does, it can end its own part of the round only.

NVFlare lets a coordinator say whether its commands need a site's permission, passes messages
between sites on, takes the sender from the message, and has requests that stop a participant. So
both components listen to the few kinds of requests alone that a round needs.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread, Timer

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.signal import Signal
from nvflare.fuel.f3.cellnet.defs import (
    CellChannel,
    CellChannelTopic,
    Encoding,
    IdentityChallengeKey,
    MessageHeaderKey,
    MessagePropKey,
    MessageType,
    ReturnCode,
)
from nvflare.fuel.f3.cellnet.fqcn import FQCN
from nvflare.fuel.f3.cellnet.utils import make_reply
from nvflare.fuel.f3.message import Message
from nvflare.fuel.f3.streaming.stream_const import (
    STREAM_ACK_TOPIC,
    STREAM_CHANNEL,
    STREAM_DATA_TOPIC,
    STREAM_ERROR_TOPIC,
    StreamHeaderKey,
)
from nvflare.private.defs import CellMessageHeaderKeys

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import write_text
from jigsaw_crl.federated.answer import make_answer
from jigsaw_crl.federated.kits import certificate_digest
from jigsaw_crl.federated.settings import (
    CHANNEL,
    FRAGMENT,
    MOST_BYTES,
    START,
    STATE,
    CoordinatorSettings,
    RoundOptions,
    RoundRecord,
    check_name,
    coordinator_settings,
    site_settings,
)

# Of the log-ins that the coordinator has granted, beside its settings.
TOKENS_FILE = "jigsaw-tokens.json"


def _part(channel: object, topic: object) -> tuple[str, str]:
    """The place of a part of a request that is sent as a stream."""
    return f"{STREAM_CHANNEL}:{channel}", str(topic)


# Channel and topic of what may be sent before a log-in, and at the end.
_MAIN, _BYE = CellChannel.SERVER_MAIN, (CellChannel.CELLNET, CellChannelTopic.Bye)
_OPEN = {(_MAIN, CellChannelTopic.Challenge), (_MAIN, CellChannelTopic.Register), _BYE}
# What a site lets the coordinator ask for; and the coordinator its sites, the admin besides, and a
# site that it has asked.
_FLOW = {(STREAM_CHANNEL, STREAM_ACK_TOPIC), (STREAM_CHANNEL, STREAM_ERROR_TOPIC)}
_OF_SITE = {*_FLOW, _BYE, _part(CHANNEL, FRAGMENT)}
_OF_ALL = {*_FLOW, (_MAIN, CellChannelTopic.HEART_BEAT), (_MAIN, CellChannelTopic.Quit)}
_OF_ADMIN = {_part(CellChannel.HCI, "command"), _part(CHANNEL, START), _part(CHANNEL, STATE)}
_ANSWER = _part(CellChannel.RETURN_ONLY, f"{CHANNEL}:{FRAGMENT}")
# Seconds between two looks at the answers and at the process of a round.
_POLL = 0.2


def _local(fl_ctx: FLContext) -> Path:
    return Path(fl_ctx.get_prop(FLContextKey.WORKSPACE_OBJECT).get_site_config_dir())


def _place(message: Message) -> tuple[str, str] | None:
    """The channel and topic of a request, or of what it is a part of; None for a reply."""
    if message.get_header(MessageHeaderKey.MSG_TYPE) != MessageType.REQ:
        return None
    channel, topic = map(message.get_header, (MessageHeaderKey.CHANNEL, MessageHeaderKey.TOPIC))
    if (channel, topic) == (STREAM_CHANNEL, STREAM_DATA_TOPIC):
        return _part(*map(message.get_header, (StreamHeaderKey.CHANNEL, StreamHeaderKey.TOPIC)))
    return str(channel), str(topic)


def _body(message: Message, most: int = MOST_BYTES) -> str:
    """The text of a message, and of one of more bytes its beginning; `TypeError` if it has none."""
    if not isinstance(message.payload, bytes | bytearray | memoryview):
        raise TypeError("a message without a text")
    return bytes(message.payload[:most]).decode(errors="replace")


class Site(FLComponent):
    """At a site: answer the coordinator with the site's finished fragment, and nothing else.

    The request has the name of the round alone; the site's own `local/jigsaw-site.json` names the
    file. Error messages stay at the site.
    """

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        if event_type == EventType.BEFORE_CLIENT_REGISTER:
            given = {"site": fl_ctx.get_identity_name(), "local": _local(fl_ctx)}
            cell = fl_ctx.get_engine().get_cell()
            cell.core_cell.add_incoming_filter("*", "*", self.check)
            cell.register_request_cb(channel=CHANNEL, topic=FRAGMENT, cb=self.answer, **given)

    def check(self, message: Message) -> Message | None:
        """None for a message that may pass; any other is dropped."""
        place = _place(message)
        if place is None or place in _OF_SITE:
            return None
        self.logger.error(f"a request for {place!r} is refused")
        return make_reply(ReturnCode.UNAUTHENTICATED)

    def answer(self, request: Message, site: str, local: Path) -> Message:
        """The reply to a request of the coordinator; another site gets none."""
        try:
            if request.get_header(MessageHeaderKey.ORIGIN) != FQCN.ROOT_SERVER:
                raise InputError("somebody else asks for the fragment", "Report this.")
            round_name = check_name(_body(request), "round")
            text = make_answer(site_settings(local), check_name(site, "site"), round_name)
        except (InputError, TypeError, ValueError) as error:
            self.logger.error(str(error))
            return make_reply(ReturnCode.PROCESS_EXCEPTION)
        return make_reply(ReturnCode.OK, body=text.encode())


class Guard(FLComponent):
    """At the coordinator: who may send it anything, and the rounds.

    NVFlare admits whoever has a certificate of the federation. Here, a message comes straight from
    the participant that the connection's certificate names, with a log-in that was granted to the
    certificate that is listed: the newest. So a stolen kit is of no use after `renew`, nor is that
    of a site that was revoked, from the moment at which the list is written. Where it cannot be
    read, nobody is admitted.
    """

    def __init__(self) -> None:
        super().__init__()
        # Loaded at the start, because requests do not wait; and only here, because sites need none.
        from jigsaw_crl.federated.round import Gathering, end_round

        self.open_round, self.end_round = Gathering.open, end_round
        self.lock = Lock()
        self.running: str | None = None
        # The digest of the certificate with which each log-in was granted, by that of its token.
        self.granted: dict[str, str] = {}
        # The stream in which the answer to each request of the round comes.
        self.streams: dict[str, str] = {}

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        if event_type != EventType.SYSTEM_START:
            return
        engine = fl_ctx.get_engine()
        self.cell, self.local = engine.get_cell(), _local(fl_ctx)
        with suppress(OSError, ValueError, InputError):
            # Sites do not log in again when the coordinator is started again; the others do.
            settings = self.settings()
            listed = {settings.certificates.get(site) for site in settings.sites}
            found = json.loads((self.local / TOKENS_FILE).read_bytes())
            self.granted = {token: shown for token, shown in found.items() if shown in listed}
        self.cell.core_cell.add_incoming_filter("*", "*", self.check)
        self.cell.register_request_cb(
            channel=CellChannel.SERVER_MAIN,
            topic=CellChannelTopic.Register,
            cb=self.register,
            login=engine.server.register_client,
        )
        for topic, do in ((START, self.start), (STATE, self.state)):
            self.cell.register_request_cb(channel=CHANNEL, topic=topic, cb=self.reply, do=do)

    def settings(self) -> CoordinatorSettings:
        return coordinator_settings(self.local)

    # -- who is admitted --------------------------------------------------------------------------

    def register(self, request: Message, login: Callable[[Message], Message]) -> Message:
        """NVFlare's log-in, for a participant that shows the certificate that is listed.

        NVFlare checks that the authority signed it, and that the participant has its key.
        """
        name = str(request.get_header(CellMessageHeaderKeys.CLIENT_NAME))
        try:
            settings = self.settings()
            shown = certificate_digest(request.payload.get(IdentityChallengeKey.CERT))
            if shown != settings.certificates.get(name):
                raise InputError("its certificate is not listed: renewed, or revoked", "")
        except Exception as error:  # whatever was sent
            self.logger.error(f"{name[:80]!r} is not admitted: {error}")
            return make_reply(ReturnCode.UNAUTHENTICATED, error="it is not admitted")
        reply = login(request)
        token = reply.payload and reply.payload.get(CellMessageHeaderKeys.TOKEN)
        if token:
            with self.lock:
                if name in settings.sites:  # NVFlare has ended its log-in before
                    self.granted = {t: x for t, x in self.granted.items() if x != shown}
                self.granted[_digest(token)] = shown
                with suppress(InputError):  # then the site has to log in again after a restart
                    text = json.dumps(self.granted)
                    write_text(self.local / TOKENS_FILE, text, private=True)
        return reply

    def check(self, message: Message) -> Message | None:
        """None for a message that may pass; any other is dropped."""
        place = _place(message)
        if place in _OPEN:
            return None
        origin = message.get_header(MessageHeaderKey.ORIGIN)
        name = message.get_header(CellMessageHeaderKeys.CLIENT_NAME)
        token = message.get_header(CellMessageHeaderKeys.TOKEN)
        try:
            shown, settings = self.granted.get(_digest(token)), self.settings()
            if (
                message.get_prop(MessagePropKey.ENDPOINT).name == origin
                and message.get_prop(MessagePropKey.COMMON_NAME) == name
                and message.get_header(MessageHeaderKey.DESTINATION) == FQCN.ROOT_SERVER
                and shown is not None
                and shown == settings.certificates.get(name)
                and (
                    place is None
                    or place in _OF_ALL
                    or (place in _OF_ADMIN and name == settings.admin)
                    or (place == _ANSWER and self._awaits(message))
                )
            ):
                return None
        except (AttributeError, InputError) as error:
            self.logger.error(str(error))
        self.logger.error(f"{str(name)[:80]!r} from {str(origin)[:80]!r} is refused: {place}")
        return make_reply(ReturnCode.UNAUTHENTICATED)

    def _awaits(self, message: Message) -> bool:
        """Is it a part of the one text that answers a request of the round?

        NVFlare has a thread for each stream; so many of them would leave none for other sites.
        """
        request = str(message.get_header(StreamHeaderKey.STREAM_REQ_ID))
        stream = str(message.get_header(StreamHeaderKey.STREAM_ID))
        return (
            request in self.cell.requests_dict
            and message.get_header(StreamHeaderKey.PAYLOAD_ENCODING) == Encoding.BYTES
            and self.streams.setdefault(request, stream) == stream
        )

    # -- rounds -----------------------------------------------------------------------------------

    def start(self, options: RoundOptions) -> RoundRecord:
        """Begin a round, unless another one runs."""
        settings = self.settings()
        with self.lock:
            if self.running is not None:
                raise InputError(f"the round {self.running!r} is running", "Wait until it ends.")
            record = self.open_round(settings, options.round_name, again=options.again).record
            self.running, self.streams = options.round_name, {}
        Thread(target=self._run, args=(settings, options)).start()
        return record

    def state(self, options: RoundOptions) -> RoundRecord:
        """The record of a round; of one that does not run any more, how it ended."""
        name = options.round_name
        return self.end_round(self.settings(), name, running=name == self.running)

    def reply(self, request: Message, do: Callable[[RoundOptions], RoundRecord]) -> Message:
        """The reply to the person who starts rounds, or asks how one stands."""
        try:
            sender = request.get_header(CellMessageHeaderKeys.CLIENT_NAME)
            if sender != self.settings().admin:
                raise InputError("somebody else asks for a round", "Only the admin can.")
            record = do(RoundOptions.from_text(_body(request)))
        except (InputError, TypeError) as error:
            return make_reply(ReturnCode.INVALID_REQUEST, error=str(error))
        return make_reply(ReturnCode.OK, body=record.model_dump_json().encode())

    def _run(self, settings: CoordinatorSettings, options: RoundOptions) -> None:
        """Ask all sites at once, and tell the process of the round what each of them says."""
        command = [sys.executable, "-P", "-m", "jigsaw_crl.federated.round", str(self.local)]
        try:
            with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as process:
                timer = Timer(options.deadline, process.kill)
                timer.start()
                with suppress(BrokenPipeError):  # it was killed
                    print(options.model_dump_json(), file=process.stdin, flush=True)
                    for answer in self._answers(settings.sites, options, process):
                        print(json.dumps(answer), file=process.stdin, flush=True)
                    print("null", file=process.stdin, flush=True)
                process.wait()
                timer.cancel()
        except BrokenPipeError:
            pass  # closing the pipe tells it again
        finally:
            self.running = None

    def _answers(
        self, sites: Sequence[str], options: RoundOptions, process: subprocess.Popen[str]
    ) -> Iterator[tuple[str, str | None, str]]:
        """Ask all sites at once, and yield what they say until their time is over."""
        stop, end = Signal(), time.monotonic() + options.timeout
        with ThreadPoolExecutor(len(sites)) as pool:
            try:
                asked = {pool.submit(self._ask, site, options, stop) for site in sites}
                while asked and process.poll() is None and time.monotonic() < end:
                    done, asked = wait(asked, _POLL, FIRST_COMPLETED)
                    yield from (one.result() for one in done)
            finally:
                stop.trigger(True)

    def _ask(self, site: str, options: RoundOptions, stop: Signal) -> tuple[str, str | None, str]:
        """A site, its answer, and if there is none why."""
        began = time.monotonic()
        try:
            reply = self.cell.send_request(
                channel=CHANNEL,
                topic=FRAGMENT,
                target=site,
                request=Message({}, options.round_name.encode()),
                timeout=options.timeout,
                optional=True,
                abort_signal=stop,
            )
            code = reply.get_header(MessageHeaderKey.RETURN_CODE)
            if code == ReturnCode.OK and reply.get_header(MessageHeaderKey.ORIGIN) == site:
                # One byte too many is enough to refuse it; all of them take several times the room.
                return site, _body(reply, self.settings().most_bytes + 1), ""
        except Exception as error:  # whatever was sent
            return site, None, f"its answer cannot be read ({type(error).__name__})"
        late = stop.triggered or time.monotonic() - began >= options.timeout
        what = f"it could not answer, is not connected, or sent far too much ({code})"
        return site, None, "" if late else what


def _digest(token: object) -> str:
    return hashlib.sha256(str(token).encode()).hexdigest()
