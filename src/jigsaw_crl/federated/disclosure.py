"""What leaves a site: every field of a fragment, and how large it can be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["LEAVES", "shown", "size_bound"]

LEAVES: Mapping[str, str] = MappingProxyType(
    {
        "format": "the words jigsaw-crl/fragment",
        "version": "the version of this list",
        "client": "the site's name",
        "method": "null-cone or paper",
        "labels": "the names of the p interventions",
        "blocks": "which labels are in a block together",
        "block_covers": "which block is directly above which",
        "districts": "which labels share a hidden cause",
        "n_samples": "how many rows each regime has",
        "outcome": "whether recovery went well, and what to do if not",
        "findings": "what was noticed about the data: a sentence and at most two numbers each",
        "bayes": "log Bayes factors of label pairs, p × p per hypothesis, four decimals; which "
        "labels moved one direction only",
        "statements": "from exact moments: yes, no or cannot say for label pairs, p × p",
    }
)
"""Every field of a fragment and what it says; a fragment with another field is refused."""

# A log Bayes factor with four decimals, its sign and its comma; and a statement with all that can
# be said about a pair besides.
_NUMBER_BYTES, _STATEMENT_BYTES = 24, 32
_SCALES = 10
# Sentences are bounded one by one in the schema; in practice a fragment has a few findings for
# each regime.
_FINDING_BYTES, _FINDINGS_PER_LABEL = 1_500, 8


def size_bound(labels: Mapping[str, object] | tuple[str, ...] | list[str]) -> int:
    """Bytes that a fragment with these labels never exceeds.

    It depends on the p labels alone, B(p) = O(p²): neither the number of features nor that of
    rows is in it.

    Examples
    --------
    >>> from jigsaw_crl.federated.disclosure import size_bound
    >>> import jigsaw_crl as jc
    >>> fragment = jc.recover_fragment(jc.simulate.setting("A", 0).client(0))
    >>> len(fragment.to_json()) < size_bound(fragment.labels)
    True
    """
    p = len(labels)
    names = sum(len(json.dumps(name)) for name in labels)
    pairs = p * p * ((_SCALES + 1) * _NUMBER_BYTES + _STATEMENT_BYTES)
    sentences = (p + 2) * _FINDINGS_PER_LABEL * _FINDING_BYTES
    return 20_000 + 20 * names + pairs + sentences


def shown(fragment: Fragment) -> str:
    """The fragment for a reader: each field, what it says, and its whole content.

    What follows the marks `#` is explanation; everything else is what the file holds.
    """
    document: dict[str, Any] = json.loads(fragment.to_json())
    size = len(fragment.to_json().encode())
    lines = [f"# {size} bytes would leave this site; this is all of them."]
    for name, value in document.items():
        lines.append(f"# {name}: {LEAVES[name]}")
        lines.append(f"{name} = {_laid_out(value)}")
    return "\n".join(lines)


def _laid_out(value: Any, indent: str = "  ") -> str:
    """JSON with one row of a matrix, or one entry of a table, per line."""
    flat = json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict) and any(isinstance(v, list | dict) for v in value.values()):
        inner = (
            f"{indent}{json.dumps(k, ensure_ascii=False)}: {_laid_out(v, indent + '  ')}"
            for k, v in value.items()
        )
        return "{\n" + ",\n".join(inner) + f"\n{indent[:-2]}}}"
    if isinstance(value, list) and any(isinstance(v, list | dict) for v in value):
        rows = (indent + _laid_out(v, indent + "  ") for v in value)
        return "[\n" + ",\n".join(rows) + f"\n{indent[:-2]}]"
    return flat
