"""Certificates of many pairs at once, packed for the page.

The page shows the very text of `str(order.explain(a, d))`. Texts are packed per ancestor, so that
a click unpacks one row. A proof from exact moments can be long and takes milliseconds to find;
there are limits to how many go into the page, and a pair without its text says how to get it.
"""

from __future__ import annotations

import base64
import gzip
import json

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly import GlobalOrder

__all__ = ["pack", "pack_certificates"]

# Ordered pairs whose text goes into the page; 300 labels have 89,700.
MOST_PAIRS = 120_000
# Of these, proofs of several steps from exact moments, and characters of one text.
MOST_PROOFS, LONGEST = 2_000, 6_000


def pack(data: bytes) -> str:
    """Bytes as gzip in base64; the same bytes always give the same text."""
    return base64.b64encode(gzip.compress(data, 6, mtime=0)).decode("ascii")


def pack_certificates(order: GlobalOrder) -> list[str]:
    """For each ancestor, a packed JSON list with the certificate's text for each descendant.

    An empty text stands for a pair that was left out.
    """
    wanted = _wanted(order)
    rows = []
    for a, ancestor in enumerate(order.labels):
        texts = [""] * len(order.labels)
        for d in np.flatnonzero(wanted[a]).tolist():
            text = str(order.explain(ancestor, order.labels[d]))
            texts[d] = text if len(text) <= LONGEST else ""
        rows.append(pack(json.dumps(texts, ensure_ascii=False).encode()))
    return rows


def _wanted(order: GlobalOrder) -> npt.NDArray[np.bool_]:
    """Which pairs get a text: ancestors first, then open pairs, then what clients say directly."""
    p = len(order.labels)
    off = ~np.eye(p, dtype=bool)
    yes, no = order.panel.counts
    said = order.verdicts
    direct = ((said == 1) & (yes > 0)) | ((said == 0) & (no > 0)) | (said == -1)
    if order.mode == "exact" and int((off & ~direct).sum()) > MOST_PROOFS:
        kept = _first(off & ~direct, np.where(order.decoded, 0, 1), MOST_PROOFS)
        off &= direct | kept
    if int(off.sum()) <= MOST_PAIRS:
        return off
    urgency = np.where(order.decoded, 0, np.where(said == -1, 1, np.where(direct, 2, 3)))
    return _first(off, urgency, MOST_PAIRS)


def _first(
    candidates: npt.NDArray[np.bool_], urgency: npt.NDArray[np.int64], most: int
) -> npt.NDArray[np.bool_]:
    where = np.flatnonzero(candidates)
    chosen = where[np.argsort(urgency.ravel()[where], kind="stable")[:most]]
    out = np.zeros(candidates.size, dtype=bool)
    out[chosen] = True
    return out.reshape(candidates.shape)
