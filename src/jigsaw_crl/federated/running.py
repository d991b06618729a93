"""Start a participant from its kit, or a round from the admin's kit."""

from __future__ import annotations

import ctypes
import io
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import locked, readable
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.federated.kits import (
    CONTROLLER,
    EXECUTOR,
    ORGANISATION,
    WARNING_DAYS,
    certificate,
    check_hardened,
    days_left,
    require_nvflare,
    set_storage_paths,
    write_json,
)
from jigsaw_crl.federated.settings import RoundOptions, RoundRecord, coordinator_settings

# Entries of a job's meta data: the round's name, whether a round with a result may be run again,
# and after the round its state, which the coordinator writes.
META_ROUND, META_AGAIN, META_STATE = "jigsaw_round", "jigsaw_again", "jigsaw_state"
# The only task; the key of the round's name in it, and of the answer in a site's reply.
TASK, ROUND, ANSWER = "fragment", "round", "answer"
# Seconds that the coordinator may take to answer one request. NVFlare's default of 5 is too short
# for a busy machine, and one late answer must not end a round.
_REQUEST_TIMEOUT = 60.0
# Seconds that the server waits, once the result is written, for sites to report that they are done.
# NVFlare's default of 15 minutes would keep a round open for a site that was killed.
_OUTCOME_TIMEOUT = 5
# Bytes of NVFlare's own messages, such as a submitted job.
_ROOM = 1 << 24
# Seconds that a participant has to stop before it is killed.
_STOPPING = 5.0
_NVFLARE = "nvflare.private.fed.app"


# -- participants ---------------------------------------------------------------------------------


