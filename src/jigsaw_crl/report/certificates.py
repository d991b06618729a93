"""The certificates of all pairs, compressed for the page.

The page shows the text of `str(order.explain(a, d))`. Texts are compressed per ancestor, so that a
click decompresses one row. A proof from exact moments can have thousands of steps: such a proof is
not in the page, which then says how to print it.
"""

from __future__ import annotations

import base64
import gzip
import json
from contextlib import suppress

import numpy as np

from jigsaw_crl.assembly import GlobalOrder
from jigsaw_crl.assembly.exact.proof import TooLong
from jigsaw_crl.assembly.verdict import OPEN, YES
from jigsaw_crl.base.arrays import BoolArray

__all__ = ["pack", "pack_certificates"]

# Ordered pairs whose text goes into the page; 300 labels have 89,700.
MOST_PAIRS = 120_000
# Steps of one proof.
MOST_STEPS = 60


def pack(data: bytes) -> str:
    """Bytes compressed with gzip, in base64; the same bytes always give the same text."""
    return base64.b64encode(gzip.compress(data, 6, mtime=0)).decode("ascii")


def pack_certificates(order: GlobalOrder) -> list[str]:
    """For each ancestor, a compressed JSON list of the certificate's text for each descendant.

    The text is empty for a pair that is not in the page.
    """
    wanted = _wanted(order)
    rows = []
    for a in range(len(order.labels)):
        texts = [""] * len(order.labels)
        for d in np.flatnonzero(wanted[a]).tolist():
            with suppress(TooLong):
                texts[d] = str(order.certificate(a, d, most_steps=MOST_STEPS))
        rows.append(pack(json.dumps(texts, ensure_ascii=False).encode()))
    return rows


def _wanted(order: GlobalOrder) -> BoolArray:
    """Pairs that get a text: ancestors, then undetermined pairs, then pairs a client denies."""
    off = ~np.eye(len(order.labels), dtype=bool)
    if int(off.sum()) <= MOST_PAIRS:
        return off
    _, no = order.said.counts
    said = order.verdicts
    urgency = np.where(said == YES, 0, np.where(said == OPEN, 1, np.where(no > 0, 2, 3)))
    pairs = np.flatnonzero(off)
    chosen = pairs[np.argsort(urgency.ravel()[pairs], kind="stable")[:MOST_PAIRS]]
    wanted = np.zeros_like(off)
    wanted.flat[chosen] = True
    return wanted
