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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable
from jigsaw_crl.base.locking import locked
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.federated.job import META_STATE, RoundOptions, write_job
from jigsaw_crl.federated.kits import (
    ORGANISATION,
    check_hardened,
    require_nvflare,
    set_storage_paths,
)
from jigsaw_crl.federated.membership import WARNING_DAYS, days_left
from jigsaw_crl.federated.round import RoundRecord
from jigsaw_crl.federated.settings import coordinator_settings

__all__ = [
    "RoundEnd",
    "check_certificates",
    "connected_sites",
    "find_record",
    "run_participant",
    "start_command",
    "submit_round",
    "wait_for_job",
]

# Seconds that the coordinator may take to answer one request. NVFlare's default of 5 is too short
# for a busy machine, and one late answer must not end a round.
_REQUEST_TIMEOUT = 60.0
# Seconds that the server waits, once the result is written, for sites to report that they are done.
# NVFlare's default of 15 minutes would keep a round open for a site that was killed.
_OUTCOME_TIMEOUT = 5


@dataclass(frozen=True)
class RoundEnd:
    """How a round ended.

    Parameters
    ----------
    job : str
        NVFlare's identifier of the job.
    status : str
        NVFlare's status of the job.
    seconds : float
        Since the round was submitted.
    record : RoundRecord or None
        The coordinator's record of the round; None if the coordinator did not give it.
    """

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


# Bytes of NVFlare's own messages, such as a submitted job.
_ROOM = 1 << 24
# Seconds that a participant has to stop before it is killed.
_STOPPING = 5.0


def run_participant(kit: Path, warn: Callable[[str], None]) -> int:
    """Run the coordinator or site of a kit until it ends or is interrupted; returns its exit code.

    One interrupt (Ctrl-C) or request to terminate ends the participant and the processes of its
    jobs.

    Parameters
    ----------
    kit : Path
    warn : callable
        Called with a line about a certificate that expires soon.
    """
    command = start_command(kit)
    check_hardened(kit)
    environment = {**os.environ, **_limits(kit)}
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


def _limits(kit: Path) -> dict[str, str]:
    """What the coordinator takes from a site, in bytes: more is dropped before it is decoded."""
    if not (kit / "startup" / "fed_server.json").is_file():
        return {}
    most = coordinator_settings(kit / "local").most_bytes
    # Beyond `most_bytes` an answer is refused by name; here it is dropped, and the site is missing.
    return {"NVFLARE_STREAMING_MAX_BLOB_SIZE": str(_ROOM + 4 * most)}


def _end_with_parent() -> None:
    """Have this process end when its parent is killed. Linux only."""
    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGTERM)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started, which NVFlare puts into sessions of their own."""
    import psutil  # of the extra `federated`, as NVFlare

    with suppress(psutil.NoSuchProcess):
        family = [
            *psutil.Process(process.pid).children(recursive=True),
            psutil.Process(process.pid),
        ]
        for end in (psutil.Process.terminate, psutil.Process.kill):
            for one in family:
                with suppress(psutil.NoSuchProcess):
                    end(one)
            _, family = psutil.wait_procs(family, timeout=_STOPPING)


def check_certificates(kit: Path, warn: Callable[[str], None]) -> None:
    """Warn of certificates in a kit that expire soon, and refuse those that have expired."""
    names = {"rootCA.pem": "the authority's", "client.crt": "its", "server.crt": "its"}
    for file, whose in names.items():
        path = kit / "startup" / file
        if not path.is_file():
            continue
        days = days_left(path.read_bytes())
        remedy = (
            "Make a new federation with `jigsaw federate init`."
            if file == "rootCA.pem"
            else "Ask the coordinator to run `jigsaw federate renew`."
        )
        if days < 0:
            raise InputError(f"{whose} certificate has expired", remedy, path=kit)
        if days < WARNING_DAYS:
            warn(f"{whose} certificate expires in {pluralise(days, 'day')}. {remedy}")


def connected_sites(kit: Path, *, patience: float = 15.0) -> set[str]:
    """The sites that are connected to the coordinator now, asked from the admin's kit."""
    with _quiet(), _session(kit, patience) as session:
        return {str(client.name) for client in session.get_connected_client_list()}


