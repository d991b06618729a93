"""The NVFlare job of a round: it names our two classes, and carries no code and no path."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jigsaw_crl.assembly.order import Method
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import write_text
from jigsaw_crl.federated.settings import check_name

__all__ = [
    "ANSWER",
    "CONTROLLER",
    "EXECUTOR",
    "GUARD",
    "META_AGAIN",
    "META_ROUND",
    "META_STATE",
    "ROUND",
    "TASK",
    "RoundOptions",
    "write_job",
    "write_json",
]

CONTROLLER = "jigsaw_crl.federated.controller.GatherFragments"
EXECUTOR = "jigsaw_crl.federated.executor.SendFragment"
GUARD = "jigsaw_crl.federated.guard.Guard"
# Entries of a job's meta data: the round's name, whether a round with a result may be run again,
# and after the round its state, which the coordinator writes.
META_ROUND, META_AGAIN, META_STATE = "jigsaw_round", "jigsaw_again", "jigsaw_state"
# The only task; the key of the round's name in it, and of the answer in a site's reply.
TASK, ROUND, ANSWER = "fragment", "round", "answer"


@dataclass(frozen=True)
class RoundOptions:
    """Options of a round.

    Parameters
    ----------
    round_name : str
        Names the result folder. A round that was interrupted continues under the same name.
    min_sites : int
        With fewer fragments there is no result.
    timeout : int
        Seconds that sites have to answer once they were asked.
    max_age : float, optional
        Seconds; older fragments are stale.
    method : {"null-cone", "paper"}
        Of `assemble`.
    again : bool
        Run a round again that has a result, and replace it.
    """

    round_name: str
    min_sites: int = 1
    timeout: int = 300
    max_age: float | None = None
    method: Method = "null-cone"
    again: bool = False

    def __post_init__(self) -> None:
        check_name(self.round_name, "round")
        if self.min_sites < 1:
            raise InputError(f"min_sites is {self.min_sites}", "At least one site is needed.")
        if self.timeout < 1:
            raise InputError(f"timeout is {self.timeout}", "Give the sites at least a second.")


def write_job(folder: Path, options: RoundOptions) -> Path:
    """Write the folder of a job, and return it."""
    config = folder / "app" / "config"
    meta = {
        "name": f"jigsaw-{options.round_name}",
        "resource_spec": {},
        "min_clients": 1,
        # To all sites that the coordinator lists: see `guard`.
        "deploy_map": {"app": ["@ALL"]},
        META_ROUND: options.round_name,
        META_AGAIN: options.again,
    }
    server: dict[str, Any] = {
        "format_version": 2,
        "workflows": [{"id": "gather", "path": CONTROLLER, "args": vars(options)}],
    }
    client: dict[str, Any] = {
        "format_version": 2,
        "executors": [{"tasks": [TASK], "executor": {"path": EXECUTOR, "args": {}}}],
    }
    for path, document in (
        (folder / "meta.json", meta),
        (config / "config_fed_server.json", server),
        (config / "config_fed_client.json", client),
    ):
        write_json(path, document)
    return folder


def write_json(path: Path, document: dict[str, Any], *, private: bool = False) -> None:
    """Write a file of NVFlare's or our configuration as a whole, and its folder if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(document, indent=1), private=private)
