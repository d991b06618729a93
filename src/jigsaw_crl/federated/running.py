"""Start a participant from its kit, or a round from the admin's kit."""

from __future__ import annotations

import ctypes
import io
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout, suppress
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import locked
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.federated.kits import (
    ORGANISATION,
    WARNING_DAYS,
    check_hardened,
    require_nvflare,
    startup_entry,
)
from jigsaw_crl.federated.settings import (
    CHANNEL,
    START,
    STATE,
    RoundOptions,
    RoundRecord,
    coordinator_settings,
)

# Seconds that the coordinator may take to answer one request. NVFlare's default of 5 is too short
# for a busy machine, and one late answer must not end a round.
_REQUEST_TIMEOUT = 60.0
# Seconds between two questions how a round stands.
_POLL = 0.5
# Bytes of NVFlare's own messages.
_ROOM = 1 << 24
# Seconds that a participant has to stop before it is killed.
_STOPPING = 5.0
_NVFLARE = "nvflare.private.fed.app"


# -- participants ---------------------------------------------------------------------------------


def run_participant(kit: Path, warn: Callable[[str], None]) -> int:
    """Run the coordinator or site of a kit until it ends or is interrupted; returns its exit code.

    One interrupt (Ctrl-C) or request to terminate ends the participant and the process of its
    round. `warn` is called with a line about a certificate that expires soon.
    """
    command = start_command(kit)
    check_hardened(kit)
    environment = dict(os.environ)
    if (kit / "startup" / "fed_server.json").is_file():
        # Larger messages of a site are dropped before they are decoded, and the site is missing.
        # Beyond `most_bytes` an answer is refused by name.
        most = _ROOM + 4 * coordinator_settings(kit / "local").most_bytes
        environment["NVFLARE_STREAMING_MAX_BLOB_SIZE"] = str(most)
    check_certificates(kit, warn)
    with locked(kit.resolve(), "the kit"):
        process = subprocess.Popen(
            command, env=environment, start_new_session=True, preexec_fn=end_with_parent
        )
        previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            return process.wait()
        finally:
            signal.signal(signal.SIGTERM, previous)
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_STOPPING)
            process.kill()


def end_with_parent() -> None:
    """Have this process end when its parent ends, however that ends. Linux only."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGTERM)


def check_certificates(kit: Path, warn: Callable[[str], None]) -> None:
    """Warn of certificates in a kit that expire soon, and refuse those that have expired."""
    from cryptography.x509 import load_pem_x509_certificate  # an optional dependency

    for file in ("rootCA.pem", "client.crt", "server.crt"):
        path = kit / "startup" / file
        if not path.is_file():
            continue
        expires = load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
        days = (expires - datetime.now(UTC)).days
        whose, remedy = "its", "Ask the coordinator to run `jigsaw federate renew`."
        if file == "rootCA.pem":
            whose, remedy = "the authority's", "Make a new federation with `jigsaw federate init`."
        if days < 0:
            raise InputError(f"{whose} certificate has expired", remedy, path=kit)
        if days < WARNING_DAYS:
            warn(f"{whose} certificate expires in {pluralise(days, 'day')}. {remedy}")


def start_command(kit: Path) -> list[str]:
    """The command that runs the coordinator or site of a kit, in the foreground."""
    require_nvflare()
    site = startup_entry(kit, "fed_client.json", "client", "fqsn")
    if (kit / "startup" / "fed_server.json").is_file():
        program, config = f"{_NVFLARE}.server.server_train", "fed_server.json"
        more = []
    elif site is not None:
        program, config = f"{_NVFLARE}.client.client_train", "fed_client.json"
        more = [f"uid={site}"]
    else:
        raise InputError(
            "this is not the kit of a coordinator or a site",
            "Name a folder in kits/ that `jigsaw federate init` wrote.",
            path=kit,
        )
    settings = ["secure_train=true", f"org={ORGANISATION}", "config_folder=config", *more]
    start = [sys.executable, "-u", "-m", program, "-m", str(kit.resolve()), "-s", config]
    return [*start, "--set", *settings]


# -- rounds ---------------------------------------------------------------------------------------


def submit_round(kit: Path, options: RoundOptions, *, patience: float = 15.0) -> RoundRecord:
    """Start a round from the admin's kit, wait for its end, and return the coordinator's record.

    `patience` is how many seconds it may take to reach the coordinator. The round goes on if this
    program is stopped.
    """
    with _connected(kit, patience) as ask:
        record = ask(START, options)
        while record.ended_at is None:
            time.sleep(_POLL)
            record = ask(STATE, options)
    return record


@contextmanager
def _connected(kit: Path, patience: float) -> Iterator[Callable[[str, RoundOptions], RoundRecord]]:
    """Ask the coordinator, as the admin; NVFlare's own output stays off the terminal."""
    require_nvflare()
    user = startup_entry(kit, "fed_admin.json", "admin", "username")
    if user is None:
        raise InputError(
            "this is not the kit of an admin",
            "Name the folder in kits/ whose name is an e-mail address.",
            path=kit,
        )
    # NVFlare is an optional dependency, and takes a second to load.
    from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey, ReturnCode
    from nvflare.fuel.f3.message import Message
    from nvflare.fuel.flare_api.flare_api import new_secure_session

    def ask(topic: str, options: RoundOptions) -> RoundRecord:
        reply = session.api.get_cell().send_request(
            channel=CHANNEL,
            topic=topic,
            target="server",
            request=Message({}, options.model_dump_json().encode()),
            timeout=_REQUEST_TIMEOUT,
        )
        code = reply.get_header(MessageHeaderKey.RETURN_CODE)
        if code == ReturnCode.OK:
            with suppress(ValidationError):
                return RoundRecord.model_validate_json(bytes(reply.payload))
            code = "its answer is not understood"
        # The coordinator's own reason, or NVFlare's word for what went wrong.
        own = reply.get_header(MessageHeaderKey.ERROR) if code == ReturnCode.INVALID_REQUEST else ""
        reason = str(own or code)[:300].rstrip(".")
        wrong = "was lost during the round" if topic == STATE else "refuses this kit's round"
        raise InputError(
            f"the coordinator {wrong}: {reason}",
            "Correct it, or use the admin's own kit; the same round can be submitted again.",
            path=kit,
        )

    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            try:
                # One try: `patience` says how long it may take.
                limits = {"timeout": patience, "command_timeout": patience}
                session = new_secure_session(
                    user, str(kit.resolve()), **limits, auto_login_max_tries=1
                )
            except Exception as error:  # each part of NVFlare raises another type
                what = "the coordinator cannot be reached, or refuses this kit"
                raise InputError(
                    f"{what} ({type(error).__name__})",
                    "Start it with `jigsaw federate start`, and check host name, port and kit.",
                    path=kit,
                ) from None
            with closing(session):
                yield ask
    finally:
        logging.disable(before)
