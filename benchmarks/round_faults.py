"""Kill each process of a live federation at each step of a round, and run the round again.

    python benchmarks/round_faults.py --out build/round_faults.jsonl

For every process (the coordinator, its process of the round, a site, the submitter) and every step
(submitted: the coordinator has written `round.json`; asked: the site has the question; others
answered: the coordinator has these), a round is started, the process is killed, and what follows is
noted: the exit code of `submit`, the state of each site in `round.json`, and whether a second run
of the same round (with `--again` if the first has a result) gives the result of all sites. It takes
about ten minutes on two idle cores. At the end the table of `docs/attacks.md` is printed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

from reporting import header, row

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from federated import deployment as parts

PROCESSES = ("coordinator", "coordinator's round", "site", "submitter")
STEPS = ("submitted", "asked", "others answered")
VICTIM = "client-3"
# Seconds that sites have to answer in a round with a fault.
TIMEOUT = 30


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
                found = json.dumps(fault(live, f"round-{number}", process, step))
                print(found, flush=True)
                with chosen.out.open("a", encoding="utf-8") as file:
                    file.write(found + "\n")
        finally:
            live.close()
    table(chosen.out)


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
    limit = max(TIMEOUT, live.enough)
    submitter = live.submit(name, timeout=limit, deadline=2 * limit, patience=limit)
    reach(live, name, step)
    restart = kill(live, process, submitter)
    live.hold(VICTIM).unlink(missing_ok=True)
    out, err = submitter.communicate(timeout=parts.HANG)
    if process == "submitter":
        # The round goes on without the person who started it.
        parts.wait_until(
            lambda: read(live.results / name / "round.json").get("ended_at"), "the round to end"
        )
    if restart:
        since = len(live.said(parts.COORDINATOR))
        live.start(restart)
        parts.wait_until(
            lambda: joined(live.said(parts.COORDINATOR)[since:], restart), "the sites to join"
        )
    first = read(live.results / name / "round.json")
    closed = bool(first.get("ended_at") and not first.get("failure"))
    code, said = live.run(name, **({"again": True} if closed else {}))
    return {
        "process": process,
        "step": step,
        "exit": submitter.returncode,
        "said": (err or out).strip()[-200:],
        "result": closed,
        "states": states(first),
        "again": code,
        "states_again": states(read(live.results / name / "round.json")),
        "said_again": said.strip()[-200:] if code else "",
    }


def reach(live: Any, name: str, step: str) -> None:
    """Wait until a round has come to a step."""
    begun = live.results / name / "round.json"
    parts.wait_until(begun.exists, "the round to begin")
    if step != "submitted":
        live.wait_for_hold(VICTIM)
    if step == "others answered":
        others = set(parts.SITES) - {VICTIM}
        parts.wait_until(lambda: live.answers(name) >= others, "the other answers")


def joined(said: str, started: str) -> bool:
    """Have the sites joined, all of them or the one that was started again?"""
    wanted = parts.SITES if started == parts.COORDINATOR else (started,)
    return all(f"client {x}@" in said or f"client: {x} at" in said for x in wanted)


def states(record: dict[str, Any]) -> dict[str, str]:
    """The state of each site in a round."""
    return {site: s["state"] for site, s in record.get("sites", {}).items()}


def table(path: Path) -> None:
    """Print one line for each fault."""
    header("killed", "when", "exit code", "first run", "same round again")
    for line in path.read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        row(
            one["process"],
            one["step"],
            one["exit"] if one["exit"] >= 0 else "(killed)",
            summary(one["states"]) if one["result"] else "no result",
            f"{summary(one['states_again'])} (exit code {one['again']})",
        )


def summary(found: dict[str, str]) -> str:
    """How many sites are in each state."""
    return ", ".join(f"{n} {state}" for state, n in sorted(Counter(found.values()).items()))


def kill(live: Any, process: str, submitter: Any) -> str:
    """Kill a process; returns the participant that has to be started again, if any."""
    if process == "submitter":
        submitter.kill()
        return ""
    if process.endswith("round"):
        parts.wait_until(live.kill_round, "the process of the round to start")
        return ""
    name = parts.COORDINATOR if process == "coordinator" else VICTIM
    live.kill(name)
    return name


def read(path: Path) -> Any:
    """A JSON file; empty if there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


if __name__ == "__main__":
    main()
