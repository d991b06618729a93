"""A round in NVFlare's simulator: all sites on this machine, without certificates.

It runs the same classes as a live round, and is meant for trials.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.job import CONTROLLER, EXECUTOR, RoundOptions, write_job, write_json
from jigsaw_crl.federated.kits import require_nvflare
from jigsaw_crl.federated.round import RoundRecord
from jigsaw_crl.federated.settings import COORDINATOR_FILE, SITE_FILE, check_name
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.fragment.reading import read_fragment_files
from jigsaw_crl.result.folder import RESULT, check_folder, load_result
from jigsaw_crl.result.result import Result

__all__ = ["simulate_round"]


def simulate_round(
    fragments: Sequence[Path], out: Path, options: RoundOptions, *, deadline: float = 300
) -> Result:
    """Run a round in NVFlare's simulator, and write its result.

    Parameters
    ----------
    fragments : sequence of path
        One file per site, whose name is the fragment's client.
    out : Path
        Result folder.
    options : RoundOptions
    deadline : float
        Seconds for start, answers and assembly together.
    """
    require_nvflare()
    check_folder(out)
    by_site = read_fragment_files(
        fragments, "The simulator checks no signatures: pass the fragments before they were signed."
    )
    for site in by_site:
        check_name(site, "site")
    with tempfile.TemporaryDirectory(prefix="jigsaw-simulate-") as folder:
        root = Path(folder)
        # The simulator empties its workspace, so everything else is beside it.
        workspace = root / "workspace"
        results = root / "results"
        _prepare(workspace / "local", root / "fragments", by_site, results)
        job = write_job(root / "job", options)
        code, said = _run(job, workspace, list(by_site), deadline)
        made = results / options.round_name
        if not (made / RESULT).is_file():
            failure = _failure(made) or f"the simulator ended with code {code}: {said}"
            raise InputError(f"the round gave no result: {failure}", "Correct it, then run again.")
        result = load_result(made)
    result.save(out)
    return result


def _failure(made: Path) -> str | None:
    record = RoundRecord.read(made)
    return None if record is None else record.failure


def _prepare(local: Path, store: Path, by_site: Mapping[str, Fragment], results: Path) -> None:
    store.mkdir()
    for site, fragment in by_site.items():
        (store / f"{site}.json").write_text(fragment.to_json(), encoding="utf-8")
    allowed = {"format_version": 2, "class_allow_list": [CONTROLLER, EXECUTOR]}
    write_json(local / "resources.json", allowed)
    write_json(local / SITE_FILE, {"fragment": str(store / "{site}.json")})
    write_json(local / COORDINATOR_FILE, {"sites": list(by_site), "results": str(results)})


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
            f"the simulator did not end within {deadline:.0f} s", "Raise --deadline."
        ) from None
    finally:
        _end(process)
    return process.returncode, " ".join(said.split())[-300:]


def _end(process: subprocess.Popen[str]) -> None:
    """End the simulator, whose server and sites are processes of its own group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