def run_participant(kit: Path, warn: Callable[[str], None]) -> int:
    """Run the coordinator or site of a kit until it ends or is interrupted; returns its exit code.

    One interrupt (Ctrl-C) or request to terminate ends the participant and the processes of its
    jobs. `warn` is called with a line about a certificate that expires soon.
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
            command,
            env=environment,
            start_new_session=True,
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )
        previous = signal.signal(signal.SIGTERM, _interrupt)
        try:
            return process.wait()
        finally:
            signal.signal(signal.SIGTERM, previous)
            _stop(process)


def _end_with_parent() -> None:
    """Have this process end when its parent is killed. Linux only."""
    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGTERM)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _stop(process: subprocess.Popen[Any]) -> None:
    """End a process and all that it started, which NVFlare puts into sessions of their own."""
    import psutil  # of the extra `federated`, as NVFlare

    with suppress(psutil.NoSuchProcess):
        own = psutil.Process(process.pid)
        family = [*own.children(recursive=True), own]
        for end in (psutil.Process.terminate, psutil.Process.kill):
            for one in family:
                with suppress(psutil.NoSuchProcess):
                    end(one)
            _, family = psutil.wait_procs(family, timeout=_STOPPING)


def check_certificates(kit: Path, warn: Callable[[str], None]) -> None:
    """Warn of certificates in a kit that expire soon, and refuse those that have expired."""
    for file in ("rootCA.pem", "client.crt", "server.crt"):
        path = kit / "startup" / file
        if not path.is_file():
            continue
        days = days_left(path.read_bytes())
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
    startup = kit / "startup"
    if (startup / "fed_server.json").is_file():
        set_storage_paths(kit)
        program, config = f"{_NVFLARE}.server.server_train", "fed_server.json"
        more = f"client_outcome_wait_timeout={_OUTCOME_TIMEOUT}"
    elif (startup / "fed_client.json").is_file():
        program, config = f"{_NVFLARE}.client.client_train", "fed_client.json"
        more = f"uid={_name_of_site(startup / 'client.crt')}"
    else:
        raise InputError(
            "this is not the kit of a coordinator or a site",
            "Name a folder in kits/ that `jigsaw federate init` wrote.",
            path=kit,
        )
    settings = ["secure_train=true", f"org={ORGANISATION}", "config_folder=config", more]
    start = [sys.executable, "-u", "-m", program, "-m", str(kit.resolve()), "-s", config]
    return [*start, "--set", *settings]


def _name_of_site(path: Path) -> str:
    """The common name in a site's certificate: the folder of its kit may have another one."""
    from cryptography.x509 import NameOID  # an optional dependency

    with readable(path):
        pem = path.read_bytes()
    try:
        return str(certificate(pem).subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
    except (IndexError, ValueError):
        raise InputError("this is not a certificate", "Copy the kit again.", path=path) from None


# -- rounds ---------------------------------------------------------------------------------------


def write_job(folder: Path, options: RoundOptions) -> Path:
    """Write the folder of a round's job, which names our two classes; no code and no path."""
    meta = {
        "name": f"jigsaw-{options.round_name}",
        "resource_spec": {},
        "min_clients": 1,
        # To all sites that the coordinator lists: see `Guard`.
        "deploy_map": {"app": ["@ALL"]},
        META_ROUND: options.round_name,
        META_AGAIN: options.again,
    }
    server = {"workflows": [{"id": "gather", "path": CONTROLLER, "args": asdict(options)}]}
    client = {"executors": [{"tasks": [TASK], "executor": {"path": EXECUTOR, "args": {}}}]}
    config = folder / "app" / "config"
    write_json(folder / "meta.json", meta)
    write_json(config / "config_fed_server.json", {"format_version": 2, **server})
    write_json(config / "config_fed_client.json", {"format_version": 2, **client})
    return folder


@dataclass(frozen=True)
class RoundEnd:
    """How a round ended: NVFlare's job and its status, and the coordinator's record if it came."""

    job: str
    status: str
    seconds: float
    record: RoundRecord | None = None

    @property
    def ok(self) -> bool:
        """Whether a result was written.

        NVFlare's status does not decide: it may call a job abnormal whose result is complete.
        """
        return self.record is not None and self.record.closed

    @property
    def failure(self) -> str:
        """Why there is no result."""
        if self.record is not None and self.record.failure:
            return self.record.failure
        return f"the coordinator did not begin it, or was stopped during it ({self.status})"


def submit_round(
    kit: Path, options: RoundOptions, *, deadline: float, patience: float = 15.0
) -> RoundEnd:
    """Start a round from the admin's kit and wait for its end.

    The job is aborted after `deadline` seconds for start, answers and assembly together; `patience`
    is how many seconds it may take to reach the coordinator.
    """
    began = time.monotonic()
    with _session(kit, patience) as session, tempfile.TemporaryDirectory() as folder:
        try:
            job = session.submit_job(str(write_job(Path(folder) / "job", options)))
        except Exception as error:
            # The coordinator's own reason, or the name of NVFlare's error.
            reason = " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
            raise InputError(
                f"the coordinator refuses this kit's round: {reason}",
                "Correct it, or use the admin's own kit.",
                path=kit,
            ) from None
        try:
            # NVFlare takes 0 seconds for no limit.
            status = wait_for_job(session, job, max(deadline + began - time.monotonic(), 0.1))
            record = find_record(session, job)
        except Exception as error:
            raise InputError(
                f"the coordinator was lost during the round ({type(error).__name__})",
                "Start it again and submit the same round: the answers received are kept.",
                path=kit,
            ) from None
        return RoundEnd(job, status, time.monotonic() - began, record)


def wait_for_job(
    session: Any, job: str, deadline: float, *, poll: float = 0.5, grace: float = 15.0
) -> str:
    """The status of a job at its end; it is aborted at the deadline and has `grace` seconds then.

    The status is asked for every `poll` seconds.
    """
    _, meta = session.monitor_job_and_return_job_meta(job, deadline, poll)
    if meta is None:
        session.abort_job(job)
        _, meta = session.monitor_job_and_return_job_meta(job, grace, poll)
    return "ABORTED AT THE DEADLINE" if meta is None else str(meta["status"])


def find_record(
    session: Any, job: str, *, poll: float = 0.5, grace: float = 10.0
) -> RoundRecord | None:
    """The coordinator's record of a round that has ended; None if it does not come within `grace`.

    The coordinator writes it to the job's meta data a moment after the job's last status.
    """
    end = time.monotonic() + grace
    while META_STATE not in (meta := session.get_job_meta(job)):
        if time.monotonic() >= end:
            return None
        time.sleep(poll)
    try:
        return RoundRecord.model_validate(meta[META_STATE])
    except ValidationError:
        return None


def connected_sites(kit: Path, *, patience: float = 15.0) -> set[str]:
    """The sites that are connected to the coordinator now, asked from the admin's kit."""
    with _session(kit, patience) as session:
        return {str(client.name) for client in session.get_connected_client_list()}


@contextmanager
def _session(kit: Path, patience: float) -> Iterator[Any]:
    """A session of the admin; NVFlare's own output stays off the terminal."""
    require_nvflare()
    try:
        document = json.loads((kit / "startup" / "fed_admin.json").read_text(encoding="utf-8"))
        user = str(document["admin"]["username"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            "this is not the kit of an admin",
            "Name the folder in kits/ whose name is an e-mail address.",
            path=kit,
        ) from None
    # NVFlare is an optional dependency, and takes a second to load.
    from nvflare.fuel.flare_api.flare_api import new_secure_session

    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            try:
                session = new_secure_session(
                    user, str(kit.resolve()), timeout=patience, command_timeout=patience
                )
                session.set_timeout(_REQUEST_TIMEOUT)
            except Exception as error:  # each part of NVFlare raises another type
                what = "the coordinator cannot be reached, or refuses this kit"
                raise InputError(
                    f"{what} ({type(error).__name__})",
                    "Start it with `jigsaw federate start`, and check host name, port and kit.",
                    path=kit,
                ) from None
            try:
                yield session
            finally:
                session.close()
    finally:
        logging.disable(before)
