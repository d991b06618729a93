"""What leaves a site: the fields of a fragment, and a bound on its size."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["FIELDS", "shown", "size_bound"]

FIELDS: Mapping[str, str] = MappingProxyType(
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
"""Every field of a fragment and what it says. A fragment with any other field is refused."""

# A log Bayes factor with four decimals, sign and comma; and a pair's exact statements.
_NUMBER_BYTES, _STATEMENT_BYTES = 24, 32
_SCALES = 10  # the most that the file's schema allows
# The schema bounds each finding; recovery gives a few for each regime.
_FINDING_BYTES, _FINDINGS_PER_LABEL = 1_500, 8


def size_bound(labels: Sequence[str]) -> int:
    """The largest size in bytes of a fragment with these labels.

    It grows as the square of the number of labels, and depends neither on the number of features
    nor on that of rows.

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
    # Besides the scales, two log Bayes factors: for a district and for a lean.
    pairs = p * p * ((_SCALES + 2) * _NUMBER_BYTES + _STATEMENT_BYTES)
    sentences = (p + 2) * _FINDINGS_PER_LABEL * _FINDING_BYTES
    return 20_000 + 20 * names + pairs + sentences


def shown(fragment: Fragment) -> str:
    """The fragment as readable text: each field, what it says, and its whole content.

    Lines that begin with `#` explain; the others are what the file holds.
    """
    text = fragment.to_json()
    lines = [f"# {len(text.encode())} bytes would leave this site; this is all of them."]
    for name, value in json.loads(text).items():
        lines.append(f"# {name}: {FIELDS[name]}")
        lines.append(f"{name} = {_laid_out(value)}")
    return "\n".join(lines)


def _laid_out(value: Any, indent: str = "  ") -> str:
    """JSON with one row of a matrix, or one entry of a table, per line."""
    if isinstance(value, dict) and any(isinstance(v, list | dict) for v in value.values()):
        inner = (
            f"{indent}{json.dumps(k, ensure_ascii=False)}: {_laid_out(v, indent + '  ')}"
            for k, v in value.items()
        )
        return "{\n" + ",\n".join(inner) + f"\n{indent[:-2]}}}"
    if isinstance(value, list) and any(isinstance(v, list | dict) for v in value):
        rows = (indent + _laid_out(v, indent + "  ") for v in value)
        return "[\n" + ",\n".join(rows) + f"\n{indent[:-2]}]"
    return json.dumps(value, ensure_ascii=False)