def start_command(kit: Path) -> list[str]:
    """The command that runs the coordinator or site of a kit, in the foreground."""
    require_nvflare()
    startup = kit / "startup"
    common = ["secure_train=true", f"org={ORGANISATION}", "config_folder=config"]
    module = "nvflare.private.fed.app"
    if (startup / "fed_server.json").is_file():
        set_storage_paths(kit)
        program, config = f"{module}.server.server_train", "fed_server.json"
        more = [f"client_outcome_wait_timeout={_OUTCOME_TIMEOUT}"]
    elif (startup / "fed_client.json").is_file():
        program, config = f"{module}.client.client_train", "fed_client.json"
        more = [f"uid={_common_name(startup / 'client.crt')}"]
    else:
        raise InputError(
            "this is not the kit of a coordinator or a site",
            "Name a folder in kits/ that `jigsaw federate init` wrote.",
            path=kit,
        )
    settings = ["--set", *common, *more]
    return [sys.executable, "-u", "-m", program, "-m", str(kit.resolve()), "-s", config, *settings]


def _common_name(certificate: Path) -> str:
    from cryptography import x509  # an optional dependency
    from cryptography.x509.oid import NameOID

    with readable(certificate):
        pem = certificate.read_bytes()
    try:
        subject = x509.load_pem_x509_certificate(pem).subject
        return str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
    except (IndexError, ValueError):
        raise InputError(
            "this is not a certificate", "Copy the kit again.", path=certificate
        ) from None


def submit_round(
    kit: Path, options: RoundOptions, *, deadline: float, patience: float = 15.0
) -> RoundEnd:
    """Start a round and wait for its end.

    Parameters
    ----------
    kit : Path
        The admin's.
    options : RoundOptions
    deadline : float
        Seconds for start, answers and assembly together; then the job is aborted.
    patience : float
        Seconds to reach the coordinator.
    """
    began = time.monotonic()
    with _quiet(), _session(kit, patience) as session, tempfile.TemporaryDirectory() as folder:
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


def find_record(
    session: Any, job: str, *, poll: float = 0.5, grace: float = 10.0
) -> RoundRecord | None:
    """The coordinator's record of a round that has ended; None if it does not come within `grace`.

    The coordinator writes it to the job's meta data a moment after the job's last status.
    """
    end = time.monotonic() + grace
    while True:
        meta = session.get_job_meta(job)
        if META_STATE in meta:
            return RoundRecord.from_document(meta[META_STATE])
        if time.monotonic() >= end:
            return None
        time.sleep(poll)


def wait_for_job(
    session: Any, job: str, deadline: float, *, poll: float = 0.5, grace: float = 15.0
) -> str:
    """Wait for the end of a job and return its status.

    Parameters
    ----------
    session : nvflare.fuel.flare_api.flare_api.Session
    job : str
    deadline : float
        Seconds until the job is aborted.
    poll : float
        Seconds between two requests for the status.
    grace : float
        Seconds that an aborted job has to end; then it is no longer waited for.
    """
    _, meta = session.monitor_job_and_return_job_meta(job, deadline, poll)
    if meta is None:
        session.abort_job(job)
        _, meta = session.monitor_job_and_return_job_meta(job, grace, poll)
    return "ABORTED AT THE DEADLINE" if meta is None else str(meta["status"])


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep NVFlare's output off the terminal: the caller reports in one line."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


@contextmanager
def _session(kit: Path, patience: float) -> Iterator[Any]:
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

    try:
        session = new_secure_session(
            user, str(kit.resolve()), timeout=patience, command_timeout=patience
        )
        session.set_timeout(_REQUEST_TIMEOUT)
    except Exception as error:  # each part of NVFlare raises another type
        raise InputError(
            f"the coordinator cannot be reached, or refuses this kit ({type(error).__name__})",
            "Start it with `jigsaw federate start`, and check host name, port and kit.",
            path=kit,
        ) from None
    try:
        yield session
    finally:
        session.close()
