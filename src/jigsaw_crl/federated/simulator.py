"""A round in NVFlare's simulator: all sites on this machine, nothing secured, one command.

It runs the very classes that a live round runs, and is meant for trying things out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.gathering import STATUS
from jigsaw_crl.federated.job import CONTROLLER, EXECUTOR, RoundOptions, write_job
from jigsaw_crl.federated.kits import need_nvflare
from jigsaw_crl.federated.settings import COORDINATOR_FILE, SITE_FILE, check_name
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.fragment.reading import read_fragments
from jigsaw_crl.result.folder import RESULT, check_folder
from jigsaw_crl.result.result import load_result

__all__ = ["simulate_round"]


def simulate_round(
    fragments: Sequence[Path], out: Path, options: RoundOptions, *, deadline: float = 300
) -> Path:
    """Carry fragments to a result through NVFlare's simulator.

    Parameters
    ----------
    fragments : sequence of path
        One file per site, whose name is the fragment's client.
    out : Path
        Result folder.
    options : RoundOptions
    deadline : float
        Seconds for the whole.

    Returns
    -------
    Path
        `out`.
    """
    need_nvflare()
    check_folder(out)
    pieces = read_fragments(fragments)
    for site in pieces:
        check_name(site, "site")
    with tempfile.TemporaryDirectory(prefix="jigsaw-simulate-") as folder:
        root = Path(folder)
        # The simulator empties its workspace, so it gets one of its own.
        workspace = root / "workspace"
        results = root / "results"
        _prepare(workspace / "local", root / "fragments", pieces, results)
        job = write_job(root / "job", options)
        code, said = _run(job, workspace, list(pieces), deadline)
        made = results / options.round_name
        failure = _failure(made) or f"the simulator ended with code {code}: {said}"
        if not (made / RESULT).is_file():
            raise InputError(f"the round gave no result: {failure}", "Mend that, then run again.")
        return load_result(made).save(out)


def _failure(made: Path) -> str | None:
    status = made / STATUS
    if not status.is_file():
        return None
    failure = json.loads(status.read_text(encoding="utf-8"))["failure"]
    return None if failure is None else str(failure)


def _prepare(local: Path, store: Path, pieces: Mapping[str, Fragment], results: Path) -> None:
    local.mkdir(parents=True)
    store.mkdir()
    for site, piece in pieces.items():
        (store / f"{site}.json").write_text(piece.to_json(), encoding="utf-8")
    documents = {
        "resources.json": {"format_version": 2, "class_allow_list": [CONTROLLER, EXECUTOR]},
        SITE_FILE: {"fragment": str(store / "{site}.json")},
        COORDINATOR_FILE: {"sites": list(pieces), "results": str(results)},
    }
    for name, document in documents.items():
        (local / name).write_text(json.dumps(document), encoding="utf-8")


def _run(job: Path, workspace: Path, sites: list[str], deadline: float) -> tuple[int, str]:
    command = [sys.executable, "-m", "nvflare.private.fed.app.simulator.simulator", str(job)]
    command += ["-w", str(workspace), "-c", ",".join(sites), "-t", str(min(len(sites), 4))]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        said, _ = process.communicate(timeout=deadline)
    except subprocess.TimeoutExpired:
        raise InputError(
            f"the simulator was not done after {deadline:.0f} s", "Give it a later deadline."
        ) from None
    finally:
        _end(process)
    return process.returncode, " ".join(said.split())[-300:]


def _end(process: subprocess.Popen[str]) -> None:
    """End what is left of the simulator: its servers and sites are processes of its own group."""
    import signal
    from contextlib import suppress

    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
