"""The one job there is: it names our two classes and carries no code and no path."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.settings import check_name
from jigsaw_crl.federated.tasks import TASK

__all__ = ["CONTROLLER", "EXECUTOR", "RoundOptions", "write_job"]

CONTROLLER = "jigsaw_crl.federated.controller.GatherFragments"
EXECUTOR = "jigsaw_crl.federated.executor.SendFragment"


@dataclass(frozen=True)
class RoundOptions:
    """What is asked of a round.

    Parameters
    ----------
    round_name : str
        Names the result folder; the same name again takes up the same round.
    min_sites : int
        With fewer fragments there is no result.
    timeout : int
        Seconds that sites have to answer once they were asked.
    max_age : float, optional
        Seconds; older fragments are stale.
    method : {"null-cone", "paper"}
    seed : int
    closed_world : bool
        The last three as for `assemble`.
    """

    round_name: str
    min_sites: int = 1
    timeout: int = 300
    max_age: float | None = None
    method: str = "null-cone"
    seed: int = 0
    closed_world: bool = False

    def __post_init__(self) -> None:
        check_name(self.round_name, "round")
        if self.min_sites < 1:
            raise InputError(f"min_sites is {self.min_sites}", "At least one site is needed.")
        if self.timeout < 1:
            raise InputError(f"timeout is {self.timeout}", "Give the sites at least a second.")


def write_job(folder: Path, options: RoundOptions) -> Path:
    """Write the job's folder."""
    config = folder / "app" / "config"
    config.mkdir(parents=True)
    meta = {
        "name": f"jigsaw-{options.round_name}",
        "resource_spec": {},
        "min_clients": 1,
        "deploy_map": {"app": ["@ALL"]},
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
        path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return folder
