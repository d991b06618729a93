"""The data of the page's script, and what the page says about every pair.

The certificate of a pair is the text of `str(order.explain(a, d))`. Texts are compressed per
ancestor, so that a click decompresses one row. Of large orders not all are in the page, which then
says how to print the others.
"""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.order import GlobalOrder
from jigsaw_crl.assembly.verdict import NO, OPEN
from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.evidence.effects import INTERVAL
from jigsaw_crl.report.drawing import Picture
from jigsaw_crl.result.folder import graphml, order_csv
from jigsaw_crl.result.result import Result

# Ordered pairs whose texts go into the page; 300 labels have 89,700. Of more, "not ancestor" is
# left out, and then what is undetermined.
MOST_PAIRS = 120_000


def page_data(result: Result, diagram: Picture, svg: str) -> dict[str, Any]:
    """The data that the page's script needs; `svg` is the diagram as a file."""
    order = result.order
    pairs, p, n = order.table, len(order.labels), len(order.fragments)
    total, error = np.full((2, p, p), np.nan)
    sites = np.full((3, n, p, p), np.nan)
    for _, effects, some in order.known_effects:
        total[some], error[some] = effects.estimate[some], effects.error[some]
        by_site = effects.by_site, effects.site_error, effects.set_aside
        sites[:, :, some] = [table[:, some] for table in by_site]
    table: dict[str, npt.NDArray[Any]] = {
        "verdict": pairs.verdict + 1,
        "yes": pairs.yes,
        "no": pairs.no,
        "probability": pairs.probability,
        "evidence": pairs.evidence if order.mode == "evidence" else np.full((p, p), np.nan),
        "rests": pairs.rests_on,
        "contested": pairs.contested,
        "total": total,
        "error": error,
    }
    texts = {
        "order.csv": order_csv(order),
        "hasse.graphml": graphml(order.hasse()),
        "diagram.svg": svg,
    }
    places = [(shape.y, shape.x) for shape in diagram.shapes]
    return {
        "mode": order.mode,
        "decimals": order.decimals,
        "units": _in_units(result),
        "labels": list(order.labels),
        "layered": sorted(range(p), key=lambda i: places[i]),
        "columns": list(table),
        "table": _tables(*table.values()),
        "texts": pack_texts(order),
        "clients": [_client(order, k, sites[:, k]) for k in range(n)],
        "interval": INTERVAL if order.known_effects else None,
        "effect": next((kind for kind, _, _ in order.known_effects), ""),
        "files": {name: _pack(text.encode()) for name, text in texts.items()},
    }


def _in_units(result: Result) -> dict[str, str]:
    """Effects in the units of sensors that stand for labels, by the number of the pair."""
    order, found = result.order, {}
    for row in result.effects.to_dict("records"):
        if row.get("unit"):
            a, d = order.indices(row["cause"], row["effect"])
            found[str(a * len(order) + d)] = f"{row['in_units']:+.3g} {row['unit']}"
    return found


def _client(order: GlobalOrder, k: int, sizes: FloatArray) -> dict[str, Any]:
    """What one client brings: stance and evidence, and its effects if it measured any."""
    fragment, claims = order.panel.fragments[k], order.said.claims[k]
    if claims.bayes is not None:
        brought = np.where(claims.says, claims.log_factor, np.nan)
        np.fill_diagonal(brought, np.nan)
    else:
        rows = [fragment.index(order.labels[i]) for i in claims.members]
        brought = fragment.evidence[np.ix_(rows, rows)]
    tables, own = [claims.stance, brought], np.ix_(claims.members, claims.members)
    if not np.isnan(sizes[0][own]).all():
        tables += [table[own] for table in sizes]
    members = claims.members.tolist()
    return {"name": claims.client, "members": members, "table": _tables(*tables)}


def _tables(*tables: npt.NDArray[Any]) -> str:
    """Tables as floats, row by row and one after the other."""
    return _pack(b"".join(table.astype("<f8").tobytes() for table in tables))


def _pack(data: bytes) -> str:
    """Bytes compressed with gzip, in base64; the same bytes always give the same text."""
    return base64.b64encode(gzip.compress(data, 6, mtime=0)).decode("ascii")


def pack_texts(order: GlobalOrder) -> list[str]:
    """For each ancestor, a compressed JSON list with the certificate of each descendant.

    It is empty where the page has none.
    """
    wanted = ~np.eye(len(order.labels), dtype=bool)
    for said in (NO, OPEN):
        if wanted.sum() > MOST_PAIRS:
            wanted &= order.verdicts != said
    rows = []
    for a in range(len(order.labels)):
        texts = [str(order.certificate(a, d)) if wanted[a, d] else "" for d in range(len(wanted))]
        rows.append(_pack(json.dumps(texts, ensure_ascii=False).encode()))
    return rows
