"""Start a participant from its kit, and start a round from the admin's kit."""

from __future__ import annotations

import io
import json
import logging
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.job import RoundOptions, write_job
from jigsaw_crl.federated.kits import ORGANISATION, need_nvflare, settle_storage

__all__ = ["RoundEnd", "start_command", "submit_round"]

_FINISHED = "FINISHED:COMPLETED"
_POLL = 0.5
# Seconds that a job may take to stop when it is told to; after that it is left to itself.
_STOPPING = 15.0
# Seconds that the coordinator may take to answer one question. NVFlare's 5 are too few for a busy
# machine, and a round must not be given up because of one late answer.
_ANSWER = 60.0
# Seconds that the server waits, once the result is written, for sites to say that they are done.
# NVFlare's 15 minutes would keep a round open for a site that was killed.
_LAST_WORD = 5


@dataclass(frozen=True)
class RoundEnd:
    """How a round ended.

    Parameters
    ----------
    job : str
        NVFlare's identifier of it.
    status : str
        In NVFlare's words.
    seconds : float
    """

    job: str
    status: str
    seconds: float

    @property
    def ok(self) -> bool:
        """Was a result written?"""
        return self.status == _FINISHED


def start_command(kit: Path) -> list[str]:
    """The command that runs the participant whose kit this is, in the foreground."""
    need_nvflare()
    startup = kit / "startup"
    common = ["secure_train=true", f"org={ORGANISATION}", "config_folder=config"]
    module = "nvflare.private.fed.app"
    if (startup / "fed_server.json").is_file():
        settle_storage(kit)
        program, config = f"{module}.server.server_train", "fed_server.json"
        more = [f"client_outcome_wait_timeout={_LAST_WORD}"]
    elif (startup / "fed_client.json").is_file():
        program, config = f"{module}.client.client_train", "fed_client.json"
        more = [f"uid={_common_name(startup / 'client.crt')}"]
    else:
        raise InputError(
            "this is no kit of a coordinator or a site",
            "Name a folder in kits/ that `jigsaw federate init` wrote.",
            path=kit,
        )
    settings = ["--set", *common, *more]
    return [sys.executable, "-u", "-m", program, "-m", str(kit.resolve()), "-s", config, *settings]


def _common_name(certificate: Path) -> str:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    from jigsaw_crl.base.files import readable

    with readable(certificate):
        pem = certificate.read_bytes()
    try:
        subject = x509.load_pem_x509_certificate(pem).subject
        return str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
    except (IndexError, ValueError):
        raise InputError(
            "this is no certificate", "Copy the kit again.", path=certificate
        ) from None


def submit_round(
    kit: Path, options: RoundOptions, *, deadline: float, patience: float = 15.0
) -> RoundEnd:
    """Start a round and wait for its end; at the deadline it is stopped.

    Parameters
    ----------
    kit : Path
        The admin's.
    options : RoundOptions
    deadline : float
        Seconds for the whole: start, answers, assembly. Once it has passed the job is aborted,
        whatever it hangs on.
    patience : float
        Seconds to reach the coordinator.
    """
    began = time.monotonic()
    with (
        _quiet(),
        _session(kit, patience) as session,
        tempfile.TemporaryDirectory() as folder,
    ):
        try:
            job = session.submit_job(str(write_job(Path(folder) / "job", options)))
        except Exception as error:
            raise InputError(
                f"the coordinator refuses this kit's job ({type(error).__name__})",
                "Use the admin's own kit.",
                path=kit,
            ) from None
        try:
            return _followed(session, job, began, deadline)
        except Exception as error:
            raise InputError(
                f"the coordinator was lost during the round ({type(error).__name__})",
                "Start it again and submit the same round: what it has received is kept.",
                path=kit,
            ) from None


def _followed(session: Any, job: str, began: float, deadline: float) -> RoundEnd:
    asked_to_stop = False
    while True:
        status = str(session.get_job_meta(job).get("status", ""))
        passed = time.monotonic() - began
        if status.startswith("FINISHED"):
            return RoundEnd(job, status, passed)
        if passed > deadline and not asked_to_stop:
            session.abort_job(job)
            asked_to_stop = True
        elif passed > deadline + _STOPPING:
            return RoundEnd(job, "ABORTED AT THE DEADLINE", passed)
        time.sleep(_POLL)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep NVFlare's own story off the terminal: ours is told by the caller, in one line."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


@contextmanager
def _session(kit: Path, patience: float) -> Iterator[Any]:
    need_nvflare()
    try:
        document = json.loads((kit / "startup" / "fed_admin.json").read_text(encoding="utf-8"))
        user = str(document["admin"]["username"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            "this is no kit of an admin",
            "Name the folder in kits/ with the address of who starts rounds.",
            path=kit,
        ) from None
    from nvflare.fuel.flare_api.flare_api import new_secure_session

    try:
        session = new_secure_session(
            user, str(kit.resolve()), timeout=patience, command_timeout=patience
        )
        session.set_timeout(_ANSWER)
    except Exception as error:  # of a dozen types, by which part of NVFlare notices first
        raise InputError(
            f"the coordinator cannot be reached, or refuses this kit ({type(error).__name__})",
            "Start it with `jigsaw federate start`, and check host name, port and kit.",
            path=kit,
        ) from None
    try:
        yield session
    finally:
        session.close()
