"""Kill each process of a live federation at each step of a round, and run the round again.

    python benchmarks/round_faults.py --out build/round_faults.jsonl

For every process (the coordinator, its process of the round, a site, the site's process of the
round, the submitter) and every step (submitted, asked, answered by the others), a round is started,
the process is killed, and what follows is noted: the exit code, the state of each site in
`round.json`, and whether a second run of the same round gives the result of all sites. It takes
about 15 minutes on two idle cores.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from federated import deployment as parts

PROCESSES = ("coordinator", "coordinator's round", "site", "site's round", "submitter")
STEPS = ("submitted", "asked", "others answered")
VICTIM = "client-3"
# Seconds that sites have to answer in a round with a fault.
TIMEOUT = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--process", nargs="*", choices=PROCESSES, default=list(PROCESSES))
    parser.add_argument("--step", nargs="*", choices=STEPS, default=list(STEPS))
    chosen = parser.parse_args()
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        live = start(Path(folder))
        try:
            for number, (process, step) in enumerate(product(chosen.process, chosen.step)):
                row = fault(live, f"round-{number}", process, step)
                print(json.dumps(row), flush=True)
                with chosen.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
        finally:
            live.close()


def start(root: Path) -> Any:
    """A deployment of three sites with a fragment each."""
    live = parts.Deployment(root)
    study = root / "study"
    done = parts.jigsaw("simulate", "--setting", "A", "--samples", 2000, "--out", study)
    assert done.returncode == 0, done.stderr
    for site in parts.SITES:
        target = live.kits / site / "fragment.json"
        done = parts.jigsaw("fragment", study / f"{site}.parquet", "-o", target)
        assert done.returncode == 0, done.stderr
    live.start(parts.COORDINATOR, *parts.SITES)
    live.wait_for_sites()
    return live


def fault(live: Any, name: str, process: str, step: str) -> dict[str, Any]:
    """Run a round with one fault, then the same round again."""
    live.hold(VICTIM).touch()
    submitter = live.submit(name, timeout=TIMEOUT, deadline=TIMEOUT + 60)
    if step != "submitted":
        live.wait_for_hold(VICTIM)
    if step == "others answered":
        others = set(parts.SITES) - {VICTIM}
        parts.wait_until(lambda: live.answers(name) >= others, "the other answers")
    restart = kill(live, process, submitter)
    live.hold(VICTIM).unlink(missing_ok=True)
    out, err = submitter.communicate(timeout=parts.HANG)
    state = read(live.results / name / "round.json")
    if restart:
        since = len(live.said(parts.COORDINATOR)) if restart == parts.COORDINATOR else 0
        live.start(restart)
        if restart == parts.COORDINATOR:
            live.wait_for_sites(since)
    # "--again" would be needed only if the round has a result already, which is then kept.
    code, said = live.run(name)
    again = read(live.results / name / "round.json")
    return {
        "process": process,
        "step": step,
        "exit": submitter.returncode,
        "said": (err or out).strip()[-200:],
        "states": {site: s["state"] for site, s in state.get("sites", {}).items()},
        "again": code,
        "states_again": {site: s["state"] for site, s in again.get("sites", {}).items()},
        "said_again": said.strip()[-200:] if code else "",
    }


def kill(live: Any, process: str, submitter: Any) -> str:
    """Kill a process; returns the participant that has to be started again, if any."""
    if process == "submitter":
        submitter.kill()
        return ""
    name = parts.COORDINATOR if process.startswith("coordinator") else VICTIM
    if process.endswith("round"):
        for child in psutil.Process(live.processes[name].pid).children(recursive=True):
            if any(word.endswith("_process") for word in child.cmdline()):
                child.kill()
        return ""
    live.kill(name)
    return name


def read(path: Path) -> dict[str, Any]:
    """A JSON file; empty if there is none."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


if __name__ == "__main__":
    main()
