"""jigsaw-crl: one causal order from many partial, mixed, private views of a hidden system.

Names are loaded on first use, so that `import jigsaw_crl` stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from jigsaw_crl._version import __version__

if TYPE_CHECKING:
    from jigsaw_crl import metrics, simulate
    from jigsaw_crl.assembly import Certificate, GlobalOrder, Verdict, assemble
    from jigsaw_crl.client import Client
    from jigsaw_crl.conductor import recover, recover_fragment
    from jigsaw_crl.design import Proposal, next_client
    from jigsaw_crl.errors import InputError, JigsawError
    from jigsaw_crl.estimator import BlockRecovery
    from jigsaw_crl.exports import export_graph
    from jigsaw_crl.fragment import Fragment, Outcome
    from jigsaw_crl.moments import Moments
    from jigsaw_crl.order import PartialOrder
    from jigsaw_crl.result import Result, load_result
    from jigsaw_crl.study import Study, read_client, read_study

_HOME = {
    "BlockRecovery": "estimator",
    "Certificate": "assembly",
    "Client": "client",
    "Fragment": "fragment",
    "GlobalOrder": "assembly",
    "InputError": "errors",
    "JigsawError": "errors",
    "Moments": "moments",
    "Outcome": "fragment",
    "PartialOrder": "order",
    "Proposal": "design",
    "Result": "result",
    "Study": "study",
    "Verdict": "assembly",
    "assemble": "assembly",
    "export_graph": "exports",
    "load_result": "result",
    "metrics": "",
    "next_client": "design",
    "read_client": "study",
    "read_study": "study",
    "recover": "conductor",
    "recover_fragment": "conductor",
    "simulate": "",
}

__all__ = [
    "BlockRecovery",
    "Certificate",
    "Client",
    "Fragment",
    "GlobalOrder",
    "InputError",
    "JigsawError",
    "Moments",
    "Outcome",
    "PartialOrder",
    "Proposal",
    "Result",
    "Study",
    "Verdict",
    "__version__",
    "assemble",
    "export_graph",
    "load_result",
    "metrics",
    "next_client",
    "read_client",
    "read_study",
    "recover",
    "recover_fragment",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'jigsaw_crl' has no attribute {name!r}")
    home = _HOME[name]
    if home == "":
        value: Any = importlib.import_module(f"jigsaw_crl.{name}")
    else:
        value = getattr(importlib.import_module(f"jigsaw_crl.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
